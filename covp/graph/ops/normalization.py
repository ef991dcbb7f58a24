"""float32 normalizations of rows: by mean and deviation, by a norm, by neighbours, by exponentials.

Sources: the ONNX operator specifications; reference_ops::L2Normalization, LogSoftmax and
LocalResponseNormalization. Computed in double precision and rounded once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from covp.base.registry import Registry
from covp.errors import ModelError
from covp.graph.graph import Op
from covp.graph.index_map import IndexMap, Space, rows_of
from covp.graph.ops.definition import (
    LIMITS,
    OPS,
    Array,
    OpDefinition,
    Shape,
    given,
    ieee,
    of_one_type,
)

L2_LEAST = 1e-6
"""The least norm by which L2_NORMALIZATION divides."""


@dataclass(frozen=True)
class LayerNormalization:
    """LAYER_NORMALIZATION and RMS_NORMALIZATION of everything from an axis (not negative) on."""

    axis: int
    epsilon: float = 1e-5


@dataclass(frozen=True)
class LpNormalization:
    """LP_NORMALIZATION along the last axis; p is 1 or 2."""

    p: int = 2


@dataclass(frozen=True)
class LocalResponse:
    """LOCAL_RESPONSE_NORMALIZATION: x / (bias + alpha * squares of the neighbours) ** beta.

    Attributes:
        before, after: channels on each side that count.
        bias, alpha, beta: as in the formula.
    """

    before: int
    after: int
    bias: float
    alpha: float
    beta: float


def _rows(op: Op, x: Array) -> Array:
    """Reshape to (rows, values of a row) in double precision."""
    axis = op.attributes.axis
    rows = int(np.prod(x.shape[:axis], dtype=np.int64))
    return x.astype(np.float64).reshape(rows, -1)


def _layer(op: Op, values: Sequence[Array | None]) -> list[Array]:
    """Return the output and, if the operator has them, mean and inverse deviation of each row."""
    rows = _rows(op, given(values, 0))
    mean = rows.mean(axis=1, keepdims=True)
    inverse = 1 / np.sqrt(((rows - mean) ** 2).mean(axis=1, keepdims=True) + op.attributes.epsilon)
    result = (rows - mean) * inverse
    scale, bias = (values[i] if i < len(values) else None for i in (1, 2))
    if scale is not None:
        result = result * scale.reshape(1, -1)
    if bias is not None:
        result = result + bias.reshape(1, -1)
    return [result, mean, inverse][: len(op.outputs)]


def _rms(op: Op, values: Sequence[Array | None]) -> list[Array]:
    rows = _rows(op, given(values, 0))
    result = rows / np.sqrt((rows * rows).mean(axis=1, keepdims=True) + op.attributes.epsilon)
    return [result * given(values, 1).reshape(1, -1)]


def _l2(op: Op, values: Sequence[Array | None]) -> list[Array]:
    """Divide by the L2 norm; squares are float32, which may overflow and underflow."""
    x = given(values, 0)
    return [x / np.maximum(np.sqrt((x * x).sum(axis=-1, keepdims=True)), np.float32(L2_LEAST))]


def _lp(op: Op, values: Sequence[Array | None]) -> list[Array]:
    """Divide by the Lp norm; powers are float32, which may overflow and underflow."""
    x = given(values, 0)
    sums = (np.abs(x) ** op.attributes.p).sum(axis=-1, keepdims=True)
    norm = sums if op.attributes.p == 1 else np.sqrt(sums)
    return [np.where(norm == 0, 0, x / np.where(norm == 0, 1, norm))]


def _local_response(op: Op, values: Sequence[Array | None]) -> list[Array]:
    a, x = op.attributes, given(values, 0).astype(np.float64)
    squares = np.zeros_like(x)
    for channel in range(x.shape[-1]):
        near = x[..., max(0, channel - a.before) : channel + a.after + 1]
        squares[..., channel] = (near * near).sum(axis=-1)
    return [x / (a.bias + a.alpha * squares) ** a.beta]


def _log_softmax(op: Op, values: Sequence[Array | None]) -> list[Array]:
    x = given(values, 0).astype(np.float64)
    distance = x - x.max(axis=-1, keepdims=True)
    return [distance - np.log(np.exp(distance).sum(axis=-1, keepdims=True))]


def _hardmax(op: Op, values: Sequence[Array | None]) -> list[Array]:
    x = given(values, 0)
    return [np.arange(x.shape[-1]) == x.argmax(axis=-1)[..., None]]


def _shape(op: Op) -> list[Shape]:
    if not op.input(0).shape:
        raise ModelError(f"{op.kind} of a scalar: it needs an axis")
    return [op.input(0).shape]


def _layer_shape(op: Op) -> list[Shape]:
    """Return the shapes of the output and of the rows' figures."""
    axis, shape = op.attributes.axis, _shape(op)[0]
    row = shape[axis:]
    for tensor in op.inputs[1:]:
        if tensor is not None and tensor.shape != row:
            raise ModelError(
                f"tensor {tensor.name} has shape {tensor.shape}; a row has {row}",
                tensor=tensor.name,
            )
    kept = (*shape[:axis], *(1 for _ in row))
    return [shape, kept, kept][: len(op.outputs)]


def _in_single(
    compute: Callable[[Op, Sequence[Array | None]], list[Array]],
) -> Callable[[Op, Sequence[Array | None]], list[Array]]:
    def reference(op: Op, values: Sequence[Array | None]) -> list[Array]:
        if op.input(0).dtype == np.int8:
            return [INT8[op.kind](op, given(values, 0)).astype(np.int8)]
        with ieee():
            return [
                result.astype(tensor.dtype).reshape(tensor.shape)
                for result, tensor in zip(compute(op, values), op.outputs, strict=True)
            ]

    return reference


INT8: Registry[str, Callable[[Op, Array], Array]] = Registry("covp.graph.ops")
"""The int8 rule of each kind."""
_FLOAT = of_one_type("float32", data=None)
_FLOAT_OR_INT8 = of_one_type("float32", "int8")


def _row_types(op: Op) -> None:
    _FLOAT_OR_INT8(op)
    if op.input(0).dtype == np.int8:
        LIMITS[op.kind](op)


def _from_axis(op: Op) -> list[IndexMap]:
    return rows_of(op, op.attributes.axis)


def _neighbours(op: Op) -> list[IndexMap]:
    space, a = Space(op), op.attributes
    near = space.axes[-1] + space.loop(a.before + a.after + 1) - a.before
    return [space.make_map((*space.axes[:-1], near))]


for _kind, _compute, _infer, _reads in (
    ("HARDMAX", _hardmax, _shape, lambda op: rows_of(op, -1, "any order")),
    ("L2_NORMALIZATION", _l2, _shape, rows_of),
    ("LAYER_NORMALIZATION", _layer, _layer_shape, _from_axis),
    ("LOCAL_RESPONSE_NORMALIZATION", _local_response, _shape, _neighbours),
    ("LOG_SOFTMAX", _log_softmax, _shape, rows_of),
    ("LP_NORMALIZATION", _lp, _shape, rows_of),
    ("RMS_NORMALIZATION", _rms, _layer_shape, _from_axis),
):
    OPS[_kind] = OpDefinition(_infer, _in_single(_compute), types=_FLOAT, reads=_reads)
for _kind in ("L2_NORMALIZATION", "LOG_SOFTMAX"):
    OPS[_kind] = replace(OPS[_kind], types=_row_types)
