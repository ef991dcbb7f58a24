"""How each kind of operator is computed from new rows. A rule gives None: from the whole window."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from covp.graph.attributes import Padding, Pair
from covp.graph.graph import Op
from covp.graph.ops.pointwise import POINTWISE
from covp.graph.ops.pooling_nd import PoolND
from covp.graph.ops.reduction import REDUCTIONS
from covp.graph.passes.axis_orders import OTHER_ELEMENTWISE
from covp.graph.passes.streaming.rows import Plan, Reach, Refused, Rows, common, each, slide

Rule = Callable[[Op, Sequence[Rows | None], int], Plan | None]
"""From an operator, the rows of its inputs (None without time) and the hop."""

_ONES = (1, 1, 1)
"""Dilations of what has none."""


def plan(op: Op, rows: Sequence[Rows | None], hop: int) -> Plan | None:
    """How an operator computes its new rows; None: it needs its inputs whole.

    Args:
        op: of the plain network.
        rows: of its inputs, of which one at least has time.
        hop: new rows of the network's input.

    Raises:
        Refused: it cannot be part of a stream.
    """
    rule = _RULES.get(op.kind)
    if rule is None:
        raise Refused(f"no rule says how {op.name} ({op.kind}) computes new rows alone")
    return rule(op, rows, hop)


def _elementwise(op: Op, rows: Sequence[Rows | None], hop: int) -> Plan | None:
    """Row i from row i of each input, with numpy's broadcasting."""
    rank = len(op.output.shape)
    axes = set()
    for tensor, own in zip(op.inputs, rows, strict=True):
        if tensor is not None and own is not None:
            axes.add(own.axis + rank - len(tensor.shape))
    if len(axes) != 1:
        return None
    axis = axes.pop()
    for tensor, own in zip(op.inputs, rows, strict=True):
        if tensor is not None and own is None:
            position = axis - (rank - len(tensor.shape))
            if position >= 0 and tensor.shape[position] != 1:
                return None  # another value for each row of the window
    out = common(op, rows, axis)
    return Plan(each(rows), out, op.attributes) if out else None


def _along_last(op: Op, rows: Sequence[Rows | None], hop: int) -> Plan | None:
    """Operators that work on each vector along the last axis."""
    own = rows[0]
    if own is None or own.axis == len(op.input(0).shape) - 1:
        return None
    return Plan(each(rows), own, op.attributes)


def _window(op: Op, rows: Sequence[Rows | None], hop: int) -> Plan | None:
    """Convolutions and pools, without padding in time."""
    own, a = rows[0], op.attributes
    if own is None or not 0 < own.axis < len(op.input(0).shape) - 1:
        return None
    way = own.axis - 1
    _demand_no_padding(op, _padding(op, way))
    if len(op.outputs) > 1:
        raise Refused(f"{op.name} ({op.kind}) says where in the window its results are")
    taps = a.filter[way] if "POOL" in op.kind else op.input(1).shape[1 + way]
    reach = Reach(0, (taps - 1) * getattr(a, "dilation", _ONES)[way] + 1, a.stride[way])
    need, unread, out = slide(op, own, reach, own.axis, hop)
    _demand_no_padding(op, (0, max(-unread, 0)))
    if isinstance(a, PoolND) and out is not None:
        a = replace(a, size=(*a.size[:way], out.new, *a.size[way + 1 :]))
    return Plan((need, *(0 for _ in rows[1:])), out, a)


def _padding(op: Op, way: int) -> Pair:
    """Before and after an axis of space."""
    padding = op.attributes.padding
    if not isinstance(padding, Padding):
        before, after = padding[way]
        return before, after
    sides = (padding.top, padding.bottom), (padding.left, padding.right)
    return sides[way]


def _demand_no_padding(op: Op, rows: Pair) -> None:
    if any(rows):
        raise Refused(
            f"{op.name} ({op.kind}) pads time with {rows[0]} + {rows[1]} rows at the ends of each "
            "window; train the network without padding in time (padding='valid')"
        )


def _fully_connected(op: Op, rows: Sequence[Rows | None], hop: int) -> Plan | None:
    own, shape = rows[0], op.input(0).shape
    if own is None or own.axis == len(shape) - 1 or op.input(1).shape[1] != shape[-1]:
        return None
    if op.attributes.keep_num_dims:
        return Plan(each(rows), own, op.attributes)
    if math.prod(shape[:-1]) != own.extent:
        return None
    return Plan(each(rows), replace(own, axis=0), op.attributes)


