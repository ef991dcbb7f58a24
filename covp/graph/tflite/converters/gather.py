"""Operators that find elements by indices or make them by a rule, and pads that mirror."""

from __future__ import annotations

from typing import Any

import numpy as np
import tflite

from covp.errors import ModelError
from covp.graph.graph import Op, Tensor
from covp.graph.ops.along_axis import TopK
from covp.graph.ops.gather import Gather, GatherND, OneHot, ReverseSequence, Scatter
from covp.graph.ops.generate import Generated
from covp.graph.ops.placed import MirrorPad
from covp.graph.tflite.converters.common import (
    checked_axis,
    constant_integers,
    no_attributes,
    options_of,
    register,
)


@register("GATHER")
def _gather(op: Op, table: Any) -> Gather:
    rank = len(op.input(0).shape)
    if table is None:
        return Gather(0)
    options = options_of(tflite.GatherOptions, table)
    batches = checked_axis(options.BatchDims(), len(op.input(1).shape) + 1)
    return Gather(checked_axis(options.Axis(), rank), batches)


@register("TOPK_V2")
def _top_k(op: Op, table: Any) -> TopK:
    count = constant_integers(op, 1, "the number of elements")
    out = op.output.quantization
    given = op.input(0).quantization
    if given is not None and (out is None or (given.scale[0], given.zero_point[0]) != (
        out.scale[0], out.zero_point[0]
    )):  # fmt: skip
        raise ModelError("its input and output have different scales; convert the model again")
    return TopK(count[0])


@register("GATHER_ND")
def _gather_nd(op: Op, table: Any) -> GatherND:
    return GatherND()


@register("REVERSE_SEQUENCE")
def _reverse_sequence(op: Op, table: Any) -> ReverseSequence:
    options, rank = options_of(tflite.ReverseSequenceOptions, table), len(op.input(0).shape)
    return ReverseSequence(
        checked_axis(options.SeqDim(), rank), checked_axis(options.BatchDim(), rank)
    )


@register("MIRROR_PAD")
def _mirror_pad(op: Op, table: Any) -> MirrorPad:
    symmetric = options_of(tflite.MirrorPadOptions, table).Mode() != 0
    flat, shape = constant_integers(op, 1, "the paddings"), op.input(0).shape
    if len(flat) != 2 * len(shape):
        raise ModelError(f"paddings {flat} do not fit the shape {shape}")
    paddings = tuple(zip(flat[::2], flat[1::2], strict=True))
    return MirrorPad(paddings, "symmetric" if symmetric else "reflect")


@register("SCATTER_ND")
def _scatter_nd(op: Op, table: Any) -> Scatter:
    """Convert SCATTER_ND, which adds updates to zeros; inputs are indices, updates, shape."""
    shape = tuple(constant_integers(op, 2, "the shape"))
    out = op.output
    zero = 0 if out.quantization is None else out.zero_point
    zeros = np.full(shape, zero, out.dtype)
    data = Tensor(f"{out.name}_zeros", shape, out.dtype, out.quantization, zeros)
    op.inputs = [data, op.input(0), op.input(1)]
    return Scatter(reduction="none" if out.dtype == np.bool_ else "add")


@register("ONE_HOT")
def _one_hot(op: Op, table: Any) -> OneHot:
    """Convert ONE_HOT, whose inputs are indices, depth, on and off."""
    axis = options_of(tflite.OneHotOptions, table).Axis() if table is not None else -1
    on, off = op.input(2), op.input(3)
    if on.data is None or off.data is None:
        raise ModelError(f"its values ({on.name}, {off.name}) must be constant")
    both = np.array([off.data.reshape(-1)[0], on.data.reshape(-1)[0]], on.dtype)
    values = Tensor(f"{op.output.name}_values", both.shape, both.dtype, on.quantization, both)
    (depth,) = constant_integers(op, 1, "the depth")
    op.inputs = [op.input(0), values]
    return OneHot(checked_axis(axis, len(op.output.shape)), depth)


@register("FILL")
def _fill(op: Op, table: Any) -> Generated:
    """Convert FILL: a shape, which may come at run time if the file states it, and a value."""
    stated = op.output.shape
    if op.input(0).data is not None:
        stated = tuple(constant_integers(op, 0, "the shape"))
    op.inputs = [op.input(1)]
    return Generated(stated)


@register("RANGE")
def _range(op: Op, table: Any) -> Generated:
    ends = [op.input(position).data for position in range(3)]
    shape = op.output.shape
    if all(end is not None for end in ends):
        start, limit, delta = (np.asarray(end).reshape(-1)[0] for end in ends)
        if delta == 0:
            raise ModelError("its step is 0")
        shape = (max(int(np.ceil((limit - start) / delta)), 0),)
    return Generated(shape)


@register("ZEROS_LIKE")
def _zeros(op: Op, table: Any) -> Generated:
    zero = 0 if op.output.quantization is None else op.output.zero_point
    return _constant_fill(op, np.array(zero, op.output.dtype))


@register("RANK")
def _rank(op: Op, table: Any) -> Generated:
    return _constant_fill(op, np.array(len(op.input(0).shape), np.int32))


def _constant_fill(op: Op, value: np.ndarray[Any, Any]) -> Generated:
    out = op.output
    op.kind = "FILL"
    op.inputs = [Tensor(f"{out.name}_value", (), value.dtype, out.quantization, value)]
    return Generated(out.shape)


@register("EMBEDDING_LOOKUP")
def _embedding(op: Op, table: Any) -> Gather:
    """Convert EMBEDDING_LOOKUP to a GATHER whose indices come first."""
    op.kind, op.inputs = "GATHER", [op.input(1), op.input(0)]
    return Gather(0)


register("SHAPE")(no_attributes)
