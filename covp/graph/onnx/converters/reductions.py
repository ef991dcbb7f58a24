"""Reductions over axes, positions of the largest and least, running sums."""

from __future__ import annotations

import numpy as np

from covp.errors import ModelError
from covp.graph.attributes import Mean
from covp.graph.graph import Tensor
from covp.graph.onnx.converters.registry import register
from covp.graph.onnx.importer import Importer
from covp.graph.onnx.node import OnnxNode
from covp.graph.ops.along_axis import ArgMax, Cumulative
from covp.graph.ops.reduction import SAME_SCALE

_KINDS = {
    "ReduceL1": "REDUCE_L1",
    "ReduceL2": "REDUCE_L2",
    "ReduceLogSum": "REDUCE_LOG_SUM",
    "ReduceLogSumExp": "REDUCE_LOG_SUM_EXP",
    "ReduceMax": "REDUCE_MAX",
    "ReduceMean": "MEAN",
    "ReduceMin": "REDUCE_MIN",
    "ReduceProd": "REDUCE_PROD",
    "ReduceSum": "SUM",
    "ReduceSumSquare": "REDUCE_SUM_SQUARE",
}


def axis_of(value: int, rank: int) -> int:
    """Return an axis counted from the first. Raises ModelError if there is no such axis."""
    if not -rank <= value < max(rank, 1):
        raise ModelError(f"axis {value} is outside a tensor of rank {rank}")
    return value % max(rank, 1)


@register(*_KINDS)
def _reduce(node: OnnxNode, importer: Importer) -> Tensor:
    source, keep, kind = node.input(0), bool(node.get("keepdims", 1)), _KINDS[node.kind]
    scaled = source.quantization if kind in SAME_SCALE else None
    rank, axes_input = len(source.shape), node.optional(1)
    if axes_input is not None and not axes_input.constant and axes_input.size:
        shape = node.stated_shape("the axes")
        how = Mean(None, keep, nan_counts=True)
        return importer.add(
            kind, source, axes_input, attributes=how, shape=shape, quantization=scaled
        )
    axes = stated_axes(node, 1)
    if not axes and node.get("noop_with_empty_axes", 0):
        return _reduce_each_element(node, importer)
    chosen = reduced_axes(axes, rank)
    how = Mean(chosen, keep, nan_counts=True)
    return importer.add(kind, source, attributes=how, quantization=scaled)


def stated_axes(node: OnnxNode, position: int) -> list[int]:
    """Return the axes that a reduction states, by attribute or constant input; none: all."""
    given = node.optional(position)
    empty = given is not None and not given.size
    return [] if empty else node.integers_of("axes", position, "the axes") or []


def reduced_axes(axes: list[int], rank: int) -> tuple[int, ...]:
    """Return the axes of a tensor that are reduced, counted from the first and sorted."""
    return tuple(sorted({axis_of(axis, rank) for axis in axes or range(rank)}))


def _reduce_each_element(node: OnnxNode, importer: Importer) -> Tensor:
    """Add a reduction over no axes: the function of each element alone."""
    axes = Mean((), True)
    return importer.add(_KINDS[node.kind], node.input(0), attributes=axes)


@register("ArgMax", "ArgMin")
def _arg_max(node: OnnxNode, importer: Importer) -> Tensor:
    source = node.input(0)
    how = ArgMax(
        axis_of(node.get("axis", 0), len(source.shape)),
        bool(node.get("keepdims", 1)),
        bool(node.get("select_last_index", 0)),
    )
    kind = "ARG_MAX" if node.kind == "ArgMax" else "ARG_MIN"
    return importer.add(kind, source, attributes=how, dtype=np.int64)


@register("CumSum", "CumProd")
def _cumulative(node: OnnxNode, importer: Importer) -> Tensor:
    source, axis = node.input(0), node.input(1)
    flags = bool(node.get("exclusive", 0)), bool(node.get("reverse", 0))
    if not axis.constant:
        return importer.add(node.kind.upper(), source, axis, attributes=Cumulative(None, *flags))
    chosen = axis_of(node.integers(1, "the axis")[0], len(source.shape))
    return importer.add(node.kind.upper(), source, attributes=Cumulative(chosen, *flags))
