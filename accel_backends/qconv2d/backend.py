"""The compiler side of the quantized conv2d accelerator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from covp.accelerator.backend import AcceleratorBackend
from covp.accelerator.call import (
    Argument,
    CCall,
    Constant,
    RegisterImage,
    Requantize,
    Step,
    Workspace,
)
from covp.accelerator.declared import TECHNOLOGY, TIMING, WAIT
from covp.accelerator.driver_template import driver_file
from covp.accelerator.limits import Limit
from covp.accelerator.parameters import Parameter
from covp.base.c_names import c_prefix
from covp.errors import ModelError
from covp.graph.pattern import Match, Pattern, constant, conv2d, op, optional, wildcard
from covp.graph.typed_convolution import QuantizedConv2D, resolve
from covp.peripherals.qconv2d import COUNTER, IMAGE, QConv2d, decode

HALF = 0xFFFF
"""The largest value of a 16-bit half of a register."""


class QConv2dBackend(AcceleratorBackend):
    """Quantized conv2d unit on the bus: int8 convolutions, per-channel scales, own load/store unit.

    The accelerator of the CODAI'23 paper, extended by depthwise convolutions and requantization in
    the unit. The paper's split is ``requantize=false,depthwise=false,max_stride=1``: the unit
    returns int32 sums, the core requantizes, and only convolutions with stride 1 and one group are
    accepted.
    """

    name = "qconv2d"
    patterns = (
        Pattern(
            "qconv2d",
            conv2d(wildcard("input"), constant("weights"), optional("bias"))
            | op("DEPTHWISE_CONV_2D", wildcard("input"), constant("weights"), optional("bias")),
        ),
    )
    peripheral = QConv2d
    parameters = (
        Parameter("requantize", True, "the unit turns its int32 sums into int8 itself"),
        Parameter("depthwise", True, "the unit does depthwise convolutions"),
        Parameter("max_stride", HALF, "largest stride of the address generator", 1, HALF),
        *TIMING,
        WAIT,
        TECHNOLOGY,
    )

    def supports(self, match: Match) -> bool | str | Sequence[Limit]:
        """int8 convolutions within the register widths."""
        op = match.op
        types = [tensor.dtype.name for tensor in (op.input(0), op.input(1), op.output)]
        if types != ["int8"] * 3:
            return f"{types[0]} x {types[1]} -> {types[2]}; only int8 x int8 -> int8"
        if op.kind == "CONV_2D" and op.input(0).shape[-1] != op.input(1).shape[-1]:
            return [Limit("groups", op.input(0).shape[-1] // op.input(1).shape[-1], at_most=1)]
        try:
            job = resolve(op)
        except ModelError as error:
            return str(error)
        if job.depthwise and not self.values["depthwise"]:
            return [Limit("groups", job.in_channels, at_most=1)]
        stride = Limit("stride", max(job.stride), at_most=int(self.values["max_stride"]))
        return [stride, *_sizes(job)]

    def estimate(self, match: Match) -> int | None:
        """The time of the hardware model; None where the registers are too narrow for the layer."""
        job = resolve(match.op)
        if max(*_halves(job).values(), *job.stride) > HALF:
            return None
        words = register_image(job, bool(self.values["requantize"]))
        numbers = {name: word for name, word in words.items() if isinstance(word, int)}
        model: QConv2d = self.make_peripheral()
        return model.timing(decode(numbers)).cycles

    def requantizes(self, match: Match) -> Sequence[Requantize]:
        """All results with ``requantize=false``."""
        if self.values["requantize"]:
            return ()
        job, output = resolve(match.op), match.outputs[0]
        return [
            Requantize(
                Workspace(4 * output.size),
                output,
                job.multiplier,
                job.shift,
                job.output_zero_point,
                job.clamp,
                _largest_sum(job),
            )
        ]

    def lower(self, match: Match) -> Sequence[Step]:
        """One driver call; with ``requantize=false`` followed by the core's requantization."""
        left = self.requantizes(match)
        result = left[0].sums if left else match.outputs[0]
        return [self._call(resolve(match.op), match, result), *left]

    def _call(self, job: QuantizedConv2D, match: Match, result: Argument) -> CCall:
        image = register_image(job, bool(self.values["requantize"]))
        words = RegisterImage(
            "job", tuple((register.name, image[register.name]) for register in IMAGE)
        )
        return CCall(f"{self.name}_run", f"{self.name}.h", (words, match.bindings["input"], result))

    def overlaps(self, function: str) -> tuple[str, str] | None:
        """The driver's."""
        if function != f"{self.name}_run":
            return None
        return f"{self.name}_begin", f"{self.name}_end"

    def driver(self, base: int) -> Mapping[str, str]:
        """The driver, with a header of register addresses made from the hardware model's map."""
        name, interrupt = self.name, self.values["wait"] == "sleep"
        return {
            f"{name}_registers.h": QConv2d.registers.c_header(c_prefix(name), base),
            f"{name}.h": driver_file(__package__, "driver.h.in", name),
            f"{name}.c": driver_file(__package__, "driver.c.in", name, interrupt=interrupt),
        }


