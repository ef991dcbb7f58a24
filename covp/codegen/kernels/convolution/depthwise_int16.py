"""DEPTHWISE_CONV_2D with int16 activations and int8 weights.

As for int8 (`depthwise.py`), but that planes hold the input as it is. Where the
weights do not prove that sums fit 32 bits, each output is summed up in 64 bits.
"""

from __future__ import annotations

import numpy as np

from covp.codegen.c_text import c_array
from covp.codegen.kernels.convolution.depthwise import (
    DepthwiseCode,
    default_schedule,
    depthwise_schedules,
)
from covp.codegen.kernels.operands import Operands
from covp.codegen.kernels.requantize.finisher import layer_finisher
from covp.codegen.kernels.window import Window
from covp.codegen.layer import Argument, KernelRequest, LayerCode, kernel
from covp.codegen.schedule import Schedule
from covp.graph.typed_convolution import QuantizedConv2D, resolve


def depthwise_schedules16(request: KernelRequest) -> list[Schedule]:
    """Return the valid schedules of a depthwise convolution, the default first."""
    problem = resolve(request.op)
    if layer_finisher(request.core, problem)[1].sum_type == "int64_t":
        return [Schedule("wide")]
    default = default_schedule(problem, request.core)
    return [default, *(s for s in depthwise_schedules(request) if s != default)]


@kernel("DEPTHWISE_CONV_2D", "int16", schedules=depthwise_schedules16)
def emit_depthwise16(request: KernelRequest) -> LayerCode:
    """Emit the C of one depthwise convolution."""
    problem = resolve(request.op)
    schedule = request.choose(depthwise_schedules16)
    if schedule.tile == "wide":
        return _emit_wide(request, problem)
    widened = schedule.tile == "plane_smlad"
    return DepthwiseCode(request, problem, widened, schedule["at_once"]).layer(str(schedule))


def _emit_wide(request: KernelRequest, problem: QuantizedConv2D) -> LayerCode:
    """Emit loops over pixels and channels, with 64-bit sums."""
    op, p = request.op, problem
    bias, requantizer = layer_finisher(request.core, p)
    arguments: dict[str, Argument] = {"input": op.input(0), "output": op.output}
    constants = [
        c_array("weights", p.weights, "by row, then column, then channel"),
        c_array("bias", bias),
        c_array("scales", np.stack(requantizer.columns(), axis=1), "per channel: requantization"),
    ]
    window = Window(
        (p.batch, p.in_height, p.in_width, p.in_channels),
        (p.batch, p.out_height, p.out_width, p.out_channels),
        p.kernel,
        p.stride,
        p.padding,
        p.dilation,
    )
    source = "c" if p.depth_multiplier == 1 else f"c / {p.depth_multiplier}"
    row = p.kernel[1] * p.out_channels
    pixel = [
        f"for (int32_t c = 0; c < {p.out_channels}; c++) {{",
        "    int64_t sum = bias[c];",
        f"    {window.rows}",
        f"        {window.columns}",
        f"            sum += image[{window.tap} + {source}] * "
        f"weights[ky * {row} + kx * {p.out_channels} + c];",
        "    output[c] = (int16_t)requantize(sum, scales[2 * c], scales[2 * c + 1]);",
        "}",
    ]
    operands = Operands(arguments, "".join(constants))
    functions, includes = [requantizer.function()], [requantizer.includes]
    body = window.loops(pixel, "int16_t")
    return operands.layer(request, body, functions, includes, schedule="wide")
