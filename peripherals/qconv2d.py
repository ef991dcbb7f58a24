"""A quantized conv2d accelerator with its own load/store unit.

The four parts of the CODAI'23 paper's accelerator: a controller (`QConv2d`), a register interface
(`QConv2d.registers`), a computation module (`compute`) and a load/store unit (`load`, and the
store at the end of every job) on the memory it shares with the core.

int8 inputs (NHWC) and weights (OHWI), int32 bias, exact int32 sums. With MODE.REQUANTIZE the unit
turns the sums into int8 as TFLite Micro does, with one multiplier and shift for each channel;
without it, it returns the sums. With MODE.DEPTHWISE output channel o has one input channel, o
divided by CHANNELS.OUTPUT / CHANNELS.INPUT, and the weights are HWO.

Errors, interrupt and timing are those of every `covp.hardware.job_unit.JobUnit`; compute is
MACs / macs_per_cycle, a synthetic model that keeps all multipliers busy.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.errors import DeviceFault
from covp.hardware.arithmetic import exact_matmul, patches, requantize
from covp.hardware.bus import Bus
from covp.hardware.job import PROTOCOL
from covp.hardware.job_timing import JobTiming, Traffic, UnitTiming
from covp.hardware.job_unit import ERRORS, AcceptedJob, JobError, JobRecord, JobUnit
from covp.hardware.registers import Field, Register, RegisterMap

__all__ = [
    "COUNTER",
    "ERRORS",
    "IMAGE",
    "REGISTERS",
    "Job",
    "JobError",
    "QConv2d",
    "compute",
    "decode",
    "load",
]

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


def load(job: Job, bus: Bus) -> dict[str, NDArray[Any]]:
    """The load unit: operands where they lie, input and weights int8, the rest int32, all flat.

    Raises:
        JobError: an operand is not in memory, or the result not in writable memory.
    """
    if not bus.is_memory(*job.result(), writable=True):
        raise JobError("address")
    operands: dict[str, NDArray[Any]] = {}
    for name, (address, size) in job.operands().items():
        try:
            raw = bus.view(address, size)
        except DeviceFault:
            raise JobError("address") from None
        operands[name] = raw.view(np.int8 if name in ("input", "weights") else np.int32)
    return operands


class QConv2d(JobUnit):
    """The controller: the unit as its registers show it.

    Args:
        macs_per_cycle: multiply-accumulates of the computation module in a cycle.
        bytes_per_cycle: width of the load/store unit's memory port.
        startup_cycles: from the start bit to the first MAC.
        contention: see `covp.hardware.job_timing.MemoryPort`.
    """

    registers = REGISTERS

    def __init__(
        self,
        *,
        macs_per_cycle: int = UnitTiming.macs_per_cycle,
        bytes_per_cycle: int = UnitTiming.bytes_per_cycle,
        startup_cycles: int = UnitTiming.startup_cycles,
        contention: float = UnitTiming.contention,
    ) -> None:
        super().__init__()
        self.unit_timing = UnitTiming(macs_per_cycle, bytes_per_cycle, startup_cycles, contention)

    def accept(self) -> AcceptedJob:
        """See `JobUnit`."""
        words = {register.name: self.values[register.name] for register in IMAGE}
        job = decode(self.values)
        job.check()
        result = compute(job, load(job, self.bus))
        return AcceptedJob(self.timing(job), job.output, result, words, job.traffic())

    def timing(self, job: Job) -> JobTiming:
        """The time of a job; it does not depend on the operands' addresses."""
        return self.unit_timing.job(job.macs, job.traffic().nbytes)

    def retime(self, job: JobRecord) -> JobTiming:
        """See `JobUnit`."""
        return self.timing(decode(job.numbers))


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


def compute(job: Job, operands: dict[str, NDArray[Any]]) -> NDArray[np.int8] | NDArray[np.int32]:
    """The computation module: the result of a job, flat.

    Args:
        job: checked.
        operands: input and weights int8, bias, multiplier and shift int32, all flat.
    """
    sums = _sums(job, operands["input"], operands["weights"], operands["bias"])
    if not job.requantize:
        return sums.reshape(-1)
    if ((operands["shift"] < -31) | (operands["shift"] > 30)).any():
        raise JobError("range")
    result = requantize(
        sums, operands["multiplier"], operands["shift"], job.out_zero_point, *job.clamp
    )
    return result.reshape(-1)


def _sums(
    job: Job, input: NDArray[np.int8], weights: NDArray[np.int8], bias: NDArray[np.int32]
) -> NDArray[np.int32]:
    """int32 sums, shape (pixels, out_channels), wrapping as 32-bit adders do.

    Rows of pixels are taken in chunks that bound the memory.
    """
    images = input.reshape(job.batch, *job.in_size, job.in_channels).astype(np.int16)
    images -= np.int16(job.in_zero_point)
    height, width = job.out_size
    taps = job.kernel[0] * job.kernel[1] * job.in_channels
    step = max(1, (1 << 20) // (taps * width))
    sums = []
    for image in images:
        for row in range(0, height, step):
            rows = min(step, height - row)
            top = row * job.stride[0] - job.pad[0]
            seen = patches(
                image[min(max(0, top), len(image)) :],
                job.kernel,
                job.stride,
                (max(0, -top), job.pad[1]),
                (rows, width),
                job.dilation,
            )
            sums.append(_products(job, seen, weights))
    return np.concatenate(sums) + bias


def _products(job: Job, seen: NDArray[np.int16], weights: NDArray[np.int8]) -> NDArray[np.int32]:
    """Of patches (pixels, taps * in_channels): int32 (pixels, out_channels)."""
    if not job.depthwise:
        return exact_matmul(seen, weights.reshape(job.out_channels, job.depth).T)
    taps = seen.reshape(len(seen), job.depth, job.in_channels)
    kernels = weights.reshape(job.depth, job.out_channels).astype(np.int32)
    repeats = job.out_channels // job.in_channels
    sums = np.zeros((len(seen), job.out_channels), np.int32)
    for tap in range(job.depth):
        values = taps[:, tap]
        sums += (values.repeat(repeats, axis=1) if repeats > 1 else values) * kernels[tap]
    return sums
