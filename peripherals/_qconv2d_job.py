"""The register interface of the quantized conv2d accelerator, and the jobs that it describes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from covp.hardware.job import PROTOCOL
from covp.hardware.job_timing import Traffic
from covp.hardware.job_unit import JobError
from covp.hardware.registers import Field, Register, RegisterMap

Pair = tuple[int, int]


COUNTER = 1 << 24
"""Limit of the address generator, exclusive: elements of a padded image, taps of an output row."""


def _pair(name: str, offset: int, low: str, high: str, doc: str) -> Register:
    return Register(name, offset, fields=[Field(low, 0, 16), Field(high, 16, 16)], doc=doc)


REGISTERS = RegisterMap(
    *PROTOCOL,
    Register("INPUT", 0x54, doc="Address of the input: int8, NHWC."),
    Register("OUTPUT", 0x58, doc="Address of the result: int8 or int32, NHWC."),
    Register("WEIGHTS", 0x10, doc="Address of the weights: int8, OHWI."),
    Register("BIAS", 0x14, doc="Address of the bias: int32, one per output channel."),
    Register("MULTIPLIER", 0x18, doc="Address of the multipliers: int32, one per output channel."),
    Register("SHIFT", 0x1C, doc="Address of the shifts: int32 in [-31, 30], positive left."),
    Register("BATCH", 0x20, doc="Number of images."),
    _pair("INPUT_SIZE", 0x24, "HEIGHT", "WIDTH", "Size of an input image in pixels."),
    _pair("OUTPUT_SIZE", 0x28, "HEIGHT", "WIDTH", "Size of an output image in pixels."),
    _pair("CHANNELS", 0x2C, "INPUT", "OUTPUT", "Channels of the input and of the output."),
    _pair("KERNEL", 0x30, "HEIGHT", "WIDTH", "Taps of the kernel."),
    _pair("STRIDE", 0x34, "HEIGHT", "WIDTH", "Input pixels from one output pixel to the next."),
    _pair("DILATION", 0x38, "HEIGHT", "WIDTH", "Input pixels from one tap to the next."),
    _pair("PADDING", 0x3C, "TOP", "LEFT", "Padding in pixels; the sizes imply the other sides."),
    _pair("ZERO_POINT", 0x40, "INPUT", "OUTPUT", "Zero points, signed, -128..127."),
    _pair("CLAMP", 0x44, "LOW", "HIGH", "Lowest and highest int8 result, signed."),
    Register(
        "MODE",
        0x48,
        fields=[
            Field("REQUANTIZE", 0, doc="1: int8 results; 0: int32 sums."),
            Field("DEPTHWISE", 1, doc="1: each output channel has one input channel."),
        ],
        doc="What the result is.",
    ),
)
"""The register interface."""

IMAGE = tuple(
    register
    for register in REGISTERS
    if REGISTERS["WEIGHTS"].offset <= register.offset <= REGISTERS["MODE"].offset
)
"""The registers with a layer's constants, in the order of their addresses: a driver may copy them
as one block."""


@dataclass(frozen=True)
class Job:
    """One convolution, decoded from the registers. Pairs are (height, width)."""

    input: int
    weights: int
    bias: int
    multiplier: int
    shift: int
    output: int
    batch: int
    in_size: Pair
    out_size: Pair
    in_channels: int
    out_channels: int
    kernel: Pair
    stride: Pair
    dilation: Pair
    pad: Pair
    in_zero_point: int
    out_zero_point: int
    clamp: Pair
    requantize: bool
    depthwise: bool

    @property
    def outputs(self) -> int:
        """Elements of the result."""
        return self.batch * self.out_size[0] * self.out_size[1] * self.out_channels

    @property
    def depth(self) -> int:
        """Products in one sum."""
        return self.kernel[0] * self.kernel[1] * (1 if self.depthwise else self.in_channels)

    @property
    def macs(self) -> int:
        """Multiply-accumulates, those with padding included."""
        return self.outputs * self.depth

    @property
    def padded_elements(self) -> int:
        """Of an input image with its padding, as far as the output reads it."""
        rows, columns = (
            (self.out_size[i] - 1) * self.stride[i] + (self.kernel[i] - 1) * self.dilation[i] + 1
            for i in (0, 1)
        )
        return rows * columns * self.in_channels

    @property
    def row_elements(self) -> int:
        """Inputs that a row of outputs reads, one for each tap."""
        return self.out_size[1] * self.kernel[0] * self.kernel[1] * self.in_channels

    def operands(self) -> dict[str, tuple[int, int]]:
        """(address, bytes) of what the unit reads."""
        table = 4 * self.out_channels
        found = {
            "input": (
                self.input,
                self.batch * self.in_size[0] * self.in_size[1] * self.in_channels,
            ),
            "weights": (self.weights, self.out_channels * self.depth),
            "bias": (self.bias, table),
        }
        if self.requantize:
            found |= {"multiplier": (self.multiplier, table), "shift": (self.shift, table)}
        return found

    def result(self) -> tuple[int, int]:
        """(address, bytes) of what the unit writes."""
        return self.output, self.outputs * (1 if self.requantize else 4)

    def traffic(self) -> Traffic:
        """The bytes that the unit moves."""
        return Traffic(sum(size for _, size in self.operands().values()), self.result()[1])

    def check(self) -> None:
        """Reject a job that the unit cannot compute.

        Raises:
            JobError: with the first code that applies.
        """
        for code, applies in self._problems():
            if applies:
                raise JobError(code)

    def _problems(self) -> Iterator[tuple[str, bool]]:
        """Error codes in the order in which they are looked for, and whether each applies."""
        sizes = (*self.in_size, *self.out_size, *self.kernel, *self.stride, *self.dilation)
        yield "size", min(*sizes, self.batch, self.in_channels, self.out_channels) == 0
        yield "size", self.macs >= 1 << 32
        yield "size", max(self.padded_elements, self.row_elements) >= COUNTER
        yield "size", self.depthwise and self.out_channels % self.in_channels != 0
        stored = (*self.clamp, self.in_zero_point, self.out_zero_point)
        yield "range", min(stored) < -128 or max(stored) > 127
        yield "range", self.clamp[0] > self.clamp[1]
        scales = (self.multiplier, self.shift) if self.requantize else (self.output,)
        yield "alignment", any(address % 4 for address in (self.bias, *scales))
        start, size = self.result()
        operands = self.operands().values()
        yield "overlap", any(at < start + size and start < at + n for at, n in operands)


def decode(words: Mapping[str, int | float]) -> Job:
    """The job that register values stand for, by register name; addresses may be left out."""

    def address(register: str) -> int:
        return int(words.get(register, 0))

    def field(register: str, name: str) -> int:
        return REGISTERS[register][name].get(int(words[register]))

    def size(register: str) -> Pair:
        return field(register, "HEIGHT"), field(register, "WIDTH")

    return Job(
        input=address("INPUT"),
        weights=address("WEIGHTS"),
        bias=address("BIAS"),
        multiplier=address("MULTIPLIER"),
        shift=address("SHIFT"),
        output=address("OUTPUT"),
        batch=int(words["BATCH"]),
        in_size=size("INPUT_SIZE"),
        out_size=size("OUTPUT_SIZE"),
        in_channels=field("CHANNELS", "INPUT"),
        out_channels=field("CHANNELS", "OUTPUT"),
        kernel=size("KERNEL"),
        stride=size("STRIDE"),
        dilation=size("DILATION"),
        pad=(field("PADDING", "TOP"), field("PADDING", "LEFT")),
        in_zero_point=_signed(field("ZERO_POINT", "INPUT")),
        out_zero_point=_signed(field("ZERO_POINT", "OUTPUT")),
        clamp=(_signed(field("CLAMP", "LOW")), _signed(field("CLAMP", "HIGH"))),
        requantize=bool(field("MODE", "REQUANTIZE")),
        depthwise=bool(field("MODE", "DEPTHWISE")),
    )


def _signed(half: int) -> int:
    """16 bits as two's complement."""
    return half - (1 << 16) if half >> 15 else half
