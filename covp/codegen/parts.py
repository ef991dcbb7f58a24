"""`emit_in_parts`: a layer as the calls of a program in which core and units work at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from covp.accelerator.backend import AcceleratorBackend
from covp.accelerator.call import CCall, Step
from covp.accelerator.partition import Placement, partition
from covp.base.plugins import call_hook
from covp.base.request import EVERY_MATCH
from covp.chip.cores import Core
from covp.codegen.bands import Band, can_be_cut, cut
from covp.codegen.c_text import c_comment
from covp.codegen.call_expressions import unused_name
from covp.codegen.calls import CallFile, emit_calls, lower_placement, split_of
from covp.codegen.layer import (
    Argument,
    FunctionCall,
    KernelRequest,
    LayerCode,
    PartCode,
    Pointer,
    Scratch,
    emit_layer,
    prototype,
    schedules,
    whole_part,
)
from covp.codegen.schedule import Schedule
from covp.errors import AcceleratorError, UsageError
from covp.graph.graph import Graph, Op, Tensor


@dataclass(frozen=True)
class _Function:
    """A C function: its operator, and its arguments by parameter name."""

    name: str
    op: Op
    arguments: dict[str, Argument]

    def call(self, slices: Mapping[int, tuple[Tensor, int]], memory: _Shared) -> FunctionCall:
        """Return the call for a band."""
        pointers = []
        for argument in self.arguments.values():
            if isinstance(argument, Scratch):
                pointers.append(Pointer(memory.of[id(argument)], 0, argument.nbytes))
            else:
                whole, offset = slices.get(id(argument), (argument, 0))
                pointers.append(Pointer(whole, offset, argument.nbytes))
        declaration = prototype(self.name, self.op, self.arguments)
        return FunctionCall(self.name, declaration, tuple(pointers))


class _Shared:
    """Working memory of a layer: its parts never need it at the same time."""

    def __init__(self, functions: Sequence[Sequence[_Function]]) -> None:
        self.of: dict[int, Scratch] = {}
        columns: list[list[Scratch]] = []
        for together in functions:
            arguments = [a for function in together for a in function.arguments.values()]
            own = {id(a): a for a in arguments if isinstance(a, Scratch)}
            for position, scratch in enumerate(own.values()):
                columns += [[]] if position == len(columns) else []
                columns[position].append(scratch)
        for column in columns:
            shared = Scratch(max(scratch.nbytes for scratch in column))
            self.of |= {id(scratch): shared for scratch in column}


def emit_in_parts(
    placement: Placement,
    core: Core,
    function: str,
    chosen: Schedule | None,
    rows: int | None,
    units: Sequence[AcceleratorBackend] = (),
) -> LayerCode:
    """Emit a layer with its `PartCode`, and a function for all of it.

    Args:
        placement: the layer.
        core: that it runs on, or beside.
        function: name of the C function of the whole layer; those of parts begin with it.
        chosen: the schedule on the core; None leaves it to the kernel.
        rows: of the output in a band; None: the layer is one part.
        units: that compute its parts; empty: the one that got the layer computes all.

    Raises:
        UsageError: the layer cannot be cut into such bands.
        AcceleratorError: the backend's lowering broke its contract.
    """
    op = placement.ops[-1]
    if rows is not None:
        bands = cut(op, rows) if len(placement.ops) == 1 and can_be_cut(op) else []
        if not bands:
            raise UsageError(f"{op.name} cannot be cut into bands of {rows} rows")
        return _emit_bands(placement, core, function, chosen, bands, units)
    if units:
        placement = replace(placement, backend=units[0])
    if placement.backend is None:
        code = emit_layer(KernelRequest(op, core, function, chosen))
        return replace(code, parts=(whole_part(code),))
    steps = lower_placement(placement)
    if overlapping_call(placement, steps) is None:
        code = emit_calls(placement, core, function)
        return replace(code, parts=(whole_part(code),))
    file = CallFile(op, core, placement.target)
    functions = _functions(file, placement, function, steps)
    parts = [_part(functions, {}, _Shared([functions]))]
    return _layer(file, op, function, parts, split_of(steps))


def overlapping_call(placement: Placement, steps: Sequence[Step]) -> tuple[int, str, str] | None:
    """Return the call that the core need not wait for: its position, and what begins and ends it.

    Raises:
        AcceleratorError: the hook `overlaps` gave something else than two names.
    """
    backend = placement.backend
    assert backend is not None
    for position, step in reversed(list(enumerate(steps))):
        if isinstance(step, CCall):
            where = f"accelerator {backend.name}"
            names: object = call_hook(where, "overlaps", backend.overlaps, step.function)
            if names is None:
                return None
            if not (isinstance(names, tuple) and len(names) == 2):
                raise AcceleratorError(
                    f"{where}: overlaps() must return two function names or None, not {names!r:.80}"
                )
            return position, *names
    return None


def _functions(
    file: CallFile, placement: Placement, name: str, steps: Sequence[Step]
) -> list[_Function]:
    """Return functions that begin and end a layer, or one for all where its driver has none."""
    match, driver = placement.match, overlapping_call(placement, steps)
    assert match is not None
    op = match.op
    if driver is None:
        return [_Function(name, op, file.function(name, match, steps, placement.target))]
    position, begin, end = driver
    call = steps[position]
    assert isinstance(call, CCall)
    first = [*steps[:position], replace(call, function=begin)]
    rest = [replace(call, function=end, arguments=()), *steps[position + 1 :]]
    halves = ((f"{name}_begin", first), (f"{name}_end", rest))
    return [
        _Function(half, op, file.function(half, match, part, placement.target))
        for half, part in halves
    ]


def _part(
    functions: Sequence[_Function],
    slices: Mapping[int, tuple[Tensor, int]],
    memory: _Shared,
    unit: str = "",
) -> PartCode:
    call, *end = (function.call(slices, memory) for function in functions)
    return PartCode(call, end[0] if end else None, unit)


def _emit_bands(
    placement: Placement,
    core: Core,
    function: str,
    chosen: Schedule | None,
    bands: Sequence[Band],
    units: Sequence[AcceleratorBackend],
) -> LayerCode:
    op = placement.ops[-1]
    computing: Sequence[AcceleratorBackend | None] = units or [placement.backend] * len(bands)
    forms = {
        (backend, id(band.op)): band.op for backend, band in zip(computing, bands, strict=True)
    }
    file = CallFile(op, core, placement.target)
    made: dict[tuple[AcceleratorBackend | None, int], list[_Function]] = {}
    files: dict[str, str] = {}
    schedule, in_place = "", True
    for number, (key, form) in enumerate(forms.items()):
        backend, name = key[0], f"{function}_rows{number}"
        if backend is None:
            code = _kernel(form, core, name, chosen)
            schedule = schedule or code.schedule
            in_place = in_place and len(code.in_place) > 0
            files[f"{name}.c"] = code.source
            made[key] = [_Function(name, form, code.arguments)]
        else:
            placed = placed_band(backend, form, core)
            steps = lower_placement(placed)
            schedule = split_of(steps)
            made[key] = _functions(file, placed, name, steps)
    # units work at the same time, so each has working memory of its own
    memory = {
        unit: _Shared([own for (backend, _), own in made.items() if backend is unit])
        for unit in computing
    }
    parts = [
        _part(made[unit, id(band.op)], band.slices, memory[unit], unit.name if unit else "")
        for unit, band in zip(computing, bands, strict=True)
    ]
    shared = [unit.name for unit in dict.fromkeys(units)]
    on = f"on {', '.join(shared)}" if len(shared) > 1 else ""
    text = ", ".join(filter(None, (schedule, f"{len(bands)} bands", on)))
    layer = _layer(file, op, function, parts, text)
    if placement.backend is None and in_place and _is_row_by_row(parts, op):
        reusable = tuple(t for t in op.inputs if t is not None and not t.constant)
        layer = replace(layer, in_place=reusable)
    return replace(layer, files=files)


def _kernel(form: Op, core: Core, name: str, chosen: Schedule | None) -> LayerCode:
    """Return a band on the core, with the schedule of the whole layer where that fits."""
    request = KernelRequest(form, core, name)
    fits = chosen is not None and chosen in schedules(request)
    return emit_layer(replace(request, schedule=chosen if fits else None))


def placed_band(backend: AcceleratorBackend, form: Op, core: Core) -> Placement:
    """Return a band on an accelerator. Raises UsageError: the accelerator rejects it."""
    inputs = {id(t): t for t in form.inputs if t is not None and not t.constant}
    graph = Graph(form.name, list(inputs.values()), [form.output], [form])
    (placed,) = partition(graph, [backend], options=EVERY_MATCH).placements
    if placed.backend is None:
        raise UsageError(f"{form.name}: {backend.name} rejects a band of it")
    return placed


def _is_row_by_row(parts: Sequence[PartCode], op: Op) -> bool:
    """Return whether each band reads the very bytes that it writes, of other tensors."""
    for part in parts:
        places = {(p.offset, p.nbytes) for p in part.pointers if isinstance(p.argument, Tensor)}
        if len(places) > 1:
            return False
    return True


def _layer(
    file: CallFile, op: Op, function: str, parts: Sequence[PartCode], schedule: str
) -> LayerCode:
    """Return the layer of these parts, with a function that calls them one after the other."""
    arguments: dict[str, Argument] = {}
    names: dict[int, str] = {}
    for argument in (pointer.argument for part in parts for pointer in part.pointers):
        if id(argument) not in names:
            names[id(argument)] = unused_name(_stem(argument, op), arguments)
            arguments[names[id(argument)]] = argument
    calls = [call for part in parts for call in (part.call, part.end) if call is not None]
    body = [f"    {_statement(call, names)}" for call in calls]
    declarations = dict.fromkeys(f"{call.declaration};" for call in calls)
    whole = "\n".join([prototype(function, op, arguments), "{", *body, "}\n"])
    what = c_comment(
        f"All of {op.name}, part by part; the run function calls the parts themselves."
    )
    source = "\n".join([file.source(), *declarations, what, whole])
    return LayerCode(
        op,
        function,
        source,
        arguments,
        schedule=schedule,
        target=file.target,
        parts=tuple(parts),
    )


def _stem(argument: Argument, op: Op) -> str:
    if isinstance(argument, Scratch):
        return "scratch"
    return "output" if any(argument is output for output in op.outputs) else "input"


def _statement(call: FunctionCall, names: Mapping[int, str]) -> str:
    pointers = ", ".join(
        f"(void *)((uintptr_t){names[id(pointer.argument)]} + {pointer.offset}u)"
        for pointer in call.pointers
    )
    return f"{call.name}({pointers});"
