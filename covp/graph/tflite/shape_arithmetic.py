"""Shapes that a file computes: known when it is read, so that what they feed has constants."""

from __future__ import annotations

import numpy as np

from covp.graph.graph import Op, Tensor
from covp.graph.ops import definition

_MOST = 64
"""Elements of a tensor that is taken for a shape."""


def settle(op: Op) -> bool:
    """Compute the outputs of SHAPE, and of operators on a few constant integers, now.

    Args:
        op: of tensors that no output of the file is; its outputs become constants.

    Returns:
        Whether that was done; the operator is then not needed.
    """
    tensors = [t for t in op.inputs if t is not None]
    if op.kind != "SHAPE" and not all(map(_is_shape, tensors)):
        return False
    if any(t.dtype not in (np.int32, np.int64) or t.size > _MOST for t in op.outputs):
        return False
    values = [None if t is None else t.data for t in op.inputs]
    for tensor, value in zip(op.outputs, definition(op.kind).reference(op, values), strict=True):
        tensor.data = np.asarray(value)
    return True


def _is_shape(tensor: Tensor) -> bool:
    integers = tensor.dtype in (np.int32, np.int64) and tensor.quantization is None
    return tensor.data is not None and integers and tensor.size <= _MOST
