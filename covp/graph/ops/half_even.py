"""References of quantized operators in onnxruntime's arithmetic, where that is more than a factor.

Bytes are int8 everywhere. A network of uint8 has its zero points less 128; where onnxruntime adds
the zero point before it rounds, `Rounding.offset` is what it lacks, and the sums are those of
uint8.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from covp.graph.float_scaling import dequantize, multiply_add, quantize, saturate
from covp.graph.graph import Op
from covp.graph.ops.definition import Array, given
from covp.graph.quantization import activation_range

UNSIGNED = 128
"""Difference of uint8 tensors and the int8 ones that represent them."""


def offset_of(op: Op) -> int:
    """Return how much larger the zero points are that are added before a level is rounded.

    An unfused operator adds none before.
    """
    return -op.output.zero_point if op.rounding.unfused else op.rounding.offset


def _clamp(op: Op, levels: Array) -> Array:
    """Round and saturate levels, then clamp them as a fused activation does."""
    return _activate(op, saturate(levels, op.output.dtype))


def _activate(op: Op, stored: Array) -> Array:
    out = op.output
    limits = activation_range(op.attributes.activation, out.scale, out.zero_point, out.dtype)
    return np.asarray(np.clip(stored, *limits).astype(out.dtype))


def elementwise(op: Op, values: Sequence[Array | None]) -> list[Array]:
    """Compute ADD, SUB and MUL of int8 as QLinearAdd and QLinearMul do.

    Sources: core/mlas/lib/intrinsics/avx2/qladd_avx2.cpp (fused multiplications and additions),
    core/mlas/lib/qlmul.cpp.
    """
    a, b = given(values, 0), given(values, 1)
    if op.rounding.unfused:
        return [_in_float(op, a, b)]
    if op.kind == "MUL":
        return [_product(op, a, b)]
    offset = offset_of(op)
    result = np.float32(op.output.scale)
    first = np.float32(op.input(0).scale) / result
    second = np.float32(op.input(1).scale) / result
    if op.kind == "SUB":
        second = -second
    zeros = [tensor.zero_point + offset for tensor in (op.input(0), op.input(1), op.output)]
    inner = multiply_add(zeros[0], first, second * np.float32(zeros[1]))
    fixed = np.float32(np.float32(zeros[2]) - inner)
    total = multiply_add(b.astype(np.int64) + offset, second, fixed)
    total = multiply_add(a.astype(np.int64) + offset, first, total)
    return [_clamp(op, _shift(total, offset))]


def _in_float(op: Op, a: Array, b: Array) -> Array:
    """Compute DequantizeLinear of both operands, the operator, and QuantizeLinear."""
    x, y = (
        dequantize(stored, op.input(i).scale, op.input(i).zero_point)
        for i, stored in enumerate((a, b))
    )
    value = {"ADD": np.add, "SUB": np.subtract, "MUL": np.multiply}[op.kind](x, y)
    out = op.output
    return _activate(op, quantize(value, out.scale, out.zero_point, out.dtype))


def _product(op: Op, a: Array, b: Array) -> Array:
    offset = offset_of(op)
    scales = np.float32(op.input(0).scale) * np.float32(op.input(1).scale)
    factor = np.float32(scales / np.float32(op.output.scale))
    x = a.astype(np.int64) - op.input(0).zero_point
    y = b.astype(np.int64) - op.input(1).zero_point
    total = (x * y).astype(np.float32) * factor + np.float32(op.output.zero_point + offset)
    return _clamp(op, _shift(total, offset))


def _shift(levels: Array, offset: int) -> Array:
    """Return the levels of uint8, rounded there, as those of int8."""
    return np.rint(levels) - offset if offset else levels


def average_pool(op: Op, windows: Array, count: Array) -> Array:
    """Compute int8 AVERAGE_POOL_2D as QLinearAveragePool does: float32 sums, row by row.

    Sources: contrib_ops/cpu/quantization/qlinear_pool.cc; of an unfused one core/providers/cpu/nn/
    pool_functors.h from opset 19 on, before core/mlas/lib/pooling.cpp.

    Args:
        op: the operator.
        windows: int64 (batch, height, width, rows, columns, channels), zero points outside.
        count: elements of each window, broadcast with the output.
    """
    offset, source, out = offset_of(op), op.input(0), op.output
    values = (windows - source.zero_point).astype(np.float32) * np.float32(source.scale)
    total: Array = np.asarray(0, np.float32)
    if op.rounding.by_columns:
        for column in range(windows.shape[4]):
            total = total + _one_by_one(values[:, :, :, :, column])
    else:
        total = _one_by_one(values.reshape(*windows.shape[:3], -1, windows.shape[5]))
    levels = total / count.astype(np.float32) / np.float32(out.scale)
    return _clamp(op, _shift(levels + np.float32(out.zero_point + offset), offset))


def _one_by_one(values: Array) -> Array:
    """Return the sum along the last axis but one, from its start."""
    return np.asarray(np.add.accumulate(values, axis=-2)[..., -1, :])


def softmax(op: Op, values: Sequence[Array | None]) -> list[Array]:
    """Compute int8 SOFTMAX as QLinearSoftmax does: a float32 table of exponentials, a float32 sum.

    The share is a quotient in double precision. Source: contrib_ops/cpu/quantization/
    qlinear_softmax.cc of onnxruntime 1.32.
    """
    x, powers = given(values, 0), exponentials(op)
    wide = x.astype(np.int64)
    chosen = powers[wide.max(axis=-1, keepdims=True) - wide]
    total = np.zeros((*x.shape[:-1], 1), np.float32)
    for position in range(x.shape[-1]):
        total = total + chosen[..., position : position + 1]
    levels = np.rint(chosen * np.float64(softmax_steps(op)) / total)
    info = np.iinfo(op.output.dtype)
    stored = levels.astype(np.int64) + op.output.zero_point
    return [np.clip(stored, info.min, info.max).astype(op.output.dtype)]


def softmax_steps(op: Op) -> np.float32:
    """Return the level of a share of one."""
    share = np.float32(1) / np.float32(op.output.scale)
    steps: np.float32 = np.floor(share)
    return steps


def exponentials(op: Op) -> Array:
    """Return exp of 0 ... 255 steps below the row's maximum, times a common factor, in float32."""
    scale, depth = np.float32(op.input(0).scale), op.input(0).shape[-1]
    largest = np.float32(np.finfo(np.float32).max / np.float32(depth))
    logarithm = np.float32(np.log(np.float64(largest)))
    shift = max(0.0, float(logarithm) - 5) / float(scale)
    steps = np.arange(0, -256, -1, dtype=np.float64)
    return np.asarray(np.exp((steps + shift) * float(scale)).astype(np.float32))
