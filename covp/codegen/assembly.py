"""`assemble`: the layers of a graph, written in C, and their memory as a `Program`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from covp.accelerator.backend import AcceleratorBackend
from covp.accelerator.partition import Partition
from covp.accelerator.placement import Placement
from covp.base.c_names import c_name
from covp.base.plugins import call_hook
from covp.chip.platform_file import Platform
from covp.codegen.aliases import first_names
from covp.codegen.arena import ArenaPlan
from covp.codegen.calls import StartupCode
from covp.codegen.inference import InferenceCode
from covp.codegen.layer import LayerCode, PartCode, Scratch
from covp.codegen.offload import accelerator_places, cache_line, checked_driver, unmatched_patterns
from covp.codegen.overlap import OverlapPlan, spans
from covp.codegen.program import (
    AcceleratorInstance,
    LayerMemory,
    LayerPart,
    Piece,
    Program,
    ProgramLayer,
)
from covp.codegen.states import StateCode
from covp.errors import AcceleratorError
from covp.graph.graph import Graph, Op, Strip, Tensor
from covp.graph.ops import OPS, definition
from covp.graph.ops.tiled_attention import TiledAttention
from covp.graph.user_operators import UserOperator, find_user_operator


def assemble(
    graph: Graph,
    lowered: Graph,
    platform: Platform,
    backends: Sequence[AcceleratorBackend],
    split: Partition,
    layers: Sequence[LayerCode],
    plan: OverlapPlan | None = None,
) -> Program:
    """Return the program of a graph whose layers are written.

    Args:
        graph: as the model states it.
        lowered: after all passes.
        platform: that the program is for.
        backends: of the accelerators that have drivers in it.
        split: where the operators of ``lowered`` run.
        layers: in an order that can run.
        plan: the order of calls where core and units work at once.

    Raises:
        AcceleratorError, PlatformError, UsageError: an accelerator cannot be part of it.
    """
    name = c_name(graph.name)
    actions = plan.actions if plan is not None else ()
    around = spans(actions, len(layers)) if actions else ()
    memory = ArenaPlan(lowered, layers, around, cache_line(platform, backends))
    states = StateCode.of(name, lowered.states, memory)
    startup = StartupCode.of(backends)
    inference = InferenceCode(name, layers, memory, startup, states, actions)
    sources = {layer.function + ".c": layer.source for layer in layers}
    for layer in layers:
        sources |= layer.files
    sources |= inference.sources
    instances = _add_drivers(sources, backends, platform, (f"{name}.c", f"{name}.h"))
    return Program(
        name=name,
        graph=graph,
        platform=platform,
        sources=sources,
        run_function=inference.function,
        startup_function=inference.startup_function,
        arena_symbol=f"{name}_arena",
        arena_bytes=memory.nbytes,
        arena_alignment=memory.alignment,
        inputs=tuple(memory.describe(t) for t in lowered.inputs),
        outputs=tuple(memory.describe(t) for t in lowered.outputs),
        layers=_layers(graph, lowered, split, layers, memory),
        accelerators=instances,
        refusals=split.refusals,
        alternatives=split.alternatives,
        warnings=(*graph.notes, *unmatched_patterns(lowered, split, backends), *split.warnings),
        # The first decides results. The second is not needed (kernels/words.py), but without it vww
        # takes 0.3 % more with GCC for Arm.
        flags=("-ffp-contract=off", "-fno-strict-aliasing"),
        operators=_user_operators(graph),
        lowered=lowered,
        states=states.states,
        reset_function=states.reset_function,
        keep_function=states.keep_function,
    )


def _add_drivers(
    sources: dict[str, str],
    backends: Sequence[AcceleratorBackend],
    platform: Platform,
    reserved: Sequence[str],
) -> tuple[AcceleratorInstance, ...]:
    """Put the drivers' files into ``sources``; the accelerators with their places.

    ``reserved`` are names of files that an export adds.
    """
    instances = []
    places = accelerator_places(platform, len(backends))
    for backend, (base, irq) in zip(backends, places, strict=True):
        driver = checked_driver(backend, base, irq, platform)
        for file in driver:
            if file in sources or file in reserved:
                raise AcceleratorError(
                    f"accelerator {backend.name}: the program has a file {file} already, from "
                    "another driver or the model; begin its name with the instance's (self.name) "
                    "or use the accelerator only once"
                )
        sources |= driver
        instances.append(AcceleratorInstance(backend.name, backend, base, irq, tuple(driver)))
    return tuple(instances)


def _user_operators(graph: Graph) -> tuple[UserOperator, ...]:
    found = (find_user_operator(kind) for kind in dict.fromkeys(op.kind for op in graph.ops))
    return tuple(operator for operator in found if operator is not None)


def _layers(
    graph: Graph,
    lowered: Graph,
    split: Partition,
    layers: Sequence[LayerCode],
    memory: ArenaPlan,
) -> tuple[ProgramLayer, ...]:
    macs = _stated_macs(graph, split)
    placements = {placement.ops[-1]: placement for placement in split.placements}
    roots = first_names(lowered)
    return tuple(_describe(layer, memory, placements[layer.op], macs, roots) for layer in layers)


def _stated_macs(graph: Graph, split: Partition) -> dict[str, int]:
    """Multiply-accumulates by operator name as the model states them, whatever the passes removed.

    Those of an operator that passes replaced are its last successor's; several operators may
    come from one node of an ONNX file, and then have the same index.
    """
    stated = {op.name: definition(op.kind).macs(op) for op in graph.ops}
    lowered = [op for placement in split.placements for op in placement.ops]
    left = {op.name: op.index for op in lowered}
    found = {name: stated.get(name, 0) for name in left}
    for op in lowered:
        if isinstance(op.attributes, TiledAttention):
            found[op.name] = sum(stated.pop(part.name, 0) for part in op.attributes.ops)
    strips = _of_strips(lowered, stated)
    found |= strips
    in_strips = _wholes(lowered)
    stated = {name: count for name, count in stated.items() if name not in in_strips}
    made = {index: name for name, index in left.items() if name not in stated}
    for op in graph.ops:
        if op.name not in left and op.name in stated and op.index in made:
            found[made[op.index]] += stated[op.name]
    return found


def _wholes(lowered: Sequence[Op]) -> dict[str, Op]:
    """Return the operators that are computed in strips, by name."""
    found = (op.whole for op in lowered if isinstance(op, Strip))
    return {op.name: op for op in found if op is not None}


def _of_strips(lowered: Sequence[Op], stated: Mapping[str, int]) -> dict[str, int]:
    """Return the share of each strip in what the model states of its layer, by name."""
    rows: dict[str, int] = {}
    found = {}
    for op in lowered:
        if isinstance(op, Strip) and op.whole is not None and op.kind == op.whole.kind:
            name, height = op.whole.name, op.whole.output.shape[1]
            before = rows.get(name, 0)
            rows[name] = before + op.output.shape[1]
            total = stated.get(name, 0)
            found[op.name] = total * rows[name] // height - total * before // height
    return found


def _describe(
    layer: LayerCode,
    memory: ArenaPlan,
    placement: Placement,
    macs: Mapping[str, int],
    roots: Mapping[int, str],
) -> ProgramLayer:
    return ProgramLayer(
        index=layer.op.index,
        name=layer.op.name,
        op=layer.op.kind,
        target=layer.target,
        macs=sum(macs[op.name] for op in placement.ops),
        function=layer.function,
        schedule=layer.schedule or _schedule_of(placement),
        arguments=tuple(memory.offset(argument) for argument in layer.arguments.values()),
        outputs=tuple(memory.describe(tensor) for tensor in layer.op.outputs),
        operators=placement.names,
        estimated_cycles=placement.cycles,
        work=sum(_count_macs(op, macs) for op in placement.ops),
        memory=_memory_of(layer, memory),
        parts=tuple(_part_of(part, layer, roots) for part in layer.parts),
        strip_of=layer.op.whole.name if isinstance(layer.op, Strip) and layer.op.whole else "",
        keeps_constants=_keeps_constants(placement),
    )


def _keeps_constants(placement: Placement) -> bool:
    backend, match = placement.backend, placement.match
    return backend is not None and match is not None and backend.is_kept(match.op.name)


def _schedule_of(placement: Placement) -> str:
    if placement.backend is None or placement.match is None:
        return ""
    backend = placement.backend
    where = f"accelerator {backend.name}"
    found: object = call_hook(where, "schedule", backend.schedule, placement.match)
    if not isinstance(found, str):
        raise AcceleratorError(f"{where}: schedule() gave {found!r:.80}, not a text")
    return found


def _part_of(part: PartCode, layer: LayerCode, roots: Mapping[int, str]) -> LayerPart:
    reads: list[Piece] = []
    writes: list[Piece] = []
    outputs = {id(output) for output in layer.op.outputs}
    for pointer in part.pointers:
        tensor = pointer.argument
        if isinstance(tensor, Tensor):
            name = roots.get(id(tensor), tensor.name)
            piece = Piece(name, pointer.offset, pointer.offset + pointer.nbytes)
            (writes if id(tensor) in outputs else reads).append(piece)
    functions = (part.call.name, *([part.end.name] if part.end else []))
    return LayerPart(functions, tuple(reads), tuple(writes), part.unit)


def _memory_of(layer: LayerCode, memory: ArenaPlan) -> tuple[LayerMemory, ...]:
    """Return the memory that a layer may read and write; an output may lie where an input was."""
    found = []
    for name, argument in layer.arguments.items():
        offset, size = memory.offset(argument), argument.nbytes
        if isinstance(argument, Scratch):
            found.append(LayerMemory(name, offset, size, False, True, False))
        else:
            written = any(argument is output for output in layer.op.outputs)
            found.append(LayerMemory(argument.name, offset, size, not written, written, written))
    return tuple(found)


def _count_macs(op: Op, macs: Mapping[str, int]) -> int:
    """Return an operator's MACs; one that an accelerator's pass made has those in ``macs``."""
    return definition(op.kind).macs(op) if op.kind in OPS else macs[op.name]
