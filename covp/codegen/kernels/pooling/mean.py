"""MEAN and SUM of int8 and int16 over any axes; neighbouring outputs together."""

from __future__ import annotations

from math import prod

import numpy as np
from numpy.typing import NDArray

from covp.codegen.c_text import c_type
from covp.codegen.kernels.pooling.reduce import Fold, emit_reduction, reduce_schedules
from covp.codegen.kernels.requantize.requantize import Requantizer
from covp.codegen.kernels.requantize.requantize_int16 import Requantizer16
from covp.codegen.layer import KernelRequest, LayerCode, kernel
from covp.graph.ops.reduction import half_even_mean_factor, mean_factor
from covp.graph.quantization import quantize_multiplier


@kernel("MEAN", "int8", "int16", schedules=reduce_schedules)
@kernel("SUM", "int8", "int16", schedules=reduce_schedules)
def emit_mean(request: KernelRequest) -> LayerCode:
    """The sum less its zero points, requantized; of a mean with the count in the factor."""
    op = request.op
    count = prod(op.input(0).shape[axis] for axis in op.attributes.axes)
    pair = mean_factor(op, count)
    factor: NDArray[np.float32] | None = None
    if op.arithmetic == "onnxruntime":
        factor = np.array([half_even_mean_factor(op, count)])
        pair = quantize_multiplier(float(factor[0]))
    multiplier, shift = (np.array([value], np.int32) for value in pair)
    out, info = op.output, np.iinfo(op.output.dtype)
    low, high = int(info.min), int(info.max)
    bound = (high + 1 + abs(op.input(0).zero_point)) * count
    numbers = (request.core, multiplier, shift, out.zero_point, low, high, bound)
    requantizer = Requantizer16(*numbers) if high > 127 else Requantizer(*numbers, factor)
    columns = ", ".join(str(int(column[0])) for column in requantizer.columns())
    zero = op.input(0).zero_point * count
    # sums that may leave int32 wrap, as TFLM's do
    total, cast = ("uint32_t", "(int32_t)") if requantizer.wraps else ("int32_t", "")
    result = f"({c_type(out.dtype)})requantize({cast}{{0}} - ({zero}), {columns})"
    fold = Fold(total, "0", f"{{0}} += ({total}){{1}};" if cast else "{0} += {1};", result)
    return emit_reduction(request, fold, [requantizer.function()], [requantizer.includes])
