"""`Evaluation`: one inference and all its figures, as an object and as JSON."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, TypeVar

import msgspec
from numpy.typing import NDArray

from covp.base.table_text import html_table
from covp.building.builder import Build
from covp.chip.platform_file import Platform
from covp.codegen.lifetimes import arena_tensors, live_bytes
from covp.codegen.program import AcceleratorInstance, Program, ProgramLayer, ProgramTensor
from covp.device.phase_count import Causes, FunctionCount, Traffic
from covp.device.timeline import TimelineLog
from covp.device.timing.peak import LeastCycles, core_peak, least_cycles
from covp.device.wave import Recorded
from covp.evaluation.advice import Advice, advice
from covp.evaluation.check import Check, Mismatch
from covp.evaluation.data.quality import Quality
from covp.evaluation.documents import (
    AreaRecord,
    CheckRecord,
    CoreRecord,
    CostRecord,
    DeviationRecord,
    EnergyPartRecord,
    EnergyRecord,
    FunctionRecord,
    LayerRecord,
    LeastRecord,
    MemoryRecord,
    MismatchRecord,
    Moved,
    OutputRecord,
    OverlapRecord,
    RegionRecord,
    Run,
    SourceRecord,
    StateRecord,
    StreamRecord,
    UnitRecord,
    moved_by_master,
)
from covp.evaluation.energy import Energy, estimate_areas, estimate_energy
from covp.evaluation.estimates import doubtful_units
from covp.evaluation.memory_map import NO_MEMORY_MAP, MemoryMap, holds
from covp.evaluation.origin import origin
from covp.evaluation.sample import Sample
from covp.evaluation.source.check import SourceCheck
from covp.graph.arithmetic import whose
from covp.graph.equality import FLOAT_TOLERANCE
from covp.graph.float_scaling import dequantize
from covp.graph.graph import Graph, Op, Tensor
from covp.graph.ops import macs
from covp.runtime.profile import Cost, LayerProfile, MemoryUse, Profile


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
        first_cycles: of the inference before it, in which accelerators loaded the weights that
            stay in them; None where none stay.
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
    first_cycles: int | None = None

    @property
    def program(self) -> Program:
        """The program that ran."""
        return self.build.program

    @property
    def platform(self) -> Platform:
        """The platform that the program is for."""
        return self.build.platform

    @property
    def model(self) -> str:
        """The zoo name, or the file's stem as a C identifier."""
        return self.build.model

    @property
    def source(self) -> str:
        """Origin of the model, see `covp.graph.graph.Graph`."""
        return self.build.source

    @property
    def matches_reference(self) -> bool:
        """True if all that was compared is what the reference computes."""
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
        """Estimated energy of the inference, or why there is none: see `estimate_energy`."""
        return estimate_energy(self.program, self.profile)

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
        """Lines that the user should read: of compiler, schedules and wrong estimates."""
        return (
            *self.program.warnings,
            *self.build.notes,
            *doubtful_units(self.program, self.profile),
        )

    @property
    def fullest_layer(self) -> ProgramLayer | None:
        """The layer that sets the peak of RAM, by what the arena holds; None without layers."""
        layers = self.program.layers
        lives = live_bytes(arena_tensors(self.program), len(layers))
        return layers[lives.index(max(lives))] if lives else None

    @property
    def least_cycles(self) -> tuple[LeastCycles | None, ...]:
        """A lower bound of each layer's cycles; None for those of floats or not on the core."""
        operands = _Operands(self.program)
        return tuple(operands.least_cycles(self.platform, layer) for layer in self.program.layers)

    @property
    def advice(self) -> tuple[Advice, ...]:
        """Things that the run shows and its user can change, the dearest first."""
        return advice(self.program, self.profile, self.memory)

    def record(self) -> Run:
        """Return the JSON document ``covp.run/1`` of docs/json.md."""
        return _document(self)

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


# -- the document ------------------------------------------------------------------------------

S = TypeVar("S", bound=msgspec.Struct)


