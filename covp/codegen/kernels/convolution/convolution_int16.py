"""Convolutions of int16 activations: CONV_2D and DEPTHWISE_CONV_2D with 64-bit sums."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from covp.chip.cores import Core
from covp.codegen.c_text import c_array, indent
from covp.codegen.kernels.convolution.conv2d import Conv2DCode
from covp.codegen.kernels.convolution.conv2d_schedules import block_of
from covp.codegen.kernels.convolution.depthwise import (
    DepthwiseCode,
    default_schedule,
    depthwise_schedules,
)
from covp.codegen.kernels.convolution.gemm import Gemm, RegisterBlock
from covp.codegen.kernels.operands import Operands
from covp.codegen.kernels.requantize.finisher import layer_finisher
from covp.codegen.kernels.window import Window
from covp.codegen.layer import Argument, KernelRequest, LayerCode, kernel
from covp.codegen.schedule import KnobSpace, Schedule, valid_schedules
from covp.graph.typed_convolution import QuantizedConv2D, resolve


class Gemm16(Gemm):
    """C text of the tile of one int16 layer whose sums fit 32 bits; arguments as `Gemm`."""

    element = "int16_t"
    byte_order = (0, 2, 1, 3)


class LongGemm16(Gemm16):
    """C text of the tile of one int16 layer with sums of 64 bits."""

    def _columns(self) -> list[NDArray[np.int32]]:
        low, high = (self.bias >> bits for bits in (0, 32))
        return [low.astype(np.int32), high.astype(np.int32), *self.requantizer.columns()]

    def _block(self, pixels: int, channels: int) -> list[str]:
        columns = len(self._columns())
        sums = [f"{p}{c}" for c in range(channels) for p in range(pixels)]
        starts = []
        for c in range(channels):
            low, high = f"(uint32_t)q[{c * columns}]", f"(uint64_t)(uint32_t)q[{c * columns + 1}]"
            starts += [f"t{p}{c} = (int64_t)({high} << 32 | {low})" for p in range(pixels)]
        lines = [f"int64_t {', '.join(starts)};", self._patch_pointer()]
        part = self._safe_steps()
        full, rest = divmod(self.steps, part)
        head = f"for (int32_t part = 0; part < {full}; part++) {{"
        for opening, steps in ((head, part * (full > 0)), ("{", rest)):
            if steps:
                inner = [f"int32_t {', '.join(f's{s} = 0' for s in sums)};"]
                inner += self._loop(pixels, channels, steps)
                inner += [f"t{s} += s{s};" for s in sums]
                lines += [opening, indent(inner), "}"]
        for c in range(channels):
            constants = [f"q[{c * columns + i}]" for i in range(2, columns)]
            lines += [
                f"output[{p * self.channels + c}] = "
                f"(int16_t)requantize({', '.join([f't{p}{c}', *constants])});"
                for p in range(pixels)
            ]
        return lines

    def _safe_steps(self) -> int:
        """Return a multiple of the unrolled steps whose sums fit 32 bits, wherever they begin."""
        unroll = min(self.block.unroll, self.steps)
        magnitude = np.abs(self.weights.astype(np.int64))
        for parts in range(1, self.steps + 1):
            steps = -(-self.steps // parts)
            steps = -(-steps // unroll) * unroll
            starts = np.arange(0, self.depth, steps * self.block.dot.step)
            most = int(np.add.reduceat(magnitude, starts, axis=1).max())
            if most << 15 < 1 << 31:
                break
        return min(steps, self.steps)


_MOST_SUMS = 16
_DSP = (
    {"pixels": 4, "channels": 1, "unroll": 8, "weights": 8},
    {"pixels": 1, "channels": 4, "unroll": 8, "weights": 8},
    {"pixels": 1, "channels": 1, "unroll": 8, "weights": 8},
)
_OTHERS = (
    {"pixels": 4, "channels": 4, "unroll": 4},
    {"pixels": 2, "channels": 2, "unroll": 4},
    {"pixels": 1, "channels": 4, "unroll": 4},
    {"pixels": 1, "channels": 1, "unroll": 4},
)
"""Knobs that searches found good, best first."""


class Conv2DCode16(Conv2DCode):
    """C text of one layer."""

    element = "int16_t"
    gemm_type = Gemm16


class LongConv2DCode16(Conv2DCode16):
    """C text of one layer with sums of 64 bits."""

    gemm_type = LongGemm16


def conv2d_schedules16(request: KernelRequest) -> list[Schedule]:
    """Return the valid schedules of a convolution or fully connected layer, the default first."""
    problem, core = resolve(request.op), request.core
    tile = _tile(core)
    knobs = {"pixels": (1, 2, 3, 4), "channels": (1, 2, 3, 4, 6, 8), "unroll": (1, 2, 4, 8)}
    space = KnobSpace(tile, {**knobs, "weights": (8, 16)} if tile == "smlad" else knobs)
    candidates = [Schedule(tile, knobs) for knobs in (_DSP if tile == "smlad" else _OTHERS)]
    # a small core has too few registers for the largest of them
    first = candidates if core.has("mull") else candidates[1:]
    default = next(s for s in first if _is_valid(problem, s))
    return valid_schedules([space], default, lambda s: _is_valid(problem, s))


def _tile(core: Core) -> str:
    """Return the kind of tile: SMLAD where the core has it; custom instructions take bytes."""
    return "smlad" if core.has("dsp") else "mac"


def _is_valid(problem: QuantizedConv2D, schedule: Schedule) -> bool:
    pixels = problem.batch * problem.out_height * problem.out_width
    sums = schedule["pixels"] * schedule["channels"]
    return (
        schedule["pixels"] <= pixels
        and schedule["channels"] <= problem.out_channels
        and sums <= _MOST_SUMS
    )


@kernel("CONV_2D", "int16", schedules=conv2d_schedules16)
@kernel("FULLY_CONNECTED", "int16", schedules=conv2d_schedules16)
def emit_conv2d16(request: KernelRequest) -> LayerCode:
    """Emit the C of one convolution or fully connected layer."""
    schedule = request.choose(conv2d_schedules16)
    block = block_of(schedule)
    assert isinstance(block, RegisterBlock)
    problem = resolve(request.op)
    _, requantizer = layer_finisher(request.core, problem)
    code = LongConv2DCode16 if requantizer.sum_type == "int64_t" else Conv2DCode16
    return code(request, problem, block).layer(str(schedule))


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
