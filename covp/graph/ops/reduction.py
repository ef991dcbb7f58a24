"""MEAN and REDUCE_MAX."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from covp.errors import ModelError
from covp.graph.graph import Op
from covp.graph.ops.definition import OPS, Array, OpDefinition, Shape, given, ieee, of_one_type
from covp.graph.quantization import multiply_by_quantized_multiplier, quantize_multiplier


def _shape(op: Op) -> list[Shape]:
    a, source = op.attributes, op.input(0).shape
    kept = [1 if axis in a.axes else extent for axis, extent in enumerate(source)]
    if a.keep_dims:
        return [tuple(kept)]
    return [tuple(extent for axis, extent in enumerate(source) if axis not in a.axes)]


def _reference(op: Op, values: Sequence[Array | None]) -> list[Array]:
    x, a, out = given(values, 0), op.attributes, op.output
    if x.dtype == np.float32:
        with ieee():
            mean = x.mean(axis=a.axes, dtype=np.float32)
        return [np.asarray(mean, np.float32).reshape(out.shape)]
    total = x.sum(axis=a.axes, dtype=np.int64)
    count = int(np.prod([x.shape[axis] for axis in a.axes]))
    return [np.asarray(_quantized(op, total, count)).astype(out.dtype).reshape(out.shape)]


def mean_factor(op: Op, count: int) -> tuple[int, int]:
    """Multiplier and shift for the sum of ``count`` values less their zero points.

    Source: reference_ops::QuantizedMeanOrSum, which puts 1 / count into the factor; TFLM and
    LiteRT use it for equal quantization on both sides too (older ones divided there).
    """
    multiplier, shift = quantize_multiplier(op.input(0).scale / op.output.scale)
    extra = min(count.bit_length() - 1, 32, 31 + shift)
    return (multiplier << extra) // count, shift - extra


def _quantized(op: Op, total: Array, count: int) -> Array:
    value = total - op.input(0).zero_point * count
    scaled = multiply_by_quantized_multiplier(value, *mean_factor(op, count))
    info = np.iinfo(op.output.dtype)
    return np.clip(scaled + op.output.zero_point, info.min, info.max)


def _max_shape(op: Op) -> list[Shape]:
    source, out = op.input(0), op.output
    if source.dtype not in (np.int8, np.int16, np.float32):
        raise ModelError(f"{op.kind} of {source.dtype}; only int8, int16 and float32 are supported")
    if source.dtype != np.float32:
        scales = [(t.scale, t.zero_point) for t in (source, out)]
        if scales[0] != scales[1]:
            raise ModelError("its input and output have different scales; TFLM rejects it too")
    return _shape(op)


def _max_reference(op: Op, values: Sequence[Array | None]) -> list[Array]:
    x = given(values, 0)
    if x.dtype == np.float32:
        x = np.fmax(x, np.finfo(np.float32).min)  # as in TFLM, a NaN is never the largest
    return [np.asarray(x.max(axis=op.attributes.axes), x.dtype).reshape(op.output.shape)]


_TYPES = of_one_type("int8", "int16", "float32")
OPS["REDUCE_MAX"] = OpDefinition(_max_shape, _max_reference, types=_TYPES)
OPS["MEAN"] = OpDefinition(_shape, _reference, types=_TYPES)
