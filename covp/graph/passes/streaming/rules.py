"""Plan how operators are computed from new rows, by their index maps.

Time is an axis of an input. Where its index moves in even steps with one axis of the output, that
is the output's time: the step is a stride, and what the other loops add to the index is the reach
of a window. Nothing else that is read may move with it. What results is an operator on fewer rows;
it is taken if its shapes are right and its own maps read what the plain network's last rows read.
Everything else is computed from the whole window.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from covp.errors import ModelError
from covp.graph.attributes import StridedSlice
from covp.graph.graph import Op, Tensor
from covp.graph.index_map import Index, IndexMap, is_moved
from covp.graph.ops.definition import definition
from covp.graph.ops.pooling_nd import PoolND
from covp.graph.ops.rearrange import BroadcastTo
from covp.graph.passes.streaming.rows import Plan, Reach, Refused, Rows, slide, with_rows

_NOWHERE = -1
"""The axis of time in an output without time."""
_TRIED = 3
"""Number of rows on which maps are compared: further ones move by the same steps."""


def plan(op: Op, rows: Sequence[Rows | None], hop: int) -> Plan | None:
    """Return how an operator computes its new rows; None: it needs its inputs whole.

    Args:
        op: of the plain network.
        rows: of its inputs, of which one at least has time.
        hop: new rows of the network's input.

    Raises:
        Refused: it cannot be part of a stream.
    """
    maps = definition(op.kind).reads(op)
    _demand_no_position(op, rows, maps[0])
    ways = [_way(own, rows, output) for own, output in zip(maps, op.outputs, strict=True)]
    way = ways[0]
    if way is None or any(other != way for other in ways):
        return None
    axis, reaches = way
    times = [(own, reach) for own, reach in zip(rows, reaches, strict=True) if own and reach]
    if len({own.step * reach.stride for own, reach in times}) > 1:
        return None
    if axis == 0 and any(reach.stride > 1 for _, reach in times):
        return None  # rows together become a sample of a batch
    for own, reach in times:
        outside = _outside(own, reach, 1 if axis == _NOWHERE else op.output.shape[axis])
        if any(outside) and len(times) > 1:
            return None  # one after the other
        _demand_no_padding(op, outside)
    found = [
        slide(op, own, reach, axis, hop) if own and reach else (0, 0, None)
        for own, reach in zip(rows, reaches, strict=True)
    ]
    out = next(new for own, (_, _, new) in zip(rows, found, strict=True) if own)
    needs = tuple(need for need, _, _ in found)
    made = Plan(needs, out, _attributes(op, rows, [need - rest for need, rest, _ in found], out))
    saves = out or any(own and own.extent > need for own, need in zip(rows, needs, strict=True))
    return made if saves and _is_last_part(op, rows, made, maps) else None


def _demand_no_position(op: Op, rows: Sequence[Rows | None], first: IndexMap) -> None:
    positional = set(definition(op.kind).positional(op))
    for own, reads in zip(rows, first.inputs, strict=True):
        if own and reads and reads[own.axis].loops() & positional:
            raise Refused(f"{op.name} ({op.kind}) depends on where in the window a row is")


def _demand_no_padding(op: Op, rows: tuple[int, int]) -> None:
    if any(rows):
        raise Refused(
            f"{op.name} ({op.kind}) pads time with {rows[0]} + {rows[1]} rows at the ends of each "
            "window; train the network without padding in time (padding='valid')"
        )


def _outside(own: Rows, reach: Reach, extent: int) -> tuple[int, int]:
    """Return how many rows are read before the window and after it."""
    end = reach.begin + (extent - 1) * reach.stride + reach.length
    return max(0, -reach.begin), max(0, end - own.extent)


def _way(
    own: IndexMap, rows: Sequence[Rows | None], output: Tensor
) -> tuple[int, list[Reach | None]] | None:
    """Return the axis of time in an output, and what its rows reach of each input that has time.

    None: there is no such axis.
    """
    extents = (*output.shape, *(loop.extent for loop in own.loops))
    if 0 in extents:
        return None
    axes, reaches = set(), []
    for position, time in enumerate(rows):
        found = _reach(own, position, time, output) if time else (None, None)
        if found is None:
            return None
        axes |= {found[0]} - {None}
        reaches.append(found[1])
    if len(axes) > 1:
        return None
    axis = axes.pop()
    assert axis is not None
    return (axis, reaches) if axis == _NOWHERE or _is_still(own, rows, axis) else None


def _reach(own: IndexMap, position: int, time: Rows, output: Tensor) -> tuple[int, Reach] | None:
    """Return the axis that moves the time of one input, and what each row reaches of it."""
    reads, rank = own.inputs[position], len(output.shape)
    read = None if reads is None else reads[time.axis]
    if not isinstance(read, Index):
        return None
    loops = {number for number in read.loops() if number >= rank}
    axes = [n for n in read.loops() - loops if output.shape[n] > 1]
    if any(own.loops[number - rank].order == "scan" for number in loops):
        return None
    stride, axis = max(((read.step(n) or 0, n) for n in axes), default=(1, _NOWHERE))
    if stride < 1:
        return None
    ranges = own.ranges(tuple((0, 1 if n == axis else end) for n, end in enumerate(output.shape)))
    first, last = read.bounds(ranges)
    return axis, Reach(first, last - first + 1, stride)


def _is_still(own: IndexMap, rows: Sequence[Rows | None], axis: int) -> bool:
    """Return whether nothing but the inputs' time moves with an axis of the output."""
    return all(
        read.step(axis) == 0
        for reads, time in zip(own.inputs, rows, strict=True)
        for number, read in enumerate(reads or ())
        if time is None or number != time.axis
    )


