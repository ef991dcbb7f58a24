# mypy: ignore-errors
# ruff: noqa
"""A fused unit: a convolution and the pool that reads it, an image a job, in one call or in two."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.accelerator import Accelerator, CCall, Job, Limit, number, result, table, tensor
from covp.graph.pattern import Match, Pattern, constant, conv2d, op, optional, wildcard
from covp.graph.typed import named_values, typed
from covp.hardware.arithmetic import exact_matmul, patches, requantize


def _conv():
    return conv2d(wildcard("input"), constant("weights"), optional("bias"))


class Fused(Accelerator):
    """CONV_2D with MAX_POOL_2D or AVERAGE_POOL_2D."""

    name = "fused"
    patterns = (Pattern("conv_pool", op("MAX_POOL_2D", _conv()) | op("AVERAGE_POOL_2D", _conv())),)
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
        result("OUTPUT", "int8", lambda j: j.POOLED_HEIGHT * j.POOLED_WIDTH * j.OUT_CHANNELS),
        number("IN_HEIGHT", 1, 4095),
        number("IN_WIDTH", 1, 4095),
        number("IN_CHANNELS", 1, 4095),
        number("OUT_HEIGHT", 1, 4095),
        number("OUT_WIDTH", 1, 4095),
        number("OUT_CHANNELS", 1, 4095),
        number("KERNEL_HEIGHT", 1, 15),
        number("KERNEL_WIDTH", 1, 15),
        number("STRIDE_HEIGHT", 1, 15),
        number("STRIDE_WIDTH", 1, 15),
        number("DILATION_HEIGHT", 1, 15),
        number("DILATION_WIDTH", 1, 15),
        number("PAD_TOP", 0, 255),
        number("PAD_LEFT", 0, 255),
        number("INPUT_ZERO_POINT", -128, 127),
        number("OUTPUT_ZERO_POINT", -128, 127),
        number("LOW", -128, 127),
        number("HIGH", -128, 127),
        number("POOLED_HEIGHT", 1, 4095),
        number("POOLED_WIDTH", 1, 4095),
        number("POOL_HEIGHT", 1, 4095),
        number("POOL_WIDTH", 1, 4095),
        number("POOL_STEP_HEIGHT", 1, 4095),
        number("POOL_STEP_WIDTH", 1, 4095),
        number("POOL_TOP", 0, 4095),
        number("POOL_LEFT", 0, 4095),
        number("POOL_LOW", -128, 127),
        number("POOL_HIGH", -128, 127),
        number("AVERAGE", 0, 1),
    )

    def layer(self, match: Match) -> Any:
        """Both operators' numbers."""
        first = next(o for o in match.ops if o.kind == "CONV_2D")
        return SimpleNamespace(conv=typed(first), pool=typed(match.op))

    def types(self, match: Match) -> Iterable[Limit]:
        """int8 alone."""
        for operand in (*match.inputs[:1], match.outputs[0]):
            yield Limit("type", operand.dtype.name, one_of=("int8",))

    def accepts(self, layer: Any) -> Iterable[Limit]:
        """No groups."""
        yield Limit("type", type(layer.conv).__name__, one_of=("QuantizedConv2D",))

    def registers(self, layer: Any) -> Mapping[str, Any]:
        """All of both."""
        pool = layer.pool
        known = named_values(layer.conv) | {
            "POOLED_HEIGHT": pool.out_height,
            "POOLED_WIDTH": pool.out_width,
            "POOL_HEIGHT": pool.filter[0],
            "POOL_WIDTH": pool.filter[1],
            "POOL_STEP_HEIGHT": pool.stride[0],
            "POOL_STEP_WIDTH": pool.stride[1],
            "POOL_TOP": pool.padding.top,
            "POOL_LEFT": pool.padding.left,
            "POOL_LOW": pool.clamp[0],
            "POOL_HIGH": pool.clamp[1],
            "AVERAGE": int(pool.kind == "AVERAGE_POOL_2D"),
        }
        return {part.name: known[part.name] for part in (*self.job.image, *self.job.varying)}

    def lower(self, match: Match) -> CCall:
        """One call for all images."""
        layer = self.layer(match)
        image, source, target = super().lower(match).arguments
        conv, pool = layer.conv, layer.pool
        sizes = (
            conv.batch,
            conv.in_height * conv.in_width * conv.in_channels,
            pool.out_height * pool.out_width * pool.channels,
        )
        return CCall("fused_run", "fused.h", (image, source, target, *sizes))

    def compute(self, job: Any) -> NDArray[Any]:
        """The convolution, kept inside, then the pool."""
        image = job.INPUT.reshape(job.IN_HEIGHT, job.IN_WIDTH, job.IN_CHANNELS)
        image = image.astype(np.int32) - job.INPUT_ZERO_POINT
        seen = patches(
            image,
            (job.KERNEL_HEIGHT, job.KERNEL_WIDTH),
            (job.STRIDE_HEIGHT, job.STRIDE_WIDTH),
            (job.PAD_TOP, job.PAD_LEFT),
            (job.OUT_HEIGHT, job.OUT_WIDTH),
            (job.DILATION_HEIGHT, job.DILATION_WIDTH),
        )
        sums = exact_matmul(seen, job.WEIGHTS.reshape(job.OUT_CHANNELS, -1).T)
        sums = sums + job.BIAS.astype(np.int64)
        inner = requantize(
            sums, job.MULTIPLIER, job.SHIFT, job.OUTPUT_ZERO_POINT, job.LOW, job.HIGH
        ).reshape(job.OUT_HEIGHT, job.OUT_WIDTH, job.OUT_CHANNELS)
        return self.pool(job, inner)

    def pool(self, job: Any, inner: NDArray[Any]) -> NDArray[Any]:
        """Window by window; padding does not count."""
        out = np.empty((job.POOLED_HEIGHT, job.POOLED_WIDTH, job.OUT_CHANNELS), np.int8)
        for row in range(job.POOLED_HEIGHT):
            for column in range(job.POOLED_WIDTH):
                top = row * job.POOL_STEP_HEIGHT - job.POOL_TOP
                left = column * job.POOL_STEP_WIDTH - job.POOL_LEFT
                window = inner[
                    max(top, 0) : top + job.POOL_HEIGHT, max(left, 0) : left + job.POOL_WIDTH
                ].astype(np.int64)
                count = window.shape[0] * window.shape[1]
                if job.AVERAGE:
                    total = window.sum(axis=(0, 1))
                    half = count // 2
                    value = np.where(total > 0, total + half, total - half)
                    value = np.sign(value) * (np.abs(value) // count)
                else:
                    value = window.max(axis=(0, 1))
                out[row, column] = np.clip(value, job.POOL_LOW, job.POOL_HIGH)
        return out

    def overlaps(self, function: str) -> tuple[str, str]:
        """The last image is waited for in a call of its own."""
        return "fused_begin", "fused_end"

    def driver(self, base: int) -> Mapping[str, str]:
        """By hand."""
        line = "FUSED_IRQ" if self.values["wait"] == "sleep" else "COVP_POLL"
        return {
            "fused_registers.h": self.job.registers.c_header("FUSED", base),
            "fused.h": HEADER,
            "fused.c": SOURCE.replace("@line@", line),
        }


ARGUMENTS = """(const uintptr_t *image, const int8_t *input, int8_t *output, uint32_t batch,
               uint32_t input_bytes, uint32_t output_bytes)"""
HEADER = f"""#ifndef FUSED_H
#define FUSED_H
#include <stdint.h>
void fused_run{ARGUMENTS};
void fused_begin{ARGUMENTS};
void fused_end(void);
#endif
"""
SOURCE = """#include "fused.h"
#include <covp_job.h>
#include "fused_place.h"
#include "fused_registers.h"

static void program(const uintptr_t *image, const int8_t *input, int8_t *output)
{
    FUSED_DESCRIPTOR = (uint32_t)(uintptr_t)image;
    FUSED_INPUT = (uint32_t)(uintptr_t)input;
    FUSED_OUTPUT = (uint32_t)(uintptr_t)output;
}

void fused_begin@arguments@
{
    for (; batch > 1; batch--, input += input_bytes, output += output_bytes) {
        program(image, input, output);
        covp_job_start(&FUSED_CTRL, @line@);
        covp_job_wait(&FUSED_CTRL, @line@);
    }
    program(image, input, output);
    covp_job_begin(&FUSED_CTRL, @line@);
}

void fused_end(void)
{
    covp_job_end(&FUSED_CTRL, @line@);
}

void fused_run@arguments@
{
    for (; batch > 0; batch--, input += input_bytes, output += output_bytes) {
        program(image, input, output);
        covp_job_start(&FUSED_CTRL, @line@);
        covp_job_wait(&FUSED_CTRL, @line@);
    }
}
""".replace("@arguments@", ARGUMENTS)
