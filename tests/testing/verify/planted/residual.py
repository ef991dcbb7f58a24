# mypy: ignore-errors
# ruff: noqa
"""A fused unit: a convolution and the sum that reads its result, of one image."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.accelerator import Accelerator, Job, Limit, number, result, table, tensor
from covp.graph.pattern import Match, Pattern, constant, conv2d, op, optional, wildcard
from covp.graph.quantization import multiply_by_quantized_multiplier
from covp.graph.typed import named_values, typed
from covp.hardware.arithmetic import exact_matmul, patches, requantize

SUM = (
    *("FIRST_ZERO_POINT", "SECOND_ZERO_POINT", "OUTPUT_ZERO_POINT", "LOW", "HIGH"),
    *("FIRST_MULTIPLIER", "SECOND_MULTIPLIER", "OUTPUT_MULTIPLIER"),
    *("FIRST_SHIFT", "SECOND_SHIFT", "OUTPUT_SHIFT"),
)


def _pixels(j: Any) -> int:
    return j.OUT_HEIGHT * j.OUT_WIDTH


class Residual(Accelerator):
    """CONV_2D and ADD."""

    name = "residual"
    patterns = (
        Pattern(
            "conv_add",
            op(
                "ADD",
                conv2d(wildcard("input"), constant("weights"), optional("bias")),
                wildcard("skip"),
            ),
        ),
    )
    job = Job(
        tensor("INPUT", "int8", lambda j: j.IN_HEIGHT * j.IN_WIDTH * j.IN_CHANNELS),
        tensor("SKIP", "int8", lambda j: _pixels(j) * j.OUT_CHANNELS),
        table(
            "WEIGHTS",
            "int8",
            lambda j: j.OUT_CHANNELS * j.KERNEL_HEIGHT * j.KERNEL_WIDTH * j.IN_CHANNELS,
        ),
        table("BIAS", "int32", lambda j: j.OUT_CHANNELS),
        table("MULTIPLIER", "int32", lambda j: j.OUT_CHANNELS),
        table("SHIFT", "int32", lambda j: j.OUT_CHANNELS),
        result("OUTPUT", "int8", lambda j: _pixels(j) * j.OUT_CHANNELS),
        number("BATCH", 1, 1),
        *(
            number(f"{side}_{axis}", 1, 4095)
            for side in ("IN", "OUT")
            for axis in ("HEIGHT", "WIDTH", "CHANNELS")
        ),
        *(
            number(f"{what}_{axis}", 1, 15)
            for what in ("KERNEL", "STRIDE", "DILATION")
            for axis in ("HEIGHT", "WIDTH")
        ),
        number("PAD_TOP", 0, 255),
        number("PAD_LEFT", 0, 255),
        number("INPUT_ZERO_POINT", -128, 127),
        number("OUTPUT_ZERO_POINT", -128, 127),
        number("LOW", -128, 127),
        number("HIGH", -128, 127),
        *(number(f"SUM_{name}", -(1 << 31), (1 << 31) - 1) for name in SUM),
        number("SWAPPED", 0, 1),
    )

    def layer(self, match: Match) -> Any:
        """Both operators' numbers, and which operand of the sum is the convolution's."""
        conv = next(o for o in match.ops if o.kind == "CONV_2D")
        swapped = match.op.input(1) is conv.output
        return SimpleNamespace(conv=typed(conv), sum=typed(match.op), swapped=swapped)

    def types(self, match: Match) -> Iterable[Limit]:
        """int8 alone, nothing broadcast."""
        for operand in (*match.op.inputs, match.outputs[0]):
            yield Limit("type", operand.dtype.name, one_of=("int8",))
        shapes = {operand.shape for operand in (*match.op.inputs, match.outputs[0])}
        yield Limit("shapes of the sum", len(shapes), at_most=1)

    def accepts(self, layer: Any) -> Iterable[Limit]:
        """No groups."""
        yield Limit("type", type(layer.conv).__name__, one_of=("QuantizedConv2D",))

    def registers(self, layer: Any) -> Mapping[str, Any]:
        """All of both."""
        own = named_values(layer.sum)
        known = named_values(layer.conv) | {f"SUM_{name}": own[name] for name in SUM}
        known["SWAPPED"] = int(layer.swapped)
        return {part.name: known[part.name] for part in (*self.job.image, *self.job.varying)}

    def macs(self, job: Any) -> int:
        """The convolution's."""
        taps = job.KERNEL_HEIGHT * job.KERNEL_WIDTH * job.IN_CHANNELS
        return int(taps * job.OUT_CHANNELS * _pixels(job))

    def compute(self, job: Any) -> NDArray[Any]:
        """The convolution, kept inside, then the sum."""
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
        ).ravel()
        operands = (job.SKIP, inner) if job.SWAPPED else (inner, job.SKIP)
        x, y = (
            multiply_by_quantized_multiplier(value.astype(np.int64) - zero << 20, factor, shift)
            for value, zero, factor, shift in (
                (
                    operands[0],
                    job.SUM_FIRST_ZERO_POINT,
                    job.SUM_FIRST_MULTIPLIER,
                    job.SUM_FIRST_SHIFT,
                ),
                (
                    operands[1],
                    job.SUM_SECOND_ZERO_POINT,
                    job.SUM_SECOND_MULTIPLIER,
                    job.SUM_SECOND_SHIFT,
                ),
            )
        )
        scaled = multiply_by_quantized_multiplier(
            x + y, job.SUM_OUTPUT_MULTIPLIER, job.SUM_OUTPUT_SHIFT
        )
        return np.clip(scaled + job.SUM_OUTPUT_ZERO_POINT, job.SUM_LOW, job.SUM_HIGH).astype(
            np.int8
        )
