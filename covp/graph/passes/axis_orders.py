"""Rules for operators whose input lies in memory with its axes in another order.

An order is the permutation of a TRANSPOSE: axis i of what the model means (outer) is axis order[i]
of what is there (inner).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from covp.graph.graph import Op
from covp.graph.ops.pointwise import POINTWISE

Order = tuple[int, ...]

OTHER_ELEMENTWISE = {
    *("ADD", "SUB", "MUL", "RELU", "RELU6", "LEAKY_RELU", "LOGISTIC", "TANH", "SQRT"),
    *("QUANTIZE", "DEQUANTIZE", "LOOKUP_TABLE", "IDENTITY"),
}
"""Operators beside the pointwise ones for which the order of the elements is irrelevant."""


@dataclass(frozen=True)
class Permuted:
    """The operator in the permuted layout.

    Attributes:
        attributes: with inner axes.
        order: of its outputs.
    """

    attributes: Any
    order: Order


def is_elementwise(op: Op) -> bool:
    """Return whether the order of the elements is irrelevant, if all inputs have the same."""
    # a graph that holds the operator has brought its rule
    return op.kind in OTHER_ELEMENTWISE or POINTWISE.known(op.kind) is not None


def data_positions(op: Op) -> Sequence[int]:
    """Return the inputs whose axes are those of the output."""
    if is_elementwise(op) or op.kind == "CONCATENATION":
        return range(len(op.inputs))
    return (1,) if op.kind == "SPLIT" else (0,)


def permute(op: Op, order: Order) -> Permuted | None:
    """Return the operator for inputs in an order; None where it depends on the order."""
    if is_elementwise(op):
        return Permuted(op.attributes, order) if len(op.output.shape) == len(order) else None
    rule = _RULES.get(op.kind)
    return rule(op, order) if rule is not None else None


def undoes(second: Order, first: Order) -> bool:
    """Return whether a permutation after another leaves the axes as they were."""
    return compose(first, second) == tuple(range(len(first)))


def compose(first: Order, second: Order) -> Order:
    """Return the permutation of a TRANSPOSE after another."""
    return tuple(first[axis] for axis in second)


def moves_nothing(shape: Sequence[int], order: Order) -> bool:
    """Return whether memory stays as it is because only axes of extent 1 change places.

    Args:
        shape: of the input.
        order: of a TRANSPOSE.
    """
    kept = [axis for axis in order if shape[axis] != 1]
    return kept == sorted(kept)


def _axis(op: Op, order: Order) -> Permuted:
    return Permuted(replace(op.attributes, axis=order[op.attributes.axis]), order)


def _axes(op: Op, order: Order) -> Permuted:
    axes = tuple(sorted(order[axis] for axis in op.attributes.axes))
    return Permuted(replace(op.attributes, axes=axes), order)


def _each(name: str) -> Callable[[Op, Order], Permuted]:
    """Return the rule for an attribute with an entry for each axis."""

    def rule(op: Op, order: Order) -> Permuted:
        entries = _inner(getattr(op.attributes, name), order)
        return Permuted(replace(op.attributes, **{name: entries}), order)

    return rule


def _inner(entries: Sequence[Any], order: Order) -> tuple[Any, ...]:
    return tuple(entries[order.index(axis)] for axis in range(len(order)))


def _without(order: Order, dropped: Sequence[int]) -> Order:
    """Return the order of what is left when outer axes are dropped."""
    kept = [axis for axis in range(len(order)) if axis not in {order[d] for d in dropped}]
    return tuple(kept.index(order[i]) for i in range(len(order)) if i not in dropped)


def _slice(op: Op, order: Order) -> Permuted | None:
    a = op.attributes
    if a.new_axes:
        return None
    shrink = tuple(sorted(order[axis] for axis in a.shrink))
    attributes = replace(a, slices=_inner(a.slices, order), shrink=shrink)
    return Permuted(attributes, _without(order, a.shrink))


def _reduce(op: Op, order: Order) -> Permuted | None:
    a = op.attributes
    if a.axes is None:
        return None
    attributes = replace(a, axes=tuple(sorted(order[axis] for axis in a.axes)))
    return Permuted(attributes, order if a.keep_dims else _without(order, a.axes))


def _arg(op: Op, order: Order) -> Permuted:
    a = op.attributes
    attributes = replace(a, axis=order[a.axis])
    return Permuted(attributes, order if a.keep_dims else _without(order, (a.axis,)))


def _gather(op: Op, order: Order) -> Permuted | None:
    if op.attributes.batches or len(op.input(1).shape) != 1:
        return None
    return _axis(op, order)


def _along_the_last(op: Op, order: Order) -> Permuted | None:
    return Permuted(op.attributes, order) if order[-1] == len(order) - 1 else None


def _unit_axes(op: Op, order: Order) -> Permuted | None:
    """Return a RESHAPE that puts axes of extent 1 in or takes them away."""
    source, result = op.input(0).shape, op.output.shape
    origins: list[int | None] = []  # of each axis of the result: the source's
    at = 0
    for extent in result:
        while at < len(source) and source[at] != extent and source[at] == 1 != extent:
            at += 1
        if at < len(source) and source[at] == extent:
            origins.append(at)
            at += 1
        elif extent == 1:
            origins.append(None)
        else:
            return None
    if any(extent != 1 for extent in source[at:]):
        return None
    # new axes lie before the one that follows them outside
    outer = [order.index(axis) for axis in range(len(order))]
    inner = [origins.index(axis) for axis in outer if axis in origins]
    for axis in reversed([n for n, origin in enumerate(origins) if origin is None]):
        inner.insert(inner.index(axis + 1) if axis + 1 in inner else len(inner), axis)
    return Permuted(None, tuple(inner.index(axis) for axis in range(len(result))))


_REDUCTIONS = (
    *("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD", "REDUCE_ALL", "REDUCE_ANY"),
    *("REDUCE_L1", "REDUCE_L2", "REDUCE_LOG_SUM", "REDUCE_LOG_SUM_EXP", "REDUCE_SUM_SQUARE"),
)
_RULES: dict[str, Callable[[Op, Order], Permuted | None]] = {
    **dict.fromkeys(("CONCATENATION", "SPLIT", "SPLIT_V", "INTERPOLATE"), _axis),
    **dict.fromkeys(("PAD", "PADV2", "MIRROR_PAD"), _each("paddings")),
    **dict.fromkeys(("SLICE", "STRIDED_SLICE"), _slice),
    **dict.fromkeys(_REDUCTIONS, _reduce),
    **dict.fromkeys(("ARG_MAX", "ARG_MIN"), _arg),
    **dict.fromkeys(("SOFTMAX", "LOG_SOFTMAX", "HARDMAX"), _along_the_last),
    "GATHER": _gather,
    "RESHAPE": _unit_axes,
    "REVERSE_V2": _axes,
    "TILE": _each("multiples"),
}