def _document(run: Evaluation) -> Run:
    """Return the document of an evaluation."""
    profile, build, program, platform = run.profile, run.build, run.program, run.platform
    energy = run.energy if isinstance(run.energy, Energy) else None
    arena = arena_tensors(program)
    lives = live_bytes(arena, len(program.layers))
    layers = _Layers(program, run.memory_map)
    return Run(
        covp_version=version("covp"),
        model=run.model,
        model_source=run.source,
        platform=platform.name,
        device=run.device,
        toolchain=run.toolchain,
        accelerators=list(build.accelerators),
        schedules=build.schedules,
        warnings=list(run.warnings),
        advice=list(run.advice),
        instructions=profile.instructions,
        cycles=profile.cycles,
        first_cycles=run.first_cycles,
        cycles_source=profile.sources.cycles,
        cycles_by_cause=_causes(profile.causes),
        bytes=_sum_traffic(profile.traffic),
        bytes_by_master=moved_by_master(profile.traffic),
        seconds=profile.seconds,
        energy_j=energy.joules if energy else None,
        energy_source=_energy(energy) if energy else None,
        core=_core(platform),
        units=list(_units(program, profile.busy)),
        accelerator_area=[_copy(AreaRecord, area) for area in estimate_areas(program)],
        simulation_seconds=run.simulation_seconds,
        matches_reference=None if run.check.level == "none" else run.matches_reference,
        check=_check(run.check),
        transfers=profile.transfers,
        accelerator_jobs=dict(profile.jobs),
        mac_coverage=run.mac_coverage,
        memory=_copy(MemoryRecord, run.memory),
        memory_map=list(_regions(run.memory_map, platform)),
        arena=arena,
        overlap=_overlap(run),
        streaming=_stream_record(build.graph),
        states=[
            StateRecord(
                name=state.name,
                dtype=state.tensor.dtype.name,
                shape=list(state.tensor.shape),
                bytes=state.tensor.nbytes,
            )
            for state in program.states
        ],
        layers=[
            layers.record(entry, live, least)
            for entry, live, least in zip(profile.layers, lives, run.least_cycles, strict=False)
        ],
        between=CostRecord(**_cost(profile.between)),
        outputs=[_output(*pair) for pair in zip(program.outputs, run.outputs, strict=True)],
        data=run.data.record() if run.data else None,
        origin=origin(build, run.sample, run.toolchain, run.device, run.check),
    )


def _copy(kind: type[S], value: Any, **further: Any) -> S:
    """Return a structure whose fields are attributes of a value, but for further ones."""
    names = [name for name in kind.__struct_fields__ if name not in further]
    return kind(**{n: getattr(value, n) for n in names if hasattr(value, n)}, **further)


# -- costs ----------------------------------------------------------------------------------------


class _Operands:
    """What the layers of a program take."""

    def __init__(self, program: Program) -> None:
        self._graph = program.lowered or program.graph
        named = {name for layer in program.layers for name in layer.operators}
        self._views = {op.outputs[0].name: op.inputs[0] for op in self._graph.ops
                       if op.name not in named and op.inputs}  # fmt: skip
        """By the name of what an operator without a layer makes, such as a reshape: its input."""

    def inputs(self, layer: ProgramLayer) -> dict[str, Tensor]:
        """Return the tensors that a layer takes from others or the model's inputs, by name."""
        made = {tensor.name for op in self._own(layer) for tensor in op.outputs}
        found = {}
        for tensor in self._taken(layer):
            source = tensor
            while (viewed := self._views.get(source.name)) is not None:
                source = viewed
            if source.data is None and source.name not in made:
                found[source.name] = source
        return found

    def parameter_bytes(self, layer: ProgramLayer) -> int:
        """Return the bytes of a layer's constants."""
        return sum(tensor.data.nbytes for tensor in self._taken(layer) if tensor.data is not None)

    def least_cycles(self, platform: Platform, layer: ProgramLayer) -> LeastCycles | None:
        """Return a lower bound of a layer's cycles; None: of floats, or not on the core.

        Args:
            platform: its core, flash and RAM count.
            layer: whose.
        """
        inputs = self.inputs(layer).values()
        if layer.target != "cpu" or any(tensor.dtype.kind == "f" for tensor in inputs):
            return None
        read = sum(tensor.nbytes for tensor in inputs)
        return least_cycles(platform, layer.macs, read, self.parameter_bytes(layer))

    def _own(self, layer: ProgramLayer) -> list[Op]:
        return [op for op in self._graph.ops if op.name in layer.operators]

    def _taken(self, layer: ProgramLayer) -> list[Tensor]:
        return [t for op in self._own(layer) for t in op.inputs if t is not None]