def _attributes(op: Op, rows: Sequence[Rows | None], read: Sequence[int], out: Rows | None) -> Any:
    """Return the attributes on new rows, of operators where they say how many these are.

    Args:
        op: the operator.
        rows: of its inputs.
        read: how many rows of each are read, from the first that is needed on.
        out: rows of the output.
    """
    a, own = op.attributes, rows[0]
    if own and isinstance(a, StridedSlice):
        step = range(*slice(*a.slices[own.axis]).indices(own.extent)).step
        slices = (*a.slices[: own.axis], (0, read[0], step), *a.slices[own.axis + 1 :])
        return replace(a, slices=slices)
    if out and isinstance(a, PoolND):
        way = out.axis - 1
        return replace(a, size=(*a.size[:way], out.new, *a.size[way + 1 :]))
    if out and isinstance(a, BroadcastTo):
        return BroadcastTo((*a.shape[: out.axis], out.new, *a.shape[out.axis + 1 :]))
    return a


def _is_last_part(
    op: Op, rows: Sequence[Rows | None], made: Plan, maps: Sequence[IndexMap]
) -> bool:
    """Return whether the operator on new rows reads what the plain one's last rows depend on."""
    changed = part(op, rows, made)
    if changed is None:
        return False
    axis = made.rows.axis if made.rows else _NOWHERE
    further = made.rows.extent - made.rows.new if made.rows else 0
    for own, new, output in zip(
        maps, definition(op.kind).reads(changed), changed.outputs, strict=True
    ):
        if own.loops != new.loops:
            return False
        extents = [min(n, _TRIED) if i == axis else n for i, n in enumerate(output.shape)]
        extents += [loop.extent for loop in own.loops]
        for time, need, one, other in zip(rows, made.needs, own.inputs, new.inputs, strict=True):
            for number, (read, there) in enumerate(zip(one or (), other or (), strict=True)):
                before = time.extent - need if time and number == time.axis else 0
                if not is_moved(read, there, axis, (further, before), extents):
                    return False
    return True


def part(op: Op, rows: Sequence[Rows | None], made: Plan) -> Op | None:
    """Return the operator on new rows; None where its shapes do not fit or scales lie along time.

    Args:
        op: of the plain network.
        rows: of its inputs.
        made: how it is computed.
    """
    inputs = [
        with_rows(tensor, time, need) if tensor and time else tensor
        for tensor, time, need in zip(op.inputs, rows, made.needs, strict=True)
    ]
    out = made.rows
    outputs = [with_rows(tensor, out, out.new) if out else tensor for tensor in op.outputs]
    timed = [(t, time) for t, time in zip(op.inputs, rows, strict=True) if t and time]
    timed += [(tensor, out) for tensor in op.outputs if out]
    for tensor, time in timed:
        scales = tensor.quantization
        if scales and scales.per_channel and scales.axis == time.axis:
            return None
    changed = replace(op, inputs=inputs, outputs=outputs, attributes=made.attributes)
    try:
        shapes = definition(op.kind).infer_shapes(changed)
    except ModelError:
        return None
    return changed if shapes == [tensor.shape for tensor in outputs] else None
