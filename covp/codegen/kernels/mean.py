"""MEAN and SUM of int8 over any axes; neighbouring outputs together."""

from __future__ import annotations

from math import prod

import numpy as np

from covp.codegen.kernels.reduce import Fold, emit_reduction, reduce_schedules
from covp.codegen.kernels.requantize import Requantizer
from covp.codegen.layer import KernelRequest, LayerCode, kernel
from covp.graph.ops.reduction import mean_factor


@kernel("MEAN", "int8", schedules=reduce_schedules)
@kernel("SUM", "int8", schedules=reduce_schedules)
def emit_mean(request: KernelRequest) -> LayerCode:
    """The sum less its zero points, requantized; of a mean with the count in the factor."""
    op = request.op
    count = prod(op.input(0).shape[axis] for axis in op.attributes.axes)
    multiplier, shift = (np.array([value], np.int32) for value in mean_factor(op, count))
    bound = (128 + abs(op.input(0).zero_point)) * count
    out = op.output
    requantizer = Requantizer(request.core, multiplier, shift, out.zero_point, -128, 127, bound)
    columns = ", ".join(str(int(column[0])) for column in requantizer.columns())
    zero = op.input(0).zero_point * count
    result = f"(int8_t)requantize({{0}} - ({zero}), {columns})"
    fold = Fold("int32_t", "0", "{0} += {1};", result)
    return emit_reduction(request, fold, [requantizer.function()], [requantizer.includes])
