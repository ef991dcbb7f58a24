"""`run_record`: the figures of an evaluation as the JSON document ``covp.run/1``."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from numpy.typing import NDArray

from covp.chip.platform_file import Platform
from covp.codegen.lifetimes import arena_tensors, live_bytes
from covp.codegen.program import AcceleratorInstance, Program, ProgramLayer, ProgramTensor
from covp.device.phase_count import Causes, FunctionCount, Traffic
from covp.device.timing.peak import core_peak
from covp.evaluation.area import estimate_areas
from covp.evaluation.check import Check, Mismatch
from covp.evaluation.documents import (
    AreaRecord,
    CheckRecord,
    CoreRecord,
    CostRecord,
    DeviationRecord,
    EnergyPartRecord,
    EnergyRecord,
    Fetched,
    FunctionRecord,
    LayerRecord,
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
)
from covp.evaluation.energy import Energy
from covp.evaluation.memory_map import MemoryMap, holds
from covp.evaluation.origin import origin
from covp.evaluation.source.check import SourceCheck
from covp.graph.equality import FLOAT_TOLERANCE
from covp.graph.float_scaling import dequantize
from covp.graph.graph import Graph
from covp.graph.ops import macs
from covp.runtime.profile import Cost, LayerProfile

if TYPE_CHECKING:
    from covp.evaluation.result import Evaluation

S = TypeVar("S", bound=msgspec.Struct)


def run_record(run: Evaluation) -> Run:
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
        cycles_source=profile.sources.cycles,
        cycles_by_cause=_causes(profile.causes),
        bytes=_moved(profile.traffic),
        bytes_by_master=_moved_by_master(profile.traffic),
        seconds=profile.seconds,
        energy_j=energy.joules if energy else None,
        energy_source=_energy(energy) if energy else None,
        core=_core(platform),
        units=list(_units(program)),
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
        streaming=_streaming(build.graph),
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
            layers.record(entry, live) for entry, live in zip(profile.layers, lives, strict=False)
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


class _Layers:
    """What the layers of a program take and make, beside what they cost."""

    def __init__(self, program: Program, memory_map: MemoryMap) -> None:
        self._graph = program.lowered or program.graph
        self._code_bytes = memory_map.code_bytes or {}
        named = {name for layer in program.layers for name in layer.operators}
        self._views = {op.outputs[0].name: op.inputs[0] for op in self._graph.ops
                       if op.name not in named and op.inputs}  # fmt: skip
        """By the name of what an operator without a layer makes, such as a reshape: its input."""

    def record(self, entry: LayerProfile, live: int) -> LayerRecord:
        """Return the record of a layer; ``live``: bytes of the arena in use while it runs."""
        layer = entry.layer
        own = [op for op in self._graph.ops if op.name in layer.operators]
        taken = [tensor for op in own for tensor in op.inputs if tensor is not None]
        made = {tensor.name for op in own for tensor in op.outputs}
        inputs = []
        for tensor in taken:
            source = tensor
            while (viewed := self._views.get(source.name)) is not None:
                source = viewed
            if source.data is None and source.name not in made:
                inputs.append(source.name)
        result = layer.outputs[0] if layer.outputs else None
        return LayerRecord(
            index=layer.index,
            name=layer.name,
            op=layer.op,
            target=layer.target,
            macs=layer.macs,
            **_cost(entry),
            estimated_cycles=layer.estimated_cycles,
            schedule=layer.schedule,
            offload=entry.offload,
            work=entry.work,
            tensor=result.name if result else None,
            inputs=list(dict.fromkeys(inputs)),
            shape=list(result.shape) if result else None,
            dtype=result.dtype.name if result else None,
            parameter_bytes=sum(t.data.nbytes for t in taken if t.data is not None),
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
        "bytes": _moved(cost.traffic),
        "bytes_by_master": _moved_by_master(cost.traffic),
    }


def _causes(causes: Causes | None) -> dict[str, int] | None:
    return None if causes is None else dict(causes)


def _functions(functions: Sequence[FunctionCount]) -> list[FunctionRecord] | None:
    """Return the functions, the most expensive first; None where they were not counted."""
    rows = sorted(functions, key=lambda function: -function.cycles)
    return [
        _copy(FunctionRecord, function, cycles_by_cause=dict(function.causes)) for function in rows
    ] or None


def _moved(traffic: Traffic | None) -> dict[str, Moved] | None:
    """Return the bytes of all bus masters together, by memory; None: not counted."""
    if traffic is None:
        return None
    total: dict[str, Moved] = {}
    for memories in traffic.values():
        for memory, moved in memories.items():
            before = total.get(memory, Moved())
            total[memory] = Moved(read=before.read + moved.read, write=before.write + moved.written)
    return total


def _moved_by_master(traffic: Traffic | None) -> dict[str, dict[str, Fetched]] | None:
    if traffic is None:
        return None
    return {
        master: {
            memory: Fetched(read=moved.read, write=moved.written, fetch=moved.fetched)
            for memory, moved in memories.items()
        }
        for master, memories in traffic.items()
    }


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


def _units(program: Program) -> Iterator[UnitRecord]:
    areas = {area.name: area.um2 for area in estimate_areas(program)}
    for unit in program.accelerators:
        yield _unit(unit, areas.get(unit.name))


def _unit(unit: AcceleratorInstance, um2: float | None) -> UnitRecord:
    size, port = unit.backend.hardware_size(), unit.backend.values.get("bytes_per_cycle")
    return UnitRecord(
        name=unit.name,
        spec=unit.spec,
        macs_per_cycle=size[0] if size else None,
        bytes_per_cycle=port if isinstance(port, int) else None,
        um2=um2,
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


def _streaming(graph: Graph) -> StreamRecord | None:
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
