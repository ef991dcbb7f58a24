"""QUANTIZE and DEQUANTIZE."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from covp.errors import ModelError
from covp.graph.arithmetic import by_rule
from covp.graph.float_scaling import dequantize, quantize
from covp.graph.graph import Op
from covp.graph.index_map import elementwise
from covp.graph.ops.definition import OPS, Array, OpDefinition, Shape, check_type, given, ieee
from covp.graph.quantization import multiply_by_quantized_multiplier, quantize_multiplier


def _quantized_shape(op: Op) -> list[Shape]:
    if op.output.dtype.kind not in "iu" or op.output.quantization is None:
        raise ModelError(f"QUANTIZE to {op.output.dtype}, which has no scale; only integers")
    return [op.input(0).shape]


def _real_shape(op: Op) -> list[Shape]:
    if op.output.dtype != np.float32:
        raise ModelError(f"DEQUANTIZE to {op.output.dtype}; only float32 is supported")
    return [op.input(0).shape]


HALF = np.nextafter(np.float32(0.5), np.float32(0))
"""Addend before truncation that rounds half away from zero: with 0.5 itself the sum of the number
next below would be rounded up to 1."""


def _check_types(op: Op) -> None:
    for tensor in (op.input(0), op.output):
        check_type(tensor, "int8", "uint8", "int16", "float32", "int32")


def _quantize(op: Op, values: Sequence[Array | None]) -> list[Array]:
    """Compute AffineQuantize of floats (half away from zero), Requantize of integers."""
    x, out = given(values, 0), op.output
    if x.dtype == np.float32:
        with ieee():
            ratio = x / np.float32(out.scale)
        stored = np.trunc(ratio + np.copysign(HALF, ratio)) + out.zero_point
    else:
        source = op.input(0)
        factor = quantize_multiplier(source.scale / out.scale)
        centred = x.astype(np.int64) - source.zero_point
        stored = multiply_by_quantized_multiplier(centred, *factor) + out.zero_point
    info = np.iinfo(out.dtype)
    if x.dtype == np.float32:
        stored = np.where(np.isnan(x), info.min, stored)
    return [np.clip(stored, info.min, info.max).astype(out.dtype)]


def _dequantize(op: Op, values: Sequence[Array | None]) -> list[Array]:
    """Compute (stored - zero point) * scale in double precision, as reference_ops::Dequantize."""
    source = op.input(0)
    centred = given(values, 0).astype(np.int64) - source.zero_point
    with ieee():
        return [(centred * float(source.scale)).astype(np.float32)]


def _quantize_half_even(op: Op, values: Sequence[Array | None]) -> list[Array]:
    """Quantize to integers by way of float32."""
    x, out = given(values, 0), op.output
    if x.dtype != np.float32:
        x = dequantize(x, op.input(0).scale, op.input(0).zero_point)
    return [quantize(x, out.scale, out.zero_point, out.dtype)]


def _dequantize_single(op: Op, values: Sequence[Array | None]) -> list[Array]:
    """Return the product in float32."""
    return [dequantize(given(values, 0), op.input(0).scale, op.input(0).zero_point)]


OPS["QUANTIZE"] = OpDefinition(
    _quantized_shape, by_rule(_quantize, _quantize_half_even), types=_check_types, reads=elementwise
)
OPS["DEQUANTIZE"] = OpDefinition(
    _real_shape, by_rule(_dequantize, _dequantize_single), types=_check_types, reads=elementwise
)
