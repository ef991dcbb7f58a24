"""Operators that make tensors by a rule, and EMBEDDING_LOOKUP."""

from __future__ import annotations

from typing import Any

import numpy as np

from covp.errors import ModelError
from covp.graph.graph import Op, Tensor
from covp.graph.ops.gather import Gather
from covp.graph.ops.generate import Generated
from covp.graph.tflite.converters.common import constant_integers, no_attributes, register


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
