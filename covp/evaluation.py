"""`evaluate`: a model on a platform, run and checked; what the command line and sweeps ask for."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.accelerator.backend import AcceleratorBackend
from covp.accelerator.registry import find_backends
from covp.codegen.compile import ScheduleChoice, compile
from covp.errors import AcceleratorError, UsageError, near_misses
from covp.graph.equality import differences
from covp.graph.graph import Graph
from covp.graph.random_inputs import random_inputs
from covp.models import load_model
from covp.platform_file import Platform, load_platform
from covp.program import Program, Refusal
from covp.runtime.profile import MemoryUse, Profile
from covp.runtime.session import Session
from covp.toolchain import get_toolchain
from covp.tune.records import Objective, Records

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Evaluation:
    """One inference and all that was found out about it.

    Attributes:
        model: the zoo name, or the file's stem.
        source: "official" or "synthetic" for zoo models, "file" for one given by path.
        accelerators: as they were named.
        toolchain: name and version.
        outputs: of the device, in the model's order.
        mismatches: output elements that differ from the reference, or for floats that differ by
            more than 1e-5 of the largest.
        simulation_seconds: host time of the inference.
    """

    model: str
    source: str
    platform: Platform
    device: str
    toolchain: str
    accelerators: tuple[str, ...]
    program: Program
    profile: Profile
    memory: MemoryUse
    outputs: tuple[Array, ...]
    mismatches: int
    simulation_seconds: float

    @property
    def matches_reference(self) -> bool:
        """Whether the device computed what the reference computes."""
        return self.mismatches == 0

    @property
    def mac_coverage(self) -> float:
        """The share of the model's multiply-accumulates that accelerators did."""
        total = sum(layer.macs for layer in self.program.layers)
        offloaded = sum(layer.macs for layer in self.program.layers if layer.target != "cpu")
        return offloaded / total if total else 0.0

    def record(self) -> dict[str, Any]:
        """The JSON document ``covp.run/1`` of docs: instructions exact, cycles estimated."""
        profile = self.profile
        return {
            "schema": "covp.run/1",
            "model": self.model,
            "model_source": self.source,
            "platform": self.platform.name,
            "device": self.device,
            "toolchain": self.toolchain,
            "accelerators": list(self.accelerators),
            "instructions": profile.instructions,
            "cycles": profile.cycles,
            "seconds": profile.seconds,
            "energy_j": None,
            "simulation_seconds": self.simulation_seconds,
            "matches_reference": self.matches_reference,
            "transfers": asdict(profile.transfers),
            "accelerator_jobs": dict(profile.jobs),
            "memory": {
                "flash_bytes": self.memory.flash_bytes,
                "ram_bytes": self.memory.ram_bytes,
                "arena_bytes": self.memory.arena_bytes,
                "stack_bytes": self.memory.stack_bytes,
            },
            "layers": [
                {
                    "index": entry.layer.index,
                    "name": entry.layer.name,
                    "op": entry.layer.op,
                    "target": entry.layer.target,
                    "macs": entry.layer.macs,
                    "instructions": entry.instructions,
                    "cycles": entry.cycles,
                    "schedule": entry.layer.schedule,
                    "offload": asdict(entry.offload) if entry.offload else None,
                }
                for entry in profile.layers
            ],
            "between": {
                "instructions": profile.between.instructions,
                "cycles": profile.between.cycles,
            },
            "outputs": [
                {
                    "name": tensor.name,
                    "dtype": tensor.dtype.name,
                    "shape": list(tensor.shape),
                    "data": array.reshape(-1).tolist(),
                }
                for tensor, array in zip(self.program.outputs, self.outputs, strict=True)
            ],
        }


