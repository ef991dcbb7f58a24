"""int16 ADD, SUB and MUL: TFLM's arithmetic with its constants in the code."""

from __future__ import annotations

import numpy as np

from covp.codegen.kernels.clamp import clamp_includes
from covp.codegen.kernels.pointwise.elementwise import emit_elements, plain_schedules
from covp.codegen.kernels.requantize.scaling import exact_scale, finish, scale_function
from covp.codegen.layer import KernelRequest, LayerCode, kernel
from covp.graph.graph import Op
from covp.graph.ops.elementwise import Factor, left_shift, product_factor, sum_factors
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
