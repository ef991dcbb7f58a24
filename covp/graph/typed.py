"""Operators as plain numbers, for accelerators: shapes, strides, paddings, integers.

`typed(op)` gives one of the classes here or of `covp.graph.typed_convolution`. A multiplier and a
shift mean multiplier / 2**31 * 2**shift, as in
`covp.graph.quantization.multiply_by_quantized_multiplier`.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.errors import ModelError
from covp.graph.arithmetic import Arithmetic, is_tflm
from covp.graph.attributes import Padding, Pair
from covp.graph.graph import Op
from covp.graph.ops.elementwise import Factor, product_factor, sum_factors
from covp.graph.ops.matmul import BatchMatMul, matmul_factor
from covp.graph.ops.softmax import exponentials
from covp.graph.quantization import activation_range
from covp.graph.typed_convolution import (
    CONVOLUTIONS,
    Convolution,
    FloatConv2D,
    QuantizedConv2D,
    resolve,
    resolve_float,
)

__all__ = [
    "FloatConv2D",
    "QuantizedConv2D",
    "QuantizedElementwise",
    "QuantizedMatMul",
    "QuantizedPool2D",
    "QuantizedSoftmax",
    "TypedLayer",
    "named_values",
    "typed",
]


@dataclass(frozen=True, eq=False)
class QuantizedMatMul(Convolution):
    """An int8 BATCH_MATMUL: the rows of the first operand are pixels, one below the other.

    Attributes:
        input_zero_point, weight_zero_point, output_zero_point: of the first and the second operand
            and the output.
        multiplier, shift: of all sums; shift is positive to the left.
        clamp: lowest and highest output, in stored units.
        input_by_depth: the first operand is stored (depth, rows), not (rows, depth).
        weights_by_depth: the second is stored (depth, columns), not (columns, depth).
        input_repeats, weights_repeat: one matrix for all of several products.
    """

    input_zero_point: int
    weight_zero_point: int
    output_zero_point: int
    multiplier: int
    shift: int
    clamp: tuple[int, int]
    input_by_depth: bool
    weights_by_depth: bool
    input_repeats: bool
    weights_repeat: bool


def resolve_matmul(op: Op) -> QuantizedMatMul:
    """Return the integers of an int8 BATCH_MATMUL.

    Raises:
        ModelError: an operand repeats along some axes of the batch and not along others.
    """
    a: BatchMatMul = op.attributes
    first, second, result = op.input(0), op.input(1), op.output
    *batches, rows, columns = result.shape
    batch = math.prod(batches)
    repeats = []
    for tensor in (first, second):
        own = math.prod(tensor.shape[:-2])
        if own not in (1, batch):
            raise ModelError(f"{op.name}: {tensor.name} repeats along a part of the batch")
        repeats.append(own != batch)
    depth = first.shape[-2 if a.adj_x else -1]
    multiplier, shift = matmul_factor(op)
    return QuantizedMatMul(
        batch=batch,
        in_height=rows,
        in_width=1,
        in_channels=depth,
        out_height=rows,
        out_width=1,
        out_channels=columns,
        kernel=(1, 1),
        stride=(1, 1),
        dilation=(1, 1),
        padding=Padding(),
        depthwise=False,
        input_zero_point=first.zero_point,
        weight_zero_point=second.zero_point,
        output_zero_point=result.zero_point,
        multiplier=multiplier,
        shift=shift,
        clamp=activation_range("none", result.scale, result.zero_point, result.dtype),
        input_by_depth=a.adj_x,
        weights_by_depth=not a.adj_y,
        input_repeats=repeats[0],
        weights_repeat=repeats[1],
    )


@dataclass(frozen=True)
class QuantizedElementwise:
    """An int8 ADD, SUB or MUL of two tensors of the same shape.

    ADD and SUB: both inputs less their zero point are shifted left by 20 and scaled by ``first``
    and ``second``; the sum or difference is scaled by ``result``. MUL: the product is scaled by
    ``result``; ``first`` and ``second`` are (0, 0).
    """

    kind: str
    elements: int
    first_zero_point: int
    second_zero_point: int
    output_zero_point: int
    first: Factor
    second: Factor
    result: Factor
    clamp: tuple[int, int]


@dataclass(frozen=True)
class QuantizedPool2D:
    """An int8 AVERAGE_POOL_2D or MAX_POOL_2D; padding never counts."""

    kind: str
    batch: int
    in_height: int
    in_width: int
    channels: int
    out_height: int
    out_width: int
    filter: Pair
    stride: Pair
    padding: Padding
    clamp: tuple[int, int]


@dataclass(frozen=True, eq=False)
class QuantizedSoftmax:
    """An int8 SOFTMAX along the last axis.

    Attributes:
        exponentials: int32, 256 values: exp of 0 ... -255 steps below the row's maximum, with 0
            integer bits, as TFLM computes them.
    """

    rows: int
    depth: int
    exponentials: NDArray[np.int32]


TypedLayer = (
    QuantizedConv2D
    | FloatConv2D
    | QuantizedMatMul
    | QuantizedElementwise
    | QuantizedPool2D
    | QuantizedSoftmax
)


def typed(op: Op) -> TypedLayer:
    """Return the operator as plain numbers.

    Args:
        op: of int8 or float32 tensors, its shapes known.

    Raises:
        ModelError: no class here describes its kind or type; the text says which.
    """
    if not is_tflm(op) and op.output.quantization is not None:
        owner = Arithmetic.of(op).text
        raise ModelError(f"{op.kind} with {owner} arithmetic; accelerators follow TFLite Micro's")
    data = [t for t in op.inputs if t is not None and t.dtype != np.int32]
    types = {tensor.dtype.name for tensor in (*data, op.output)}
    kind = "float32" if types == {"float32"} else "int8" if types == {"int8"} else ""
    resolver = _RESOLVERS.get((op.kind, kind))
    if resolver is None:
        known = sorted({dtype for name, dtype in _RESOLVERS if name == op.kind})
        hint = f"only {' or '.join(known)}" if known else "not an operator for accelerators"
        raise ModelError(f"{op.kind} on {' and '.join(sorted(types))}; {hint}")
    return resolver(op)


_PAIRS = {
    "kernel": ("KERNEL_HEIGHT", "KERNEL_WIDTH"),
    "filter": ("FILTER_HEIGHT", "FILTER_WIDTH"),
    "stride": ("STRIDE_HEIGHT", "STRIDE_WIDTH"),
    "dilation": ("DILATION_HEIGHT", "DILATION_WIDTH"),
    "clamp": ("LOW", "HIGH"),
    "first": ("FIRST_MULTIPLIER", "FIRST_SHIFT"),
    "second": ("SECOND_MULTIPLIER", "SECOND_SHIFT"),
    "result": ("OUTPUT_MULTIPLIER", "OUTPUT_SHIFT"),
}


def named_values(layer: object) -> dict[str, Any]:
    """Return the values of a typed layer under the names that registers have.

    A field's name in upper case (IN_CHANNELS, WEIGHTS, INPUT_ZERO_POINT); pairs have two names:
    KERNEL_HEIGHT and _WIDTH, likewise FILTER, STRIDE and DILATION; PAD_TOP, PAD_LEFT, PAD_BOTTOM,
    PAD_RIGHT; LOW and HIGH of the clamp; FIRST_MULTIPLIER and _SHIFT, likewise SECOND and OUTPUT.
    Empty for anything that is not a typed layer.
    """
    if not isinstance(layer, TypedLayer):
        return {}
    values: dict[str, Any] = {}
    for field in dataclasses.fields(layer):
        value = getattr(layer, field.name)
        if field.name in _PAIRS:
            values |= dict(zip(_PAIRS[field.name], value, strict=True))
        elif isinstance(value, Padding):
            values |= {f"PAD_{side.upper()}": n for side, n in dataclasses.asdict(value).items()}
        else:
            values[field.name.upper()] = value
    return values


def _convolution(op: Op) -> QuantizedConv2D:
    problem = resolve(op)
    if problem.weights.dtype != np.int8:
        raise ModelError(f"{op.kind} whose weights less their zero point do not fit int8")
    return problem


def _elementwise(op: Op) -> QuantizedElementwise:
    if op.input(0).shape != op.input(1).shape:
        both = op.input(0).shape, op.input(1).shape
        shapes = " and ".join("x".join(map(str, shape)) or "a scalar" for shape in both)
        raise ModelError(f"{op.kind} of shapes {shapes}; only equal ones are supported")
    out = op.output
    none: Factor = (0, 0)
    product = op.kind == "MUL"
    first, second, result = (none, none, product_factor(op)) if product else sum_factors(op)
    return QuantizedElementwise(
        op.kind,
        out.size,
        op.input(0).zero_point,
        op.input(1).zero_point,
        out.zero_point,
        first,
        second,
        result,
        activation_range(op.attributes.activation, out.scale, out.zero_point, out.dtype),
    )


def _pool(op: Op) -> QuantizedPool2D:
    if op.attributes.ties_up:
        raise ModelError(f"{op.kind} of a uint8 file, whose averages round ties up")
    a, out = op.attributes, op.output
    batch, height, width, channels = op.input(0).shape
    return QuantizedPool2D(
        op.kind,
        batch,
        height,
        width,
        channels,
        out.shape[1],
        out.shape[2],
        a.filter,
        a.stride,
        a.padding,
        activation_range(a.activation, out.scale, out.zero_point, out.dtype),
    )


def _softmax(op: Op) -> QuantizedSoftmax:
    depth = op.input(0).shape[-1]
    return QuantizedSoftmax(op.input(0).size // depth, depth, exponentials(op).astype(np.int32))


_RESOLVERS: dict[tuple[str, str], Callable[[Op], TypedLayer]] = {
    **{(k, "int8"): _convolution for k in CONVOLUTIONS},
    **{(k, "int8"): _elementwise for k in ("ADD", "SUB", "MUL")},
    **{(k, "int8"): _pool for k in ("AVERAGE_POOL_2D", "MAX_POOL_2D")},
    ("BATCH_MATMUL", "int8"): resolve_matmul,
    ("SOFTMAX", "int8"): _softmax,
    ("CONV_2D", "float32"): resolve_float,
    ("DEPTHWISE_CONV_2D", "float32"): resolve_float,
}
