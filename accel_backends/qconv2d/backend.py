"""What the compiler sends to the quantized conv2d accelerator, and how."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files

import numpy as np

from covp.accelerator.backend import AcceleratorBackend
from covp.accelerator.call import Argument, CCall, Constant, Requantize, Step, Words, Workspace
from covp.accelerator.parameters import Parameter
from covp.errors import ModelError
from covp.graph.pattern import Match, Pattern, constant, conv2d, optional, wildcard
from covp.graph.resolved import QuantizedConv2D, resolve

HALF = 0xFFFF
"""The largest value of a 16-bit half of a register."""


class QConv2dBackend(AcceleratorBackend):
    """Quantized conv2d unit on the bus: int8 CONV_2D, per-channel scales, own load/store unit.

    The accelerator of the CODAI'23 paper. As there, depthwise convolutions and fully connected
    layers stay on the core. With ``requantize=false`` the unit returns int32 sums and the core
    requantizes (the paper's split); with ``max_stride=1`` it also takes only the layers that the
    paper's took (stride 1, one group).
    """

    name = "qconv2d"
    patterns = (
        Pattern(
            "qconv2d",
            conv2d(wildcard("input"), constant("weights"), optional("bias")),
        ),
    )
    peripheral = "covp.peripherals.qconv2d:QConv2d"
    parameters = (
        Parameter("requantize", True, "the unit turns its int32 sums into int8 itself"),
        Parameter("max_stride", HALF, "largest stride of the address generator", 1, HALF),
        Parameter("macs_per_cycle", 16, "multiply-accumulates a cycle", 1, 1 << 20),
        Parameter("bytes_per_cycle", 4, "bytes a cycle through the memory port", 1, 1 << 10),
        Parameter("startup_cycles", 32, "cycles from the start bit to the first MAC", 0, 1 << 20),
    )

    def supports(self, match: Match) -> bool | str:
        """Whether the layer is an int8 convolution within the register widths."""
        op = match.op
        types = [tensor.dtype.name for tensor in (op.input(0), op.input(1), op.output)]
        if types != ["int8"] * 3:
            return f"{types[0]} x {types[1]} -> {types[2]}; only int8 x int8 -> int8"
        groups = op.input(0).shape[-1] // op.input(1).shape[-1]
        if groups != 1:
            return f"{groups} groups; only 1"
        try:
            job = resolve(op)
        except ModelError as error:
            return str(error)
        limit = self.values["max_stride"]
        if max(job.stride) > int(limit):
            return f"stride {job.stride[0]}x{job.stride[1]}; at most {limit}"
        for name, size, most in _sizes(job):
            if size > most:
                return f"{name} {size}; at most {most}"
        return True

    def lower(self, match: Match) -> Sequence[Step]:
        """One driver call; with ``requantize=false`` the core's requantization behind it."""
        job = resolve(match.op)
        output = match.outputs[0]
        if self.values["requantize"]:
            return [self._call(job, match, output)]
        sums = Workspace(4 * output.size)
        return [
            self._call(job, match, sums),
            Requantize(
                sums,
                output,
                job.multiplier,
                job.shift,
                job.output_zero_point,
                job.clamp,
                _largest_sum(job),
            ),
        ]

    def _call(self, job: QuantizedConv2D, match: Match, result: Argument) -> CCall:
        words = Words("job", register_image(job, bool(self.values["requantize"])))
        return CCall("qconv2d_run", "qconv2d.h", (words, match.bindings["input"], result))

    def driver(self, base: int) -> Mapping[str, str]:
        """The driver, with a header of register addresses made from the hardware model's map."""
        folder = files(__package__)
        return {
            "qconv2d_registers.h": self.peripheral_class().registers.c_header("QCONV2D", base),
            "qconv2d.h": folder.joinpath("qconv2d.h").read_text(encoding="utf-8"),
            "qconv2d.c": folder.joinpath("qconv2d.c").read_text(encoding="utf-8"),
        }


def register_image(
    job: QuantizedConv2D, requantize: bool
) -> tuple[tuple[str, int | Constant], ...]:
    """The values of the registers from WEIGHTS to MODE, in the order of their addresses."""
    low, high = job.clamp
    multiplier: int | Constant = 0
    shift: int | Constant = 0
    if requantize:
        multiplier = Constant("multiplier", job.multiplier.astype(np.int32))
        shift = Constant("shift", job.shift.astype(np.int32))
    return (
        ("WEIGHTS", Constant("weights", job.weights)),
        ("BIAS", Constant("bias", job.bias.astype(np.int32))),
        ("MULTIPLIER", multiplier),
        ("SHIFT", shift),
        ("BATCH", job.batch),
        ("INPUT_SIZE", _pair(job.in_height, job.in_width)),
        ("OUTPUT_SIZE", _pair(job.out_height, job.out_width)),
        ("CHANNELS", _pair(job.in_channels, job.out_channels)),
        ("KERNEL", _pair(*job.kernel)),
        ("STRIDE", _pair(*job.stride)),
        ("DILATION", _pair(*job.dilation)),
        ("PADDING", _pair(job.padding.top, job.padding.left)),
        ("ZERO_POINT", _pair(job.input_zero_point, job.output_zero_point)),
        ("CLAMP", _pair(low, high)),
        ("MODE", int(requantize)),
    )


def _pair(low: int, high: int) -> int:
    """Two 16-bit halves of a register; negative values in two's complement."""
    return (low & HALF) | (high & HALF) << 16


def _sizes(job: QuantizedConv2D) -> list[tuple[str, int, int]]:
    """What has to fit into a register or a counter: name, value, limit."""
    halves = {
        "input height": job.in_height,
        "input width": job.in_width,
        "output height": job.out_height,
        "output width": job.out_width,
        "input channels": job.in_channels,
        "output channels": job.out_channels,
        "kernel height": job.kernel[0],
        "kernel width": job.kernel[1],
        "dilation": max(job.dilation),
        "padding": max(job.padding.top, job.padding.left),
    }
    pixels = job.batch * job.out_height * job.out_width
    return [
        *((name, size, HALF) for name, size in halves.items()),
        ("multiply-accumulates", pixels * job.weights.size, 2**32 - 1),
    ]


def _largest_sum(job: QuantizedConv2D) -> int:
    """No sum of the layer is larger in magnitude: inputs less their zero point are within 255."""
    reach = max(127 - job.input_zero_point, job.input_zero_point + 128)
    weights = np.abs(job.weights.astype(np.int64)).reshape(job.out_channels, -1).sum(axis=1)
    return int((np.abs(job.bias.astype(np.int64)) + reach * weights).max())