def evaluate(
    model: str | Path,
    platform: Platform | str | Path,
    accelerators: Sequence[str | AcceleratorBackend] = (),
    *,
    device: str = "virtual",
    toolchain: str = "zig",
    inputs: Sequence[Array] | None = None,
    seed: int = 0,
    allow_unused: bool = False,
    optimize: Objective = "speed",
    tuned: bool = True,
    max_scratch: int | None = None,
    by_layer: bool = False,
    require_offload: Sequence[str] = (),
) -> Evaluation:
    """Compile a model, run it once and compare its outputs with the reference.

    Args:
        model: a path or a zoo name.
        inputs: one array an input; by default random ones from ``seed``.
        allow_unused: an accelerator that gets no layer is not an error.
        optimize: which of the tuned schedules to take.
        tuned: use the tuner's records where there are some.
        max_scratch: leave out records of schedules with more bytes of working memory.
        by_layer: the host starts the layers one by one, so that a device which only knows the cost
            of an execution tells that of each layer.
        require_offload: operator kinds of which every layer has to be on an accelerator.

    Raises:
        CovpError: with one line, whatever goes wrong.
    """
    platform = load_platform(platform)
    # in front of the model: their files may register its operators
    backends = find_backends(accelerators)
    graph = load_model(model)
    program = compile(
        graph,
        platform,
        backends,
        allow_unused=allow_unused,
        schedules=recorded_schedules(platform, toolchain, optimize, device, max_scratch)
        if tuned
        else None,
    )
    _demand_offload(graph, program, require_offload)
    values = random_inputs(graph.inputs, seed) if inputs is None else list(inputs)
    with Session(platform, device=device, toolchain=toolchain, strict=by_layer) as session:
        module = session.load(program, hosted=by_layer)
        start = time.perf_counter()
        result = module.run(*values)
        elapsed = time.perf_counter() - start
        outputs = tuple(result) if isinstance(result, list) else (result,)
        _demand_jobs(program, session.profile())
        wanted = program.reference(values)
        return Evaluation(
            model=graph.name,
            source=graph.source,
            platform=platform,
            device=device,
            toolchain=session.toolchain.version,
            accelerators=tuple(a if isinstance(a, str) else a.spec for a in accelerators),
            program=program,
            profile=session.profile(),
            memory=session.memory(),
            outputs=outputs,
            mismatches=sum(differences(*pair).size for pair in zip(outputs, wanted, strict=True)),
            simulation_seconds=elapsed,
        )


def _demand_offload(graph: Graph, program: Program, kinds: Sequence[str]) -> None:
    """Raises AcceleratorError: a layer of one of these kinds is left to the core."""
    stated = {op.index: op.kind for op in graph.ops}
    for kind in kinds:
        if kind not in stated.values():
            raise UsageError(
                f"--require-offload {kind}: {graph.name} has no such operator; "
                f"{near_misses(kind, set(stated.values()))}"
            )
        for layer in program.layers:
            if layer.target == "cpu" and kind in (layer.op, stated.get(layer.index)):
                reasons = [r for r in program.refusals if r.layer == layer.name]
                why = "; ".join(f"{r.accelerator}: {r.reason}" for r in reasons)
                raise AcceleratorError(
                    f"{layer.name} ({kind}) runs on the core: {why or 'no accelerator was named'}"
                )


def _demand_jobs(program: Program, profile: Profile) -> None:
    """Raises AcceleratorError: layers are on an accelerator whose hardware was never started."""
    for name, count in profile.jobs.items():
        layers = [layer.name for layer in program.layers if layer.target == name]
        if layers and count == 0:
            raise AcceleratorError(
                f"accelerator {name} received no job for its {len(layers)} layers, first "
                f"{layers[0]}: its driver does not start it"
            )


@dataclass(frozen=True)
class Missed:
    """A layer that an accelerator refused, and what taking it would be worth.

    Attributes:
        worth: cycles by which the layer would be shorter than where it runs now, the driver's left
            out: an estimate. None where the accelerator does not estimate the layer.
    """

    refusal: Refusal
    worth: int | None


def missed(result: Evaluation) -> list[Missed]:
    """Every refusal of an evaluation, in the order of the layers."""
    cycles = {entry.layer.name: entry.cycles for entry in result.profile.layers}
    found = []
    for refusal in result.program.refusals:
        spent, worth = cycles.get(refusal.layer), None
        if spent is not None and refusal.estimate is not None:
            worth = max(0, spent - refusal.estimate)
        found.append(Missed(refusal, worth))
    return found


def recorded_schedules(
    platform: Platform,
    toolchain: str,
    optimize: Objective = "speed",
    device: str = "virtual",
    max_scratch: int | None = None,
) -> ScheduleChoice:
    """What the tuner's records say for each operator, for `covp.compile`.

    ``max_scratch``: bytes of working memory that a layer's schedule may take. A layer without such
    a record gets the kernel's own choice, whatever that takes.
    """
    kind = device.partition(":")[0]
    records = Records.available()
    compiler = get_toolchain(toolchain, platform.core).version
    return lambda op: records.schedule(op, platform.core, compiler, optimize, kind, max_scratch)


def read_input(path: str | Path) -> Array:
    """An input from a .npy file.

    Raises:
        UsageError: the file is missing or holds no plain array.
    """
    try:
        value = np.load(path, allow_pickle=False)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (ValueError, EOFError):
        raise UsageError(f"{path}: holds no plain array; write it with numpy.save") from None
    if not isinstance(value, np.ndarray):
        raise UsageError(f"{path}: holds several arrays; save one with numpy.save")
    return value


def speedup(alone: Evaluation, accelerated: Evaluation) -> Mapping[str, float | None]:
    """What the accelerators bring: instructions saved (share) and speedup in estimated cycles."""
    before, after = alone.profile, accelerated.profile
    saved = faster = None
    if before.instructions and after.instructions is not None:
        saved = 1 - after.instructions / before.instructions
    if before.cycles is not None and after.cycles:
        faster = before.cycles / after.cycles
    return {"instructions_saved": saved, "speedup": faster}
