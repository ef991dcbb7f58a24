"""int16 ADD, SUB and MUL with TFLM's constants in the code; RELU, RELU6 and LEAKY_RELU.

LOGISTIC and TANH interpolate in TFLM's table.
"""

from __future__ import annotations

from string import Template

import numpy as np

from covp.codegen.c_text import c_array
from covp.codegen.kernels.clamp import clamp_includes
from covp.codegen.kernels.pointwise.each import emit_each
from covp.codegen.kernels.pointwise.elementwise import emit_elements, plain_schedules
from covp.codegen.kernels.requantize.scaling import exact_scale, finish, scale_function
from covp.codegen.layer import KernelRequest, LayerCode, kernel
from covp.graph.graph import Op
from covp.graph.ops.activation import leaky_factors, rectifier_factor
from covp.graph.ops.elementwise import Factor, left_shift, product_factor, sum_factors
from covp.graph.ops.int16 import sigmoid_factor, sigmoid_table
from covp.graph.quantization import activation_range, multiply_by_quantized_multiplier


@kernel("ADD", "int16", schedules=plain_schedules)
@kernel("SUB", "int16", schedules=plain_schedules)
def emit_sum16(request: KernelRequest) -> LayerCode:
    """Emit a sum at twice the larger scale; the factor of the larger one is a shift."""
    op = request.op
    first, second, result = sum_factors(op)
    definitions, terms, bound = [], [], 0
    for position, (name, factor) in enumerate((("x", first), ("y", second))):
        zero = op.input(position).zero_point
        most = max(32768 + zero, 32767 - zero) << left_shift(op)
        stored = f"({name} - ({zero}))" if zero else name
        bits = exact_scale(factor, left_shift(op))
        if bits is not None:
            terms.append(f"{stored} * {1 << (left_shift(op) - bits)}")
        else:
            definitions.append(scale_function(request.core, f"scale_{name}", factor, most - 1))
            terms.append(f"scale_{name}({stored} * {1 << left_shift(op)})")
        bound += _largest(most, factor)
    definitions.append(scale_function(request.core, "scale_sum", result, bound))
    sign = "-" if op.kind == "SUB" else "+"
    return _emit(request, definitions, f"scale_sum({terms[0]} {sign} {terms[1]})")


@kernel("MUL", "int16", schedules=plain_schedules)
def emit_product16(request: KernelRequest) -> LayerCode:
    """Emit the product of the two, scaled."""
    scaling = scale_function(request.core, "scale", product_factor(request.op), 1 << 30)
    return _emit(request, [scaling], "scale(x * y)")


def _largest(bound: int, factor: Factor) -> int:
    """Return the largest magnitude after scaling."""
    ends = multiply_by_quantized_multiplier(np.array([-bound, bound]), *factor)
    return int(np.abs(ends).max())


def _emit(request: KernelRequest, definitions: list[str], value: str) -> LayerCode:
    op: Op = request.op
    out = op.output
    limits = activation_range(op.attributes.activation, out.scale, out.zero_point, out.dtype)
    combine = (
        "static inline int16_t combine(int32_t x, int32_t y)\n{\n"
        f"{finish(request.core, value, out.zero_point, limits, 'int16_t')}}}\n"
    )
    includes = [clamp_includes(request.core, *limits)]
    schedule = request.choose(plain_schedules)
    return emit_elements(request, [*definitions, combine], includes, schedule)


_HEAD = Template("""\
static inline int16_t activate(int32_t x)
{
    int32_t value = (x * $multiplier + $half) >> $right;
    uint32_t magnitude = (uint32_t)(value < 0 ? -value : value);
    uint32_t at = magnitude >> $bits, part = magnitude & $mask;
    uint32_t sum = $saturated;
    if (at < 255)
        sum = ((uint32_t)sigmoid[at] << $bits) + part * (uint32_t)(sigmoid[at + 1] - sigmoid[at]);
""")
_LOGISTIC = """\
    uint32_t result = value >= 0 ? sum + 512u : (1u << 25) - sum + 511u;
    return (int16_t)(result >> 10);
}
"""
_TANH = """\
    int32_t centred = (int32_t)sum - (1 << 23);
    return (int16_t)((value >= 0 ? centred + 128 : 127 - centred) >> 8);
}
"""


@kernel("LOGISTIC", "int16")
@kernel("TANH", "int16")
def emit_sigmoid(request: KernelRequest) -> LayerCode:
    """Emit a table of 256 values of the sigmoid function; tanh(x) is 2 * sigmoid(2 * x) - 1."""
    op = request.op
    logistic = op.kind == "LOGISTIC"
    multiplier, right = sigmoid_factor(op)
    bits = 9 if logistic else 8
    head = _HEAD.substitute(
        multiplier=multiplier,
        half=1 << (right - 1) if right else 0,
        right=right,
        bits=bits,
        mask=(1 << bits) - 1,
        saturated=f"{0x7FFF << 10 if logistic else 0xFFFF << 8}u",
    )
    table = c_array("sigmoid", sigmoid_table(), "sigmoid of i / 24 in units of 2**-16")
    return emit_each(request, "activate(@)", [table, head + (_LOGISTIC if logistic else _TANH)])


@kernel("RELU", "int16")
@kernel("RELU6", "int16")
def emit_rectifier16(request: KernelRequest) -> LayerCode:
    """Emit an int16 rectifier: rescaled and clamped."""
    out = request.op.output
    limits = activation_range(request.op.kind.lower(), out.scale, out.zero_point, out.dtype)
    definitions = [scale_function(request.core, "scale", rectifier_factor(request.op), 1 << 16)]
    return _emit_with_clamp(request, definitions, "scale(x)", limits)


@kernel("LEAKY_RELU", "int16")
def emit_leaky16(request: KernelRequest) -> LayerCode:
    """Emit one factor for each side of the zero point."""
    positive, negative = leaky_factors(request.op)
    definitions = [
        scale_function(request.core, "positive", positive, 1 << 16),
        scale_function(request.core, "negative", negative, 1 << 16),
    ]
    sign = "-" if request.op.attributes.alpha < 0 else ""
    value = f"x >= 0 ? positive(x) : {sign}negative(x)"
    info = np.iinfo(np.int16)
    return _emit_with_clamp(request, definitions, f"({value})", (int(info.min), int(info.max)))


def _emit_with_clamp(
    request: KernelRequest, definitions: list[str], value: str, limits: tuple[int, int]
) -> LayerCode:
    """Emit ``value``, a C expression of ``x`` = input - zero point, with a clamp."""
    zero = request.op.input(0).zero_point
    activate = (
        "static inline int16_t activate(int32_t x)\n{\n"
        f"{f'    x -= {zero};' + chr(10) if zero else ''}"
        f"{finish(request.core, value, request.op.output.zero_point, limits, 'int16_t')}}}\n"
    )
    includes = [clamp_includes(request.core, *limits)]
    return emit_each(request, "activate(@)", [*definitions, activate], includes)
