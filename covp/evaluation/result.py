"""`Evaluation`: one inference and all its figures, as an object and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import Any

from numpy.typing import NDArray

from covp.base.html_table import html_table
from covp.build.builder import Build
from covp.chip.platform_file import Platform
from covp.codegen.program import Program, ProgramLayer, ProgramState, ProgramTensor
from covp.device.phase_count import Causes, FunctionCount, Traffic
from covp.device.timeline import TimelineLog
from covp.device.wave import Recorded
from covp.evaluation.advice import Advice, advice
from covp.evaluation.area import estimate_areas
from covp.evaluation.check import Check
from covp.evaluation.data.quality import Quality
from covp.evaluation.energy import Energy, estimate_energy
from covp.evaluation.estimates import doubtful_units
from covp.evaluation.lifetimes import arena_tensors, live_bytes
from covp.evaluation.memory_map import NO_MEMORY_MAP, MemoryMap
from covp.evaluation.origin import origin_record
from covp.evaluation.roofs import core_record, unit_records
from covp.evaluation.sample import Sample
from covp.graph.arithmetic import whose
from covp.graph.equality import FLOAT_TOLERANCE
from covp.graph.float_scaling import dequantize
from covp.graph.graph import Graph
from covp.graph.ops import macs
from covp.runtime.profile import LayerProfile, MemoryUse, Profile


@dataclass(frozen=True, eq=False)
class Evaluation:
    """One inference and all its figures.

    Attributes:
        build: what ran.
        device: what it ran on, as for `Session`.
        toolchain: name and version.
        profile: instructions, cycles and where they come from.
        memory: that the program and covp's runtime take.
        outputs: of the device, in the model's order.
        mismatches: output elements that do not equal the reference's, see
            `covp.graph.equality.differences`.
        simulation_seconds: host time of the inference.
        check: how much was compared with the reference, and the first difference.
        sample: the inputs, and what was expected.
        recorded: the waveform that was requested, and its cycles.
        memory_map: what lies where.
        data: how right the model is over samples, where there are some.
        timeline: when what happened, where it was requested and the device knows it.
    """

    build: Build
    device: str
    toolchain: str
    profile: Profile
    memory: MemoryUse
    outputs: tuple[NDArray[Any], ...]
    mismatches: int
    simulation_seconds: float
    check: Check
    sample: Sample
    recorded: Recorded | None = None
    memory_map: MemoryMap = NO_MEMORY_MAP
    data: Quality | None = None
    timeline: TimelineLog | None = None

    @property
    def program(self) -> Program:
        """What ran."""
        return self.build.program

    @property
    def platform(self) -> Platform:
        """What the program is for."""
        return self.build.platform

    @property
    def model(self) -> str:
        """The zoo name, or the file's stem as a C identifier."""
        return self.build.model

    @property
    def source(self) -> str:
        """Where the model comes from, see `covp.graph.graph.Graph`."""
        return self.build.source

    @property
    def matches_reference(self) -> bool:
        """Whether all that was compared is what the reference computes."""
        return self.mismatches == 0 and self.check.holds

    @property
    def oracle(self) -> str:
        """Whose arithmetic the reference follows, as `covp.graph.arithmetic.whose` says."""
        return whose(self.program.graph)

    @property
    def mac_coverage(self) -> float | None:
        """The share of the model's multiply-accumulates that accelerators report they did.

        More than 1 where they report too many. None where one of them has layers and reports
        nothing, as a `Peripheral` without jobs.
        """
        if any(entry.target != "cpu" and entry.work is None for entry in self.profile.layers):
            return None
        total = sum(layer.macs for layer in self.program.layers)
        done = sum(entry.offloaded_macs for entry in self.profile.layers)
        return done / total if total else 0.0

    @property
    def energy(self) -> Energy | str | None:
        """Of the inference, estimated; or why not, see `covp.evaluation.energy.estimate_energy`."""
        return estimate_energy(self.program, self.profile)

    def _code_bytes(self, layer: ProgramLayer) -> int | None:
        """Of the functions that are the layer's alone; None where they are not known."""
        known = self.memory_map.code_bytes or {}
        sizes = [known[name] for name in layer.functions if name in known]
        return sum(sizes) if sizes else None

    @property
    def verdict(self) -> str:
        """Such as "bit-exact: 13 layers x 4 inputs"; for the first difference, see `check`."""
        if self.check.level == "none":
            return "not checked"
        if not self.matches_reference:
            return "NO"
        error = self.check.worst_error
        if error is None:
            return f"bit-exact: {self.check.amount}"
        return f"within {FLOAT_TOLERANCE:g}: {self.check.amount}, worst error {error:.1e}"

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the user should know, one line each: of compiler, schedules and wrong estimates."""
        return (
            *self.program.warnings,
            *self.build.notes,
            *doubtful_units(self.program, self.profile),
        )

    @property
    def advice(self) -> tuple[Advice, ...]:
        """What the run shows that its user can change, the dearest first."""
        return advice(self.program, self.profile, self.memory, self.build.options.optimize)

    def record(self) -> dict[str, Any]:
        """The JSON document ``covp.run/1`` of docs/json.md."""
        profile, cycles = self.profile, self.profile.sources.cycles
        energy = self.energy if isinstance(self.energy, Energy) else None
        arena = arena_tensors(self.program)
        lives = live_bytes(arena, len(self.program.layers))
        return {
            "schema": "covp.run/1",
            "covp_version": version("covp"),
            "model": self.model,
            "model_source": self.source,
            "platform": self.platform.name,
            "device": self.device,
            "toolchain": self.toolchain,
            "accelerators": list(self.build.accelerators),
            "schedules": asdict(self.build.schedules),
            "warnings": list(self.warnings),
            "advice": [asdict(one) for one in self.advice],
            "instructions": profile.instructions,
            "cycles": profile.cycles,
            "cycles_source": asdict(cycles) if cycles else None,
            "cycles_by_cause": _causes(profile.causes),
            **_traffic(profile.traffic),
            "seconds": profile.seconds,
            "energy_j": energy.joules if energy else None,
            "energy_source": energy.record() if energy else None,
            "core": core_record(self.platform),
            "units": unit_records(self.program),
            "accelerator_area": [area.record() for area in estimate_areas(self.program)],
            "simulation_seconds": self.simulation_seconds,
            "matches_reference": None if self.check.level == "none" else self.matches_reference,
            "check": self.check.record(),
            "transfers": asdict(profile.transfers),
            "accelerator_jobs": dict(profile.jobs),
            "mac_coverage": self.mac_coverage,
            "memory": {
                "flash_bytes": self.memory.flash_bytes,
                "ram_bytes": self.memory.ram_bytes,
                "arena_bytes": self.memory.arena_bytes,
                "stack_bytes": self.memory.stack_bytes,
                "state_bytes": self.memory.state_bytes,
            },
            "memory_map": self.memory_map.record(self.platform),
            "arena": [tensor.record() for tensor in arena],
            "overlap": self.build.overlap.record(profile.cycles) if self.build.overlap else None,
            "streaming": _streaming(self.build.graph),
            "states": [_state(state) for state in self.program.states],
            "layers": [
                _layer(entry) | self._described(entry.layer, live)
                for entry, live in zip(profile.layers, lives, strict=False)
            ],
            "between": {
                "instructions": profile.between.instructions,
                "cycles": profile.between.cycles,
                "cycles_by_cause": _causes(profile.between.causes),
                "functions": _functions(profile.between.functions),
                **_traffic(profile.between.traffic),
            },
            "outputs": [
                _output(tensor, array)
                for tensor, array in zip(self.program.outputs, self.outputs, strict=True)
            ],
            "data": self.data.record() if self.data else None,
            "origin": origin_record(
                self.build, self.sample, self.toolchain, self.device, self.check
            ),
        }

    def _described(self, layer: ProgramLayer, live: int) -> dict[str, Any]:
        """What a layer makes and takes; ``live``: bytes of the arena in use while it runs."""
        graph = self.program.lowered or self.program.graph
        own = [op for op in graph.ops if op.name in layer.operators]
        taken = [tensor for op in own for tensor in op.inputs if tensor is not None]
        constants = [tensor.data.nbytes for tensor in taken if tensor.data is not None]
        own_names = {name for one in self.program.layers for name in one.operators}
        views = {op.outputs[0].name: op.inputs[0] for op in graph.ops
                 if op.name not in own_names and op.inputs}  # fmt: skip
        made = {tensor.name for op in own for tensor in op.outputs}
        inputs = []
        for tensor in taken:
            source = tensor
            while (viewed := views.get(source.name)) is not None:  # such as a reshape
                source = viewed
            if source.data is None and source.name not in made:
                inputs.append(source.name)
        result = layer.outputs[0] if layer.outputs else None
        return {
            "tensor": result.name if result else None,
            "inputs": list(dict.fromkeys(inputs)),
            "shape": list(result.shape) if result else None,
            "dtype": result.dtype.name if result else None,
            "parameter_bytes": sum(constants),
            "code_bytes": self._code_bytes(layer),
            "live_bytes": live,
        }

    def _repr_html_(self) -> str:
        profile, memory = self.profile, self.memory
        rows = [
            ("platform", self.platform.name),
            ("device", self.device),
            ("compiler", self.toolchain),
            ("schedules", str(self.build.schedules)),
            ("accelerators", ", ".join(self.build.accelerators) or "none"),
            ("matches the reference", self.verdict),
            ("seconds", "-" if profile.seconds is None else f"{profile.seconds:.6f}"),
            ("flash, bytes", f"{memory.flash_bytes:,}"),
            ("RAM, bytes", f"{memory.ram_bytes:,}"),
        ]
        return html_table((self.model, self.source), rows) + profile._repr_html_()


def _layer(entry: LayerProfile) -> dict[str, Any]:
    return {
        "index": entry.layer.index,
        "name": entry.layer.name,
        "op": entry.layer.op,
        "target": entry.layer.target,
        "macs": entry.layer.macs,
        "instructions": entry.instructions,
        "cycles": entry.cycles,
        "cycles_by_cause": _causes(entry.causes),
        "functions": _functions(entry.functions),
        **_traffic(entry.traffic),
        "estimated_cycles": entry.layer.estimated_cycles,
        "schedule": entry.layer.schedule,
        "offload": asdict(entry.offload) if entry.offload else None,
        "work": asdict(entry.work) if entry.work else None,
    }


def _causes(causes: Causes | None) -> dict[str, int] | None:
    return None if causes is None else dict(causes)


def _functions(functions: Sequence[FunctionCount]) -> list[dict[str, Any]] | None:
    """The most expensive first; None where they were not counted."""
    rows = sorted(functions, key=lambda function: -function.cycles)
    return [
        {
            "name": function.name,
            "instructions": function.instructions,
            "cycles": function.cycles,
            "cycles_by_cause": dict(function.causes),
        }
        for function in rows
    ] or None


def _traffic(traffic: Traffic | None) -> dict[str, Any]:
    """Of all bus masters together, and of each; null where it was not counted."""
    if traffic is None:
        return {"bytes": None, "bytes_by_master": None}
    total: dict[str, dict[str, int]] = {}
    for memories in traffic.values():
        for memory, moved in memories.items():
            own = total.setdefault(memory, {"read": 0, "write": 0})
            own["read"] += moved.read
            own["write"] += moved.written
    by_master = {
        master: {
            memory: {"read": moved.read, "write": moved.written, "fetch": moved.fetched}
            for memory, moved in memories.items()
        }
        for master, memories in traffic.items()
    }
    return {"bytes": total, "bytes_by_master": by_master}


def _streaming(graph: Graph) -> dict[str, Any] | None:
    streaming = graph.streaming
    if streaming is None:
        return None
    return {
        "axis": streaming.axis,
        "hop": streaming.hop,
        "window": streaming.window,
        "warm_up": streaming.warm_up,
        "macs": macs(graph),
        "window_macs": macs(streaming.plain),
    }


def _state(state: ProgramState) -> dict[str, Any]:
    tensor = state.tensor
    return {
        "name": state.name,
        "dtype": tensor.dtype.name,
        "shape": list(tensor.shape),
        "bytes": tensor.nbytes,
    }


def _output(tensor: ProgramTensor, array: NDArray[Any]) -> dict[str, Any]:
    scale, zero_point, values = None, None, None
    if tensor.quantization is not None:
        scale = float(tensor.quantization.scale[0])
        zero_point = int(tensor.quantization.zero_point[0])
        values = dequantize(array, scale, zero_point).reshape(-1).tolist()
    return {
        "name": tensor.name,
        "dtype": tensor.dtype.name,
        "shape": list(tensor.shape),
        "data": array.reshape(-1).tolist(),
        "scale": scale,
        "zero_point": zero_point,
        "values": values,
    }
