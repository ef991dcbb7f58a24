"""QUANTIZE and DEQUANTIZE: between float and stored integers, or between two quantizations."""

from __future__ import annotations

import numpy as np

from covp.codegen.c_text import c_array, c_float, c_type
from covp.codegen.kernels.clamp import clamp_includes
from covp.codegen.kernels.pointwise.each import emit_each
from covp.codegen.kernels.pointwise.unary_table import table_of
from covp.codegen.kernels.requantize.scaling import finish, scale_function
from covp.codegen.layer import KernelRequest, LayerCode, kernel
from covp.graph.ops.quantize import HALF
from covp.graph.quantization import quantize_multiplier


@kernel("QUANTIZE", "float32")
def emit_quantize(request: KernelRequest) -> LayerCode:
    """Round half away from zero, then clamp."""
    halves = f"(steps < 0.0f ? {c_float(-HALF)} : {c_float(HALF)})"
    return _emit_quantize(request, f"(int32_t)(steps + {halves})", "")


@kernel("QUANTIZE", "float32", rule="half even")
def emit_quantize_half_even(request: KernelRequest) -> LayerCode:
    """Round half to even, then clamp."""
    return _emit_quantize(request, "half_to_even(steps)", _HALF_TO_EVEN)


def _emit_quantize(request: KernelRequest, rounded: str, definition: str) -> LayerCode:
    out = request.op.output
    info = np.iinfo(out.dtype)
    # beyond these the result is clamped anyway, and the conversion to int32 is defined
    far = float(4 * (int(info.max) - int(info.min)))
    function = (
        f"{definition}"
        f"static inline {c_type(out.dtype)} quantize(float x)\n{{\n"
        f"    float steps = x / {c_float(out.scale)};\n"
        # this way round a NaN becomes the least value too
        f"    steps = steps > {c_float(-far)} ? steps : {c_float(-far)};\n"
        f"    steps = steps > {c_float(far)} ? {c_float(far)} : steps;\n"
        f"    int32_t stored = {rounded} + ({out.zero_point});\n"
        f"    stored = stored < {info.min} ? {info.min} : stored;\n"
        f"    return ({c_type(out.dtype)})(stored > {info.max} ? {info.max} : stored);\n}}\n"
    )
    return emit_each(request, "quantize(@)", [function])


# the sum has no place for fractions: its last bit is one step
_HALF_TO_EVEN = """\
static inline int32_t half_to_even(float steps)
{
    union { float value; int32_t bits; } sum = {steps + 12582912.0f};
    return sum.bits - 0x4b400000;
}

"""


@kernel("QUANTIZE", "int8", "uint8")
def emit_requantize(request: KernelRequest) -> LayerCode:
    """Emit a change of quantization as a table."""
    table = c_array("table", table_of(request.op), "the result of each byte")
    return emit_each(request, "table[(uint8_t)@]", [table])


@kernel("QUANTIZE", "int16", "int32")
def emit_wide_requantize(request: KernelRequest) -> LayerCode:
    """Emit a change of quantization: scaled with TFLM's two roundings, then clamped."""
    source, out = request.op.input(0), request.op.output
    info, result = np.iinfo(out.dtype), c_type(out.dtype)
    # of int32 TFLM's difference wraps
    centred = f"(int32_t)((uint32_t)x - {source.zero_point}u)" if source.zero_point else "x"
    factor = quantize_multiplier(source.scale / out.scale)
    bound = 1 << (16 if source.dtype == np.int16 else 31)
    scaling = scale_function(request.core, "scale", factor, bound)
    limits = int(info.min), int(info.max)
    if out.dtype == np.int32:
        zero = out.zero_point % (1 << 32)
        body = f"    return (int32_t)((uint32_t)scale({centred}) + {zero}u);\n"
        includes = ""
    else:
        body = finish(request.core, f"scale({centred})", out.zero_point, limits, result)
        includes = clamp_includes(request.core, *limits)
    function = f"static inline {result} quantize(int32_t x)\n{{\n{body}}}\n"
    return emit_each(request, "quantize(@)", [scaling + function], [includes])


@kernel("DEQUANTIZE", "int8", "uint8", "int16")
def emit_dequantize(request: KernelRequest) -> LayerCode:
    """Emit one product; it is exact before its rounding, in single precision too.

    Without a floating-point unit bytes go through a table of the 256 results.
    """
    source = request.op.input(0)
    if source.dtype.itemsize == 1 and not request.core.has("fpu"):
        table = c_array("table", table_of(request.op), "the value of each byte")
        return emit_each(request, "table[(uint8_t)@]", [table])
    value = f"(float)(@ - ({source.zero_point})) * {c_float(source.scale)}"
    return emit_each(request, value, [])
