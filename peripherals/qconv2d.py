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

from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.errors import DeviceFault
from covp.hardware.arithmetic import exact_matmul, patches, requantize
from covp.hardware.bus import Bus
from covp.hardware.job_timing import JobTiming, UnitTiming
from covp.hardware.job_unit import ERRORS, AcceptedJob, JobError, JobRecord, JobUnit
from covp.peripherals._qconv2d_job import COUNTER, IMAGE, REGISTERS, Job, decode

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
        clock_ratio: float = UnitTiming.clock_ratio,
    ) -> None:
        super().__init__()
        self.unit_timing = UnitTiming(
            macs_per_cycle, bytes_per_cycle, startup_cycles, contention, clock_ratio
        )

    def accept(self) -> AcceptedJob:
        """See `JobUnit`."""
        words = {register.name: self.values[register.name] for register in IMAGE}
        job = decode(self.values)
        job.check()
        result = compute(job, load(job, self.bus))
        return AcceptedJob(self.timing(job), job.output, result, words, job.traffic(), job.macs)

    def timing(self, job: Job) -> JobTiming:
        """The time of a job; it does not depend on the operands' addresses."""
        return self.unit_timing.job(job.macs, job.traffic().nbytes)

    def retime(self, job: JobRecord) -> JobTiming:
        """See `JobUnit`."""
        return self.timing(decode(job.numbers))


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