class _Layers:
    """Layers of a program with what they take and make, beside what they cost."""

    def __init__(self, program: Program, memory_map: MemoryMap) -> None:
        self._operands = _Operands(program)
        self._code_bytes = memory_map.code_bytes or {}

    def record(self, entry: LayerProfile, live: int, least: LeastCycles | None) -> LayerRecord:
        """Return the record of a layer.

        Args:
            entry: its cost.
            live: bytes of the arena in use while it runs.
            least: a lower bound of its cycles.
        """
        layer = entry.layer
        result = layer.outputs[0] if layer.outputs else None
        return LayerRecord(
            index=layer.index,
            name=layer.name,
            op=layer.op,
            target=layer.target,
            units=list(layer.units) if len(layer.units) > 1 else None,
            macs=layer.macs,
            **_cost(entry),
            least=_copy(LeastRecord, least) if least else None,
            estimated_cycles=layer.estimated_cycles,
            schedule=layer.schedule,
            offload=entry.offload,
            work=entry.work,
            tensor=result.name if result else None,
            inputs=list(self._operands.inputs(layer)),
            shape=list(result.shape) if result else None,
            dtype=result.dtype.name if result else None,
            parameter_bytes=self._operands.parameter_bytes(layer),
            code_bytes=self._code(layer),
            live_bytes=live,
        )

    def _code(self, layer: ProgramLayer) -> int | None:
        """Return the bytes of the functions that are the layer's alone; None: not known."""
        known = self._code_bytes
        sizes = [known[name] for name in layer.functions if name in known]
        return sum(sizes) if sizes else None


def _cost(cost: Cost | LayerProfile) -> dict[str, Any]:
    return {
        "instructions": cost.instructions,
        "cycles": cost.cycles,
        "cycles_by_cause": _causes(cost.causes),
        "functions": _functions(cost.functions),
        "bytes": _sum_traffic(cost.traffic),
        "bytes_by_master": moved_by_master(cost.traffic),
    }


def _causes(causes: Causes | None) -> dict[str, int] | None:
    return None if causes is None else dict(causes)


def _functions(functions: Sequence[FunctionCount]) -> list[FunctionRecord] | None:
    """Return the functions, the most expensive first; None where they were not counted."""
    rows = sorted(functions, key=lambda function: -function.cycles)
    return [
        _copy(FunctionRecord, function, cycles_by_cause=dict(function.causes)) for function in rows
    ] or None


def _sum_traffic(traffic: Traffic | None) -> dict[str, Moved] | None:
    """Return the bytes of all bus masters together, by memory; None: not counted."""
    if traffic is None:
        return None
    total: dict[str, Moved] = {}
    for memories in traffic.values():
        for memory, moved in memories.items():
            before = total.get(memory, Moved())
            total[memory] = Moved(read=before.read + moved.read, write=before.write + moved.written)
    return total


# -- estimates and roofs --------------------------------------------------------------------------


def _energy(energy: Energy) -> EnergyRecord:
    low, high = energy.bounds or (None, None)
    parts = [_copy(EnergyPartRecord, part) for part in energy.parts]
    return _copy(EnergyRecord, energy, low_j=low, high_j=high, parts=parts)


