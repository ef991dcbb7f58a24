"""ADD, SUB and MUL with numpy's broadcasting."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from covp.errors import ModelError
from covp.graph.arithmetic import by_rule
from covp.graph.graph import Op
from covp.graph.index_map import elementwise
from covp.graph.ops import half_even
from covp.graph.ops.definition import (
    OPS,
    PLAIN_INTEGERS,
    Array,
    OpDefinition,
    Shape,
    check_type,
    given,
    ieee,
    of_one_type,
)
from covp.graph.quantization import (
    activation_range,
    float_activation_range,
    multiply_by_quantized_multiplier,
    quantize_multiplier,
)

_LEFT_SHIFTS = {"int8": 20, "int16": 15}
"""Bits by which the inputs of a sum are shifted left before scaling, by type."""
_FLOAT = {"ADD": np.add, "SUB": np.subtract, "MUL": np.multiply}


def _shape(op: Op) -> list[Shape]:
    plain = op.output.dtype != np.float32 and op.output.quantization is None
    if plain and op.attributes.activation != "none":
        raise ModelError(
            f"{op.kind} of {op.output.dtype} with the fused activation "
            f"{op.attributes.activation}, which is not supported; quantize the model to int8"
        )
    shapes = op.input(0).shape, op.input(1).shape
    try:
        return [tuple(np.broadcast_shapes(*shapes))]
    except ValueError:
        raise ModelError(f"shapes {shapes[0]} and {shapes[1]} do not broadcast") from None


def _reference(op: Op, values: Sequence[Array | None]) -> list[Array]:
    a, b = given(values, 0), given(values, 1)
    if op.output.dtype == np.float32:
        low, high = float_activation_range(op.attributes.activation)
        with ieee():
            return [np.clip(_FLOAT[op.kind](a, b), low, high).astype(np.float32)]
    if op.output.quantization is None or op.output.dtype.name not in _LEFT_SHIFTS:
        return [_FLOAT[op.kind](a, b).astype(op.output.dtype)]
    out = op.output
    x = a.astype(np.int64) - op.input(0).zero_point
    y = b.astype(np.int64) - op.input(1).zero_point
    scaled = _product(op, x, y) if op.kind == "MUL" else _sum(op, x, y)
    limits = activation_range(op.attributes.activation, out.scale, out.zero_point, out.dtype)
    return [np.clip(scaled + out.zero_point, *limits).astype(out.dtype)]


Factor = tuple[int, int]
"""Multiplier and shift, as `quantize_multiplier` gives them."""


def sum_factors(op: Op) -> tuple[Factor, Factor, Factor]:
    """Return the factors of ADD and SUB: of both inputs, after `left_shift`, and of their sum.

    Both inputs are brought to twice the larger scale: tensorflow/lite/micro/kernels/add_common.cc
    and sub_common.cc.
    """
    scales = op.input(0).scale, op.input(1).scale
    twice = 2.0 * max(scales)
    return (
        quantize_multiplier(scales[0] / twice),
        quantize_multiplier(scales[1] / twice),
        quantize_multiplier(twice / ((1 << left_shift(op)) * op.output.scale)),
    )


def left_shift(op: Op) -> int:
    """Return the bits by which ADD and SUB shift both inputs left before they are scaled."""
    return _LEFT_SHIFTS[op.output.dtype.name]


def _sum(op: Op, x: Array, y: Array) -> Array:
    """Compute AddElementwise or SubElementwise."""
    first, second, result = sum_factors(op)
    bits = left_shift(op)
    x = multiply_by_quantized_multiplier(x << bits, *first)
    y = multiply_by_quantized_multiplier(y << bits, *second)
    return multiply_by_quantized_multiplier(x - y if op.kind == "SUB" else x + y, *result)


def product_factor(op: Op) -> Factor:
    """Return the factor of MUL: tensorflow/lite/micro/kernels/mul_common.cc."""
    return quantize_multiplier(op.input(0).scale * op.input(1).scale / op.output.scale)


def _product(op: Op, x: Array, y: Array) -> Array:
    """Compute MulElementwise."""
    return multiply_by_quantized_multiplier(x * y, *product_factor(op))


_numbers = of_one_type("float32", "int8", "int32", *PLAIN_INTEGERS, data=None)


def _types(op: Op) -> None:
    """Check the types: float32, plain integers of any size, quantized int8, int16 or int32."""
    _numbers(op)
    if op.output.quantization is not None:
        check_type(op.output, "int8", "int16", "int32")


for _kind in _FLOAT:
    OPS[_kind] = OpDefinition(
        _shape,
        by_rule(_reference, half_even.elementwise),
        types=_types,
        reads=elementwise,
        clamps=True,
    )
