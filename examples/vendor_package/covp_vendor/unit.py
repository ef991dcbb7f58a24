"""An accelerator: int8 fully connected layers, 8 multiply-accumulates a cycle."""

import numpy as np

from covp.accelerator import Accelerator, Job, number, result, table, tensor
from covp.hardware.arithmetic import exact_matmul, requantize


class VendorMac(Accelerator):
    """int8 fully connected layers: multiply, add, requantize."""

    name = "vendor_mac"
    operators = ("FULLY_CONNECTED",)
    job = Job(
        tensor("INPUT", "int8", lambda job: job.BATCH * job.IN_CHANNELS),
        table("WEIGHTS", "int8", lambda job: job.OUT_CHANNELS * job.IN_CHANNELS),
        table("BIAS", "int32", lambda job: job.OUT_CHANNELS),
        table("MULTIPLIER", "int32", lambda job: job.OUT_CHANNELS),
        table("SHIFT", "int32", lambda job: job.OUT_CHANNELS),
        result("OUTPUT", "int8", lambda job: job.BATCH * job.OUT_CHANNELS),
        number("BATCH", 1, 4096),
        number("IN_CHANNELS", 1, 4096),
        number("OUT_CHANNELS", 1, 4096),
        number("INPUT_ZERO_POINT", -128, 127),
        number("OUTPUT_ZERO_POINT", -128, 127),
        number("LOW", -128, 127),
        number("HIGH", -128, 127),
    )

    def compute(self, job):
        """The result of a job."""
        rows = job.INPUT.reshape(job.BATCH, job.IN_CHANNELS).astype(np.int16) - job.INPUT_ZERO_POINT
        weights = job.WEIGHTS.reshape(job.OUT_CHANNELS, job.IN_CHANNELS)
        sums = exact_matmul(rows, weights.T) + job.BIAS
        zero_point = job.OUTPUT_ZERO_POINT
        return requantize(sums, job.MULTIPLIER, job.SHIFT, zero_point, job.LOW, job.HIGH)

    def macs(self, job):
        """Multiply-accumulates of a job."""
        return job.BATCH * job.IN_CHANNELS * job.OUT_CHANNELS
