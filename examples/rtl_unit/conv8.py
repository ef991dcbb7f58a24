"""conv8: int8 convolutions and fully connected layers, in Python and in Verilog."""

import numpy as np

from covp.accelerator import (
    Accelerator,
    Job,
    JobTiming,
    Limit,
    TimingCheck,
    UnitRtl,
    number,
    result,
    table,
    tensor,
)
from covp.graph.typed import named_values
from covp.hardware.arithmetic import exact_matmul, patches, requantize


def patch(job):
    """The bytes that an output is made of: as many as a row of weights."""
    return job.KERNEL_HEIGHT * job.KERNEL_WIDTH * job.IN_CHANNELS


class Conv8(Accelerator):
    """int8 convolutions and fully connected layers, four multipliers."""

    name = "conv8"
    operators = ("CONV_2D", "FULLY_CONNECTED")
    rtl = UnitRtl(sources=("conv8_core.v", "conv8_registers.v", "conv8.v"))
    job = Job(
        tensor("INPUT", "int8", lambda job: job.IN_HEIGHT * job.IN_WIDTH * job.IN_CHANNELS),
        table("WEIGHTS", "int8", lambda job: job.OUT_CHANNELS * patch(job)),
        table("BIAS", "int32", lambda job: job.OUT_CHANNELS),
        table("MULTIPLIER", "int32", lambda job: job.OUT_CHANNELS),
        table("SHIFT", "int32", lambda job: job.OUT_CHANNELS),
        result("OUTPUT", "int8", lambda job: job.OUT_HEIGHT * job.OUT_WIDTH * job.OUT_CHANNELS),
        number("IN_HEIGHT", 1, 255),
        number("IN_WIDTH", 1, 255),
        number("IN_CHANNELS", 1, 4096),
        number("OUT_HEIGHT", 1, 255),
        number("OUT_WIDTH", 1, 255),
        number("OUT_CHANNELS", 1, 4096),
        number("KERNEL_HEIGHT", 1, 15),
        number("KERNEL_WIDTH", 1, 15),
        number("STRIDE_HEIGHT", 1, 4),
        number("STRIDE_WIDTH", 1, 4),
        number("PAD_TOP", 0, 15),
        number("PAD_LEFT", 0, 15),
        number("INPUT_ZERO_POINT", -128, 127),
        number("OUTPUT_ZERO_POINT", -128, 127),
        number("LOW", -128, 127, "Lowest result."),
        number("HIGH", -128, 127, "Highest result."),
    )

    def registers(self, layer):
        """A fully connected layer is a convolution over a column of its rows."""
        known = named_values(layer)
        if "BATCH" in known and "IN_HEIGHT" not in known:
            column = ("IN_WIDTH", "OUT_WIDTH", "KERNEL_HEIGHT", "KERNEL_WIDTH")
            strides = ("STRIDE_HEIGHT", "STRIDE_WIDTH")
            known |= dict.fromkeys((*column, *strides), 1) | {"PAD_TOP": 0, "PAD_LEFT": 0}
            known |= {"IN_HEIGHT": known["BATCH"], "OUT_HEIGHT": known["BATCH"]}
        return {part.name: known[part.name] for part in self.job.image}

    def accepts(self, layer):
        if hasattr(layer, "dilation"):
            yield Limit("dilation", max(layer.dilation), at_most=1)
            yield Limit("groups", getattr(layer, "groups", 1), at_most=1)
        values = self.registers(layer)
        size = values["KERNEL_HEIGHT"] * values["KERNEL_WIDTH"] * values["IN_CHANNELS"]
        yield Limit("bytes of a patch", size, at_most=4096)

    def check(self, job):
        return "size" if patch(job) > 4096 else None

    def compute(self, job):
        image = job.INPUT.reshape(job.IN_HEIGHT, job.IN_WIDTH, job.IN_CHANNELS).astype(np.int16)
        kernel = (job.KERNEL_HEIGHT, job.KERNEL_WIDTH)
        stride, pad = (job.STRIDE_HEIGHT, job.STRIDE_WIDTH), (job.PAD_TOP, job.PAD_LEFT)
        out = (job.OUT_HEIGHT, job.OUT_WIDTH)
        rows = patches(image - np.int16(job.INPUT_ZERO_POINT), kernel, stride, pad, out)
        sums = exact_matmul(rows, job.WEIGHTS.reshape(job.OUT_CHANNELS, -1).T) + job.BIAS
        zero_point = job.OUTPUT_ZERO_POINT
        return requantize(sums, job.MULTIPLIER, job.SHIFT, zero_point, job.LOW, job.HIGH)

    def macs(self, job):
        return job.OUT_HEIGHT * job.OUT_WIDTH * job.OUT_CHANNELS * patch(job)

    timing_check = TimingCheck("its RTL, 363 jobs", 0.227)

    def timing(self, job, nbytes):
        """Fitted to the RTL by covp calibrate: 1.1% off in the mean, -1.00% in all."""
        results = self.job.count("OUTPUT", job)
        macs = self.macs(job)
        cycles = 0.0
        cycles += 25.15
        cycles += 0.9951 * results * -(-(macs // results) // 4)
        cycles += 11.17 * results
        cycles += 0.2606 * macs / job.OUT_CHANNELS
        cycles += 2.86 * results * job.KERNEL_HEIGHT / job.OUT_CHANNELS
        cycles += 0.2533 * results * job.KERNEL_WIDTH / job.OUT_CHANNELS
        return JobTiming(round(cycles), 0)
