"""CONV_2D and FULLY_CONNECTED with int16 activations and int8 weights.

The same loops as for int8 (`conv2d.py`); patches need no widening, and with a kernel of 1x1 the
tile mostly reads the input where it is.
"""

from __future__ import annotations

from covp.chip.cores import Core
from covp.codegen.kernels.convolution.conv2d import Conv2DCode
from covp.codegen.kernels.convolution.conv2d_schedules import block_of
from covp.codegen.kernels.convolution.gemm import Block
from covp.codegen.kernels.convolution.gemm_int16 import Gemm16
from covp.codegen.layer import KernelRequest, LayerCode, kernel
from covp.codegen.schedule import Schedule, Space, valid_schedules
from covp.graph.typed_convolution import QuantizedConv2D, resolve

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


def conv2d_schedules16(request: KernelRequest) -> list[Schedule]:
    """Return the valid schedules of a convolution or fully connected layer, the default first."""
    problem, core = resolve(request.op), request.core
    tile = _tile(core)
    knobs = {"pixels": (1, 2, 3, 4), "channels": (1, 2, 3, 4, 6, 8), "unroll": (1, 2, 4, 8)}
    space = Space(tile, {**knobs, "weights": (8, 16)} if tile == "smlad" else knobs)
    candidates = [Schedule(tile, knobs) for knobs in (_DSP if tile == "smlad" else _OTHERS)]
    # a small core has too few registers for the largest of them
    first = candidates if core.has("mull") else candidates[1:]
    default = next(s for s in first if _is_valid(problem, s))
    return valid_schedules([space], default, lambda s: _is_valid(problem, s))


def _tile(core: Core) -> str:
    """SMLAD where the core has it; instructions of users take bytes."""
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
    assert isinstance(block, Block)
    return Conv2DCode16(request, resolve(request.op), block).layer(str(schedule))
