"""int16 LOGISTIC and TANH by interpolation in TFLM's table; RELU, RELU6 and LEAKY_RELU."""

from __future__ import annotations

from string import Template

import numpy as np

from covp.codegen.c_text import c_array
from covp.codegen.kernels.clamp import clamp_includes
from covp.codegen.kernels.pointwise.each import emit_each
from covp.codegen.kernels.requantize.scaling import finish, scale_function
from covp.codegen.layer import KernelRequest, LayerCode, kernel
from covp.graph.ops.activation import leaky_factors, rectifier_factor
from covp.graph.ops.int16 import sigmoid_factor, sigmoid_table
from covp.graph.quantization import activation_range

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
    """Rescaled and clamped."""
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
    """``value`` is a C expression of ``x``, an input less its zero point."""
    zero = request.op.input(0).zero_point
    activate = (
        "static inline int16_t activate(int32_t x)\n{\n"
        f"{f'    x -= {zero};' + chr(10) if zero else ''}"
        f"{finish(request.core, value, request.op.output.zero_point, limits, 'int16_t')}}}\n"
    )
    includes = [clamp_includes(request.core, *limits)]
    return emit_each(request, "activate(@)", [*definitions, activate], includes)
