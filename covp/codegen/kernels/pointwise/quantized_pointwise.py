"""Functions of one and two elements: plain numbers by a formula, int8 and int16 as in TFLM."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from covp.codegen.c_text import c_array, c_float, c_type
from covp.codegen.kernels.clamp import clamp_includes
from covp.codegen.kernels.loop_nest import LoopNest, broadcast_strides, dense_strides
from covp.codegen.kernels.normalization.softmax import LOOKUP
from covp.codegen.kernels.operands import Operands
from covp.codegen.kernels.pointwise.pointwise_formulas import INTEGER, Formula, formula
from covp.codegen.kernels.pointwise.unary_table import emit_unary_table
from covp.codegen.kernels.requantize.scaling import finish, scale_function
from covp.codegen.layer import KernelRequest, LayerCode, kernel
from covp.graph.fixed_point import reciprocal
from covp.graph.graph import Op
from covp.graph.ops.pointwise import POINTWISE, STORED
from covp.graph.ops.quantized_binary import (
    COMPARED_BITS,
    COMPARISONS,
    compared_factors,
    difference_factors,
    divide_factor,
    prelu_factors,
    squared_bits,
)
from covp.graph.ops.quantized_unary import INTERPOLATED, TABLES, interpolation_table
from covp.graph.quantization import activation_range, quantize_multiplier

_VARIABLES = "xyz"
_TYPES = {
    "f": ["float32"],
    "i": ["int8", "int16", "int32", "int64"],
    "u": ["uint8", "uint16", "uint32", "uint64"],
    "b": ["bool"],
}


def emit_pointwise(request: KernelRequest) -> LayerCode:
    """Emit the formula of the operator for every element of the output."""
    return emit_formula(request, formula(request.op))


def emit_formula(request: KernelRequest, of: Formula, includes: Sequence[str] = ()) -> LayerCode:
    """Emit a loop nest around a C function of one element of each input, with broadcasting.

    May run in place of an input that is read at the very index that is written.
    """
    op, shape = request.op, request.op.output.shape
    positions = [i for i, tensor in enumerate(op.inputs) if tensor is not None]
    names = ["input"] if len(positions) == 1 else [f"input{n}" for n in range(len(positions))]
    strides = {
        name: broadcast_strides(op.input(position).shape, shape)
        for name, position in zip(names, positions, strict=True)
    }
    nest = LoopNest.over(shape, **strides, output=dense_strides(shape))
    parameters = ", ".join(_parameter(op, position, of) for position in positions)
    head = f"static inline {c_type(op.output.dtype)} apply({parameters})"
    function = "\n".join([head, "{", *(f"    {line}" for line in of.statements), "}\n"])

    def step(ahead: int) -> list[str]:
        values = ", ".join(f"{name}[{nest.at(name, ahead)}]" for name in names)
        return [f"output[{nest.at('output', ahead)}] = apply({values});"]

    same = [
        t
        for p in positions
        if (t := op.input(p)).shape == shape and t.dtype.itemsize == op.output.dtype.itemsize
    ]
    return Operands.of(op, positions).layer(
        request,
        nest.loops(step, nest.unroll() if of.cheap else 1),
        definitions=[of.definitions, function],
        includes=["#include <math.h>", *includes],
        in_place=same,
    )


def _parameter(op: Op, position: int, of: Formula) -> str:
    name = _VARIABLES[position]
    used = any(re.search(rf"\b{name}\b", line) for line in of.statements)
    unused = "" if used else " __attribute__((unused))"
    return f"{c_type(op.input(position).dtype)} {name}{unused}"


def _register() -> None:
    for kind, rule in POINTWISE.items():
        # the first input says which emitter; of a choice it is the condition
        letters = "b" if kind == "SELECT_V2" else rule.takes
        for letter in letters:
            kernel(kind, *_TYPES[letter], rule="wraps" if letter in "iu" else None)(emit_pointwise)


_register()


for _kind in TABLES:
    kernel(_kind, "int8")(emit_unary_table)
for _kind in STORED:
    kernel(_kind, "int8", "uint8", "int16")(emit_pointwise)


def emit_interpolated(request: KernelRequest) -> LayerCode:
    """Emit an int16 function as interpolation in a table of 513 samples."""
    table = c_array("table", interpolation_table(request.op).astype(np.int16), "513 samples")
    return emit_formula(
        request, Formula(("return (int16_t)lookup(table, x);",), False, table + LOOKUP)
    )


for _kind in INTERPOLATED:
    kernel(_kind, "int16")(emit_interpolated)


@kernel("SQRT", "int16")
def emit_sqrt16(request: KernelRequest) -> LayerCode:
    """Emit a square root in single precision, truncated."""
    source, out = request.op.input(0), request.op.output
    real = f"{c_float(source.scale)} * (float)x"
    lines = (
        f"float root = x > 0 ? sqrtf({real}) / {c_float(out.scale)} : 0.0f;",
        "return root < 32767.0f ? (int16_t)root : 32767;",
    )
    return emit_formula(request, Formula(lines, False))


def _subtract_zero_points(op: Op) -> list[str]:
    """Return the statements that subtract the zero points."""
    zeros = op.input(0).zero_point, op.input(1).zero_point
    return [f"int32_t a = x - ({zeros[0]}), b = y - ({zeros[1]});"]


def _finish(request: KernelRequest, value: str, activation: str = "none") -> list[str]:
    out = request.op.output
    limits = activation_range(activation, out.scale, out.zero_point, out.dtype)
    text = finish(request.core, value, out.zero_point, limits, c_type(out.dtype))
    return [line.removeprefix("    ") for line in text.rstrip().split("\n")]


def _emit(request: KernelRequest, lines: list[str], definitions: list[str]) -> LayerCode:
    of = Formula((*_subtract_zero_points(request.op), *lines), False, "\n".join(definitions))
    info = np.iinfo(request.op.input(0).dtype)
    includes = clamp_includes(request.core, int(info.min), int(info.max))
    return emit_formula(request, of, [includes])


def _span(op: Op, position: int = 0) -> int:
    """Return the largest |input - zero point|."""
    return (1 << 8 * op.input(position).dtype.itemsize) - 1


def emit_comparison(request: KernelRequest) -> LayerCode:
    """Emit a comparison of both sides in units of 2**-8."""
    op = request.op
    bound = _span(op) << COMPARED_BITS
    scale = [
        scale_function(request.core, name, factor, bound)
        for name, factor in zip(("first", "second"), compared_factors(op), strict=True)
    ]
    sign = INTEGER[op.kind].split()[1]
    step = 1 << COMPARED_BITS
    return _emit(request, [f"return first(a * {step}) {sign} second(b * {step});"], scale)


for _kind in COMPARISONS:
    kernel(_kind, "int8", "int16")(emit_comparison)


@kernel("ABS", "int16")
def emit_abs(request: KernelRequest) -> LayerCode:
    """Emit the magnitude, rescaled where the scales differ."""
    op = request.op
    ratio = np.float32(op.input(0).scale) / np.float32(op.output.scale)
    scale = scale_function(request.core, "scale", quantize_multiplier(float(ratio)), 1 << 15)
    value = "(x < 0 ? -x : x)"
    lines = _finish(request, value if ratio == 1 else f"scale{value}")
    of = Formula(tuple(lines), False, "" if ratio == 1 else scale)
    return emit_formula(request, of, [clamp_includes(request.core, -32768, 32767)])


@kernel("PRELU", "int8", "int16")
def emit_prelu(request: KernelRequest) -> LayerCode:
    """Emit PRELU: negative inputs are multiplied by their slope."""
    positive, negative = prelu_factors(request.op)
    scale = [
        scale_function(request.core, "above", positive, _span(request.op)),
        scale_function(request.core, "below", negative, _span(request.op) * _span(request.op, 1)),
    ]
    lines = _finish(request, "(a >= 0 ? above(a) : below(a * b))")
    return _emit(request, lines, scale)


@kernel("SQUARED_DIFFERENCE", "int8", "int16")
def emit_squared_difference(request: KernelRequest) -> LayerCode:
    """Emit a squared difference at twice the larger scale, as in a sum."""
    first, second, last = difference_factors(request.op)
    bits = squared_bits(request.op)
    bound = _span(request.op) << bits
    scale = [
        scale_function(request.core, "first", first, bound),
        scale_function(request.core, "second", second, bound),
        scale_function(request.core, "last", last, bound * bound),
    ]
    step = 1 << bits
    lines = [f"int32_t d = first(a * {step}) - second(b * {step});"]
    return _emit(request, lines + _finish(request, "last(d * d)"), scale)


@kernel("DIV", "int8")
def emit_divide(request: KernelRequest) -> LayerCode:
    """Emit the division; the reciprocal of each possible divisor comes from a table."""
    op = request.op
    multiplier, shift = divide_factor(op)
    inverse, bits = reciprocal(np.maximum(np.arange(256), 1))
    tables = [
        c_array("inverse", inverse.astype(np.int32), "of the divisor, with 31 bits"),
        c_array("bits", bits.astype(np.int8), "by which it is less"),
    ]
    helper = (
        "static inline int32_t high(int32_t u, int32_t v)\n{\n"
        "    return (int32_t)(((int64_t)u * v + (1 << 30)) >> 31);\n}\n"
    )
    lines = [
        "if (b < 0) {",
        "    a = -a;",
        "    b = -b;",
        "}",
        "uint32_t size = (uint32_t)(a < 0 ? ~a : a);",
        "int32_t headroom = size ? __builtin_clz(size) - 1 : 31;",
        f"int32_t right = bits[b] + headroom - ({shift});",
        "right = right < 0 ? 0 : right;",
        "int32_t q = high((int32_t)((uint32_t)a << headroom), inverse[b]);",
        f"q = high(q, {multiplier});",
        # from 32 on nothing is left; a divisor of zero gives an end of the range
        "int32_t mask = right > 31 ? 0 : (int32_t)((1u << right) - 1u);",
        "int32_t rounded = right > 30 ? 0",
        "    : (q >> right) + ((q & mask) > (mask >> 1) + (q < 0));",
        "rounded = b == 0 ? (a < 0 ? -(1 << 20) : 1 << 20) : rounded;",
    ]
    finished = _finish(request, "rounded", op.attributes.activation)
    return _emit(request, lines + finished, [*tables, helper])
