# mypy: ignore-errors
# ruff: noqa
"""A declared accelerator with a driver of its own that cuts convolutions into strips."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.accelerator import Accelerator, CCall, Job, Limit, number, result, table, tensor
from covp.graph.pattern import Match
from covp.hardware.arithmetic import exact_matmul, patches, requantize

ROWS = 4


class Conv(Accelerator):
    """Convolutions, a strip of up to four output rows a job."""

    name = "conv"
    operators = ("CONV_2D",)
    job = Job(
        tensor("INPUT", "int8", lambda j: j.IN_HEIGHT * j.IN_WIDTH * j.IN_CHANNELS),
        table(
            "WEIGHTS",
            "int8",
            lambda j: j.OUT_CHANNELS * j.KERNEL_HEIGHT * j.KERNEL_WIDTH * j.IN_CHANNELS,
        ),
        table("BIAS", "int32", lambda j: j.OUT_CHANNELS),
        table("MULTIPLIER", "int32", lambda j: j.OUT_CHANNELS),
        table("SHIFT", "int32", lambda j: j.OUT_CHANNELS),
        result("OUTPUT", "int8", lambda j: j.ROWS * j.OUT_WIDTH * j.OUT_CHANNELS),
        number("IN_HEIGHT", 1, 4095),
        number("IN_WIDTH", 1, 4095),
        number("IN_CHANNELS", 1, 4095),
        number("OUT_WIDTH", 1, 4095),
        number("OUT_CHANNELS", 1, 4095),
        number("KERNEL_HEIGHT", 1, 15),
        number("KERNEL_WIDTH", 1, 15),
        number("STRIDE_HEIGHT", 1, 15),
        number("STRIDE_WIDTH", 1, 15),
        number("PAD_TOP", 0, 15),
        number("PAD_LEFT", 0, 15),
        number("INPUT_ZERO_POINT", -128, 127),
        number("OUTPUT_ZERO_POINT", -128, 127),
        number("LOW", -128, 127),
        number("HIGH", -128, 127),
        number("FIRST_ROW", 0, 4095, varies=True),
        number("ROWS", 1, 4095, varies=True),
    )

    def accepts(self, layer: Any) -> Iterable[Limit]:
        """No groups, no dilation."""
        yield Limit("dilation", max(layer.dilation), at_most=1)
        yield Limit("output height", layer.out_height, at_most=4095)

    def registers(self, layer: Any) -> Mapping[str, Any]:
        """The whole layer as one strip."""
        return {**super().registers(layer), "FIRST_ROW": 0, "ROWS": layer.out_height}

    def lower(self, match: Match) -> CCall:
        """One call for all images and strips."""
        layer = self.layer(match)
        step = super().lower(match)
        image, source, target, *_ = step.arguments
        shape = (
            layer.batch,
            layer.in_height * layer.in_width * layer.in_channels,
            layer.out_width * layer.out_channels,
            layer.out_height,
        )
        return CCall(step.function, step.header, (image, source, target, *shape))

    def compute(self, job: Any) -> NDArray[Any]:
        """im2col, product, requantization."""
        image = job.INPUT.reshape(job.IN_HEIGHT, job.IN_WIDTH, job.IN_CHANNELS)
        image = image.astype(np.int32) - job.INPUT_ZERO_POINT
        top = job.FIRST_ROW * job.STRIDE_HEIGHT - job.PAD_TOP
        first = max(0, top)
        last = min(job.IN_HEIGHT, top + (job.ROWS - 1) * job.STRIDE_HEIGHT + job.KERNEL_HEIGHT)
        seen = patches(
            image[min(first, job.IN_HEIGHT) : max(last, first)],
            (job.KERNEL_HEIGHT, job.KERNEL_WIDTH),
            (job.STRIDE_HEIGHT, job.STRIDE_WIDTH),
            (first - top, job.PAD_LEFT),
            (job.ROWS, job.OUT_WIDTH),
        )
        sums = exact_matmul(seen, job.WEIGHTS.reshape(job.OUT_CHANNELS, -1).T)
        sums = sums + job.BIAS.astype(np.int64)
        return requantize(sums, job.MULTIPLIER, job.SHIFT, job.OUTPUT_ZERO_POINT, job.LOW, job.HIGH)

    def driver(self, base: int) -> Mapping[str, str]:
        """Strips of four rows."""
        return {
            "conv_registers.h": self.job.registers.c_header("CONV", base),
            "conv.h": HEADER,
            "conv.c": SOURCE.replace(
                "@line@", "CONV_IRQ" if self.values["wait"] == "sleep" else "COVP_POLL"
            ).replace("@rows@", str(ROWS)),
        }


HEADER = """#ifndef CONV_H
#define CONV_H
#include <stdint.h>
void conv_run(const uintptr_t *image, const int8_t *input, int8_t *output, uint32_t batch,
              uint32_t input_bytes, uint32_t row_bytes, uint32_t rows);
#endif
"""
SOURCE = """#include "conv.h"
#include <covp_job.h>
#include "conv_place.h"
#include "conv_registers.h"

void conv_run(const uintptr_t *image, const int8_t *input, int8_t *output, uint32_t batch,
              uint32_t input_bytes, uint32_t row_bytes, uint32_t rows)
{
    for (; batch > 0; batch--) {
        CONV_INPUT = (uint32_t)(uintptr_t)input;
        for (uint32_t row = 0; row < rows; row += @rows@) {
            uint32_t part = rows - row < @rows@ ? rows - row : @rows@;
            CONV_DESCRIPTOR = (uint32_t)(uintptr_t)image;
            CONV_OUTPUT = (uint32_t)(uintptr_t)output;
            CONV_FIRST_ROW = row;
            CONV_ROWS = part;
            covp_job_start(&CONV_CTRL, @line@);
            covp_job_wait(&CONV_CTRL, @line@);
            output += part * row_bytes;
        }
        input += input_bytes;
    }
}
"""
