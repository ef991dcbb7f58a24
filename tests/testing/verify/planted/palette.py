# mypy: ignore-errors
# ruff: noqa
"""A unit whose weights are four bits: numbers of a palette of up to sixteen values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.accelerator import Accelerator, Job, Limit, number, result, table, tensor
from covp.hardware.arithmetic import exact_matmul, patches, requantize


class Palette(Accelerator):
    """CONV_2D and FULLY_CONNECTED of one image, with few different weights."""

    name = "palette"
    operators = ("CONV_2D", "FULLY_CONNECTED")
    job = Job(
        tensor("INPUT", "int8", lambda j: j.IN_HEIGHT * j.IN_WIDTH * j.IN_CHANNELS),
        table("COLOURS", "int8", lambda j: 16),
        table(
            "INDICES",
            "uint8",
            lambda j: j.OUT_CHANNELS * (-(-j.KERNEL_HEIGHT * j.KERNEL_WIDTH * j.IN_CHANNELS // 2)),
        ),
        table("BIAS", "int32", lambda j: j.OUT_CHANNELS),
        table("MULTIPLIER", "int32", lambda j: j.OUT_CHANNELS),
        table("SHIFT", "int32", lambda j: j.OUT_CHANNELS),
        result("OUTPUT", "int8", lambda j: j.OUT_HEIGHT * j.OUT_WIDTH * j.OUT_CHANNELS),
        number("IN_HEIGHT", 1, 1023),
        number("IN_WIDTH", 1, 1023),
        number("IN_CHANNELS", 1, 4095),
        number("OUT_HEIGHT", 1, 1023),
        number("OUT_WIDTH", 1, 1023),
        number("OUT_CHANNELS", 1, 4095),
        number("KERNEL_HEIGHT", 1, 7),
        number("KERNEL_WIDTH", 1, 7),
        number("STRIDE_HEIGHT", 1, 7),
        number("STRIDE_WIDTH", 1, 7),
        number("PAD_TOP", 0, 7),
        number("PAD_LEFT", 0, 7),
        number("INPUT_ZERO_POINT", -128, 127),
        number("OUTPUT_ZERO_POINT", -128, 127),
        number("LOW", -128, 127),
        number("HIGH", -128, 127),
    )

    def accepts(self, layer: Any) -> Iterable[Limit]:
        """Sixteen weights."""
        yield Limit("type", type(layer).__name__, one_of=("QuantizedConv2D",))
        yield Limit("batch", layer.batch, at_most=1)
        yield Limit("dilation", max(layer.dilation), at_most=1)
        yield Limit("different weights", np.unique(layer.weights).size, at_most=16)

    def registers(self, layer: Any) -> Mapping[str, Any]:
        """Indices of two weights in a byte, the first one in its low half; rows begin anew."""
        rows = np.asarray(layer.weights).reshape(layer.out_channels, -1)
        colours = np.unique(rows)[:16]  # more are rejected
        indices = np.searchsorted(colours, rows) & 15
        if indices.shape[1] % 2:
            indices = np.pad(indices, ((0, 0), (0, 1)))
        packed = (indices[:, ::2] | indices[:, 1::2] << 4).astype(np.uint8)
        table = np.zeros(16, np.int8)
        table[: colours.size] = colours
        return {**super().registers(layer), "COLOURS": table, "INDICES": packed.ravel()}

    def compute(self, job: Any) -> NDArray[Any]:
        """Look the weights up, then as any convolution."""
        depth = job.KERNEL_HEIGHT * job.KERNEL_WIDTH * job.IN_CHANNELS
        packed = job.INDICES[: job.OUT_CHANNELS * (-(-depth // 2))].reshape(job.OUT_CHANNELS, -1)
        indices = np.stack([packed & 15, packed >> 4], axis=2).reshape(job.OUT_CHANNELS, -1)
        weights = job.COLOURS[indices[:, :depth]]
        image = job.INPUT.reshape(job.IN_HEIGHT, job.IN_WIDTH, job.IN_CHANNELS)
        seen = patches(
            image.astype(np.int32) - job.INPUT_ZERO_POINT,
            (job.KERNEL_HEIGHT, job.KERNEL_WIDTH),
            (job.STRIDE_HEIGHT, job.STRIDE_WIDTH),
            (job.PAD_TOP, job.PAD_LEFT),
            (job.OUT_HEIGHT, job.OUT_WIDTH),
        )
        sums = exact_matmul(seen, weights.T) + job.BIAS.astype(np.int64)
        return requantize(sums, job.MULTIPLIER, job.SHIFT, job.OUTPUT_ZERO_POINT, job.LOW, job.HIGH)