def register_image(job: QuantizedConv2D, requantize: bool) -> dict[str, int | Constant]:
    """The values of the registers in `IMAGE` by their names."""
    low, high = job.clamp
    multiplier: int | Constant = 0
    shift: int | Constant = 0
    if requantize:
        multiplier = Constant("multiplier", job.multiplier.astype(np.int32))
        shift = Constant("shift", job.shift.astype(np.int32))
    return {
        "WEIGHTS": Constant("weights", job.weights),
        "BIAS": Constant("bias", job.bias.astype(np.int32)),
        "MULTIPLIER": multiplier,
        "SHIFT": shift,
        "BATCH": job.batch,
        "INPUT_SIZE": _pair(job.in_height, job.in_width),
        "OUTPUT_SIZE": _pair(job.out_height, job.out_width),
        "CHANNELS": _pair(job.in_channels, job.out_channels),
        "KERNEL": _pair(*job.kernel),
        "STRIDE": _pair(*job.stride),
        "DILATION": _pair(*job.dilation),
        "PADDING": _pair(job.padding.top, job.padding.left),
        "ZERO_POINT": _pair(job.input_zero_point, job.output_zero_point),
        "CLAMP": _pair(low, high),
        "MODE": int(requantize) | int(job.depthwise) << 1,
    }


def _pair(low: int, high: int) -> int:
    """Two 16-bit halves of a register; negative values in two's complement."""
    return (low & HALF) | (high & HALF) << 16


def _halves(job: QuantizedConv2D) -> dict[str, int]:
    """Sizes that are half of a register each; the stride has a limit of its own."""
    return {
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


def _sizes(job: QuantizedConv2D) -> list[Limit]:
    """The limits of registers and counters."""
    pixels = job.batch * job.out_height * job.out_width
    macs = Limit("multiply-accumulates", pixels * job.weights.size, at_most=2**32 - 1)
    height = job.in_height + job.padding.top + job.padding.bottom
    width = job.in_width + job.padding.left + job.padding.right
    padded = Limit(
        "elements of a padded image", height * width * job.in_channels, at_most=COUNTER - 1
    )
    taps = job.out_width * job.kernel[0] * job.kernel[1] * job.in_channels
    halves = [Limit(name, size, at_most=HALF) for name, size in _halves(job).items()]
    row = Limit("taps of an output row", taps, at_most=COUNTER - 1)
    return [padded, row, *halves, macs]


def _largest_sum(job: QuantizedConv2D) -> int:
    """No sum of the layer is larger in magnitude: inputs less their zero point are within 255."""
    reach = max(127 - job.input_zero_point, job.input_zero_point + 128)
    magnitudes = np.abs(job.weights.astype(np.int64))
    axes = (0, 1) if job.depthwise else (1, 2, 3)
    weights = magnitudes.sum(axis=axes)
    return int((np.abs(job.bias.astype(np.int64)) + reach * weights).max())