def _core(platform: Platform) -> CoreRecord:
    peak = core_peak(platform.core)  # wait states are left out
    return CoreRecord(
        name=platform.core.name,
        clock_hz=platform.clock_hz,
        macs_per_cycle=peak.macs_per_cycle,
        bytes_per_cycle=peak.bytes_per_cycle,
        code=peak.code or None,
    )


def _units(program: Program, busy: Mapping[str, int]) -> Iterator[UnitRecord]:
    areas = {area.name: area.um2 for area in estimate_areas(program)}
    for unit in program.accelerators:
        yield _unit(unit, areas.get(unit.name), busy.get(unit.name))


def _unit(unit: AcceleratorInstance, um2: float | None, busy: int | None) -> UnitRecord:
    size, port = unit.backend.hardware_size(), unit.backend.values.get("bytes_per_cycle")
    check = unit.backend.known_timing
    return UnitRecord(
        name=unit.name,
        spec=unit.spec,
        macs_per_cycle=size[0] if size else None,
        bytes_per_cycle=port if isinstance(port, int) else None,
        um2=um2,
        cycles_checked=check.beside if check else None,
        cycles_error=check.error if check else None,
        busy_cycles=busy,
    )


# -- what was compared ----------------------------------------------------------------------------


def _check(check: Check) -> CheckRecord:
    return _copy(
        CheckRecord,
        check,
        tolerance=None if check.worst_error is None else FLOAT_TOLERANCE,
        mismatch=_mismatch(check.mismatch) if check.mismatch else None,
        source=_source(check.source) if check.source and check.source.skipped is None else None,
    )


def _mismatch(found: Mismatch) -> MismatchRecord:
    return _copy(
        MismatchRecord,
        found,
        element=list(found.element),
        got=_finite(found.got),
        wanted=_finite(found.wanted),
    )


def _finite(value: float) -> float | str:
    """Return a number as JSON, which has no NaN and no infinities: those are strings."""
    return value if math.isfinite(value) else str(value)


def _source(found: SourceCheck) -> SourceRecord:
    operators = [
        _copy(
            DeviationRecord,
            one,
            steps=None if one.is_float else one.steps,
            rule=one.rule.name if one.rule else None,
        )
        for one in found.operators
    ]
    return _copy(SourceRecord, found, unlike=list(found.unlike), operators=operators)


# -- memory, time, outputs ------------------------------------------------------------------------


def _regions(memory_map: MemoryMap, platform: Platform) -> Iterable[RegionRecord]:
    for region in platform.own_memory:
        yield RegionRecord(
            name=region.name,
            kind=region.kind,
            address=region.start,
            size_bytes=region.bytes,
            used=[place for place in memory_map.places if holds(region, place)],
        )


def _overlap(run: Evaluation) -> OverlapRecord | None:
    overlap = run.build.overlap
    if overlap is None:
        return None
    return OverlapRecord(
        alone_cycles=overlap.alone,
        promised_cycles=overlap.promised,
        took_cycles=run.profile.cycles,
        hidden_cycles=overlap.hidden,
        chosen=overlap.chosen,
        bands=dict(overlap.rows),
        alternatives=list(overlap.alternatives),
    )


def _stream_record(graph: Graph) -> StreamRecord | None:
    streaming = graph.streaming
    if streaming is None:
        return None
    return _copy(StreamRecord, streaming, macs=macs(graph), window_macs=macs(streaming.plain))


def _output(tensor: ProgramTensor, array: NDArray[Any]) -> OutputRecord:
    scale, zero_point, values = None, None, None
    if tensor.quantization is not None:
        scale = float(tensor.quantization.scale[0])
        zero_point = int(tensor.quantization.zero_point[0])
        values = dequantize(array, scale, zero_point).reshape(-1).tolist()
    return OutputRecord(
        name=tensor.name,
        dtype=tensor.dtype.name,
        shape=list(tensor.shape),
        data=array.reshape(-1).tolist(),
        scale=scale,
        zero_point=zero_point,
        values=values,
    )
