"""CONV_2D and FULLY_CONNECTED with int16 activations and int8 weights.

The same loops as for int8 (`conv2d.py`); patches need no widening, and with a kernel of 1x1 the
tile mostly reads the input where it is.

A word of a patch holds two int16, in their order. Weights of four k lie in a word as 0, 2, 1, 3, so
that the widened bytes 0 and 2 are the weights of the first two. Where the weights do not prove that
sums fit 32 bits, sums over parts of k that do are added up in 64 bits.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from covp.chip.cores import Core
from covp.codegen.c_text import indent
from covp.codegen.kernels.convolution.conv2d import Conv2DCode
from covp.codegen.kernels.convolution.conv2d_schedules import block_of
from covp.codegen.kernels.convolution.gemm import Gemm, RegisterBlock
from covp.codegen.kernels.requantize.finisher import layer_finisher
from covp.codegen.layer import KernelRequest, LayerCode, kernel
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