def _reshape(op: Op, rows: Sequence[Rows | None], hop: int) -> Plan | None:
    """Where time stays an axis: as many elements before it, and as many rows, or several in one.

    The latter is how a flat input becomes rows of features.
    """
    own, shape, out = rows[0], op.input(0).shape, op.output.shape
    if own is None:
        return None
    before = math.prod(shape[: own.axis])
    axes = [axis for axis in range(len(out)) if math.prod(out[:axis]) == before]
    for axis in axes:
        if out[axis] == own.extent:
            return Plan(each(rows), replace(own, axis=axis), op.attributes)
    for axis in axes:
        together, rest = divmod(own.extent, out[axis])
        if rest or out[axis] == 1 or axis == 0:
            continue
        _, _, joined = slide(op, own, Reach(0, together, together), axis, hop)
        return Plan(each(rows), joined, op.attributes) if joined else None
    return None


def _transpose(op: Op, rows: Sequence[Rows | None], hop: int) -> Plan | None:
    own = rows[0]
    if own is None:
        return None
    axis = op.attributes.permutation.index(own.axis)
    return Plan(each(rows), replace(own, axis=axis), op.attributes)


def _concatenation(op: Op, rows: Sequence[Rows | None], hop: int) -> Plan | None:
    axes = {own.axis if own else -1 for own in rows}
    if len(axes) > 1 or op.attributes.axis in axes:
        return None
    out = common(op, rows, axes.pop())
    return Plan(each(rows), out, op.attributes) if out else None


def _split(op: Op, rows: Sequence[Rows | None], hop: int) -> Plan | None:
    own = rows[1]
    return Plan(each(rows), own, op.attributes) if own and own.axis != op.attributes.axis else None


def _reduction(op: Op, rows: Sequence[Rows | None], hop: int) -> Plan | None:
    own, a = rows[0], op.attributes
    if own is None or a.axes is None or own.axis in a.axes:
        return None
    lost = 0 if a.keep_dims else sum(axis < own.axis for axis in a.axes)
    return Plan(each(rows), replace(own, axis=own.axis - lost), a)


def _pad(op: Op, rows: Sequence[Rows | None], hop: int) -> Plan | None:
    own = rows[0]
    if own is None:
        return None
    _demand_no_padding(op, op.attributes.paddings[own.axis])
    return Plan(each(rows), own, op.attributes)


def _slice(op: Op, rows: Sequence[Rows | None], hop: int) -> Plan | None:
    """A slice in time is a window of one row, which may lag behind."""
    own, a = rows[0], op.attributes
    if own is None:
        return None
    taken = range(*slice(*a.slices[own.axis]).indices(own.extent))
    if taken.step < 0:
        return None
    axis = -1 if own.axis in a.shrink else own.axis - sum(s < own.axis for s in a.shrink)
    for new in a.new_axes:
        axis += 0 <= new <= axis
    need, unread, out = slide(op, own, Reach(taken.start, 1, taken.step), axis, hop)
    slices = list(a.slices)
    slices[own.axis] = (0, need - unread, taken.step)
    return Plan((need, *(0 for _ in rows[1:])), out, replace(a, slices=tuple(slices)))


_WINDOWS = (
    *("CONV_2D", "DEPTHWISE_CONV_2D", "CONV_ND"),
    *("AVERAGE_POOL_2D", "MAX_POOL_2D", "AVERAGE_POOL", "MAX_POOL", "LP_POOL"),
)
_RULES: dict[str, Rule] = {
    **dict.fromkeys({*POINTWISE, *OTHER_ELEMENTWISE}, _elementwise),
    **dict.fromkeys(_WINDOWS, _window),
    **dict.fromkeys(REDUCTIONS, _reduction),
    **dict.fromkeys(("LOG_SOFTMAX", "L2_NORMALIZATION", "SOFTMAX"), _along_last),
    **dict.fromkeys(("PAD", "PADV2"), _pad),
    "CONCATENATION": _concatenation,
    "FULLY_CONNECTED": _fully_connected,
    "RESHAPE": _reshape,
    "SPLIT": _split,
    **dict.fromkeys(("SLICE", "STRIDED_SLICE"), _slice),
    "TRANSPOSE": _transpose,
}
