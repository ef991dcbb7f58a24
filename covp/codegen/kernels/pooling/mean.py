"""MEAN and SUM of int8 and int16 over any axes; neighbouring outputs together."""

from __future__ import annotations

from math import prod

from covp.codegen.c_text import c_type
from covp.codegen.kernels.pooling.reduce import Fold, emit_reduction, reduce_schedules
from covp.codegen.kernels.requantize.finisher import finisher
from covp.codegen.layer import KernelRequest, LayerCode, kernel
from covp.graph.ops.reduction import mean_scaling


@kernel("MEAN", "int8", "int16", schedules=reduce_schedules)
@kernel("SUM", "int8", "int16", schedules=reduce_schedules)
def emit_mean(request: KernelRequest) -> LayerCode:
    """Emit the sum less its zero points, requantized; of a mean with the count in the factor."""
    op = request.op
    count = prod(op.input(0).shape[axis] for axis in op.attributes.axes)
    out, scaling = op.output, mean_scaling(op, count)
    bound = (scaling.clamp[1] + 1 + abs(op.input(0).zero_point)) * count
    requantizer = finisher(request.core, request.arithmetic, scaling, bound)
    columns = ", ".join(str(int(column[0])) for column in requantizer.columns())
    zero = op.input(0).zero_point * count
    # sums that may leave int32 wrap, as TFLM's do
    total, cast = ("uint32_t", "(int32_t)") if requantizer.wraps else ("int32_t", "")
    result = f"({c_type(out.dtype)})requantize({cast}{{0}} - ({zero}), {columns})"
    fold = Fold(total, "0", f"{{0}} += ({total}){{1}};" if cast else "{0} += {1};", result)
    return emit_reduction(request, fold, [requantizer.function()], [requantizer.includes])
