"""An n x n weight-stationary systolic array with a scratchpad; tiles are the driver's business."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.accelerator import (
    TECHNOLOGY,
    TIMING,
    WAIT,
    Accelerator,
    CCall,
    Job,
    Limit,
    Parameter,
    number,
    result,
    table,
    tensor,
)
from covp.accelerator.call import Argument
from covp.accelerator.driver_template import driver_file
from covp.accelerator.layer_registers import product_values
from covp.base.c_names import c_prefix
from covp.graph.graph import Graph, copy_graph
from covp.graph.passes.fuse_attention import expand_attention
from covp.graph.pattern import Match
from covp.graph.typed import QuantizedMatMul
from covp.graph.typed_convolution import QuantizedConv2D
from covp.hardware.arithmetic import exact_matmul, patches, requantize
from covp.hardware.job import JobValues
from covp.hardware.job_timing import JobTiming, Traffic
from covp.hardware.job_unit import JobError

Layer = QuantizedConv2D | QuantizedMatMul

_HALF = 0xFFFF


def _pixels(job: JobValues) -> int:
    return int(job.ROWS * job.OUT_WIDTH)


def _depth(job: JobValues) -> int:
    return int(job.KERNEL_HEIGHT * job.KERNEL_WIDTH * job.IN_CHANNELS)


def _weights(job: JobValues) -> int:
    return int(job.OUT_CHANNELS) * _depth(job)


def _second(job: JobValues) -> int:
    """The unit looks at SECOND where ORDER says so, and at no address that was left there."""
    return _weights(job) if job.ORDER else 0


class Gemm(Accelerator):
    """Systolic array of size x size int8 multipliers: convolutions, matrix products.

    A job is a strip of output rows of one image. The unit fetches the strip's input into its
    scratchpad (implicit im2col, the zero point stands for padding), streams it past each
    size x size tile of the weights, adds up in its accumulators and requantizes. The driver cuts
    the layer into strips that fit; with one output pixel (fully connected layers) every weight is
    fetched once and used once, so the memory port decides. BATCH_MATMUL is a 1x1 convolution whose
    weights come at run time, in SECOND, with a zero point and in either order.

    Timing, a synthetic model: a tile of weights is used for max(pixels, size) cycles while the next
    one is loaded; filling and draining the array costs 2 * size once a job.
    """

    name = "gemm"
    operators = ("CONV_2D", "FULLY_CONNECTED", "BATCH_MATMUL")
    parameters = (
        Parameter("size", 8, "rows and columns of the array", 1, 256),
        Parameter("scratchpad", 32768, "bytes for a strip's input", 64, 1 << 24),
        Parameter("accumulators", 16384, "bytes for int32 sums", 64, 1 << 24),
        *TIMING[1:],
        WAIT,
        TECHNOLOGY,
    )
    job = Job(
        tensor(
            "INPUT",
            "int8",
            lambda job: job.IN_HEIGHT * job.IN_WIDTH * job.IN_CHANNELS,
            "An image, NHWC.",
        ),
        tensor("SECOND", "int8", _second, "The weights that come at run time.", optional=True),
        table("WEIGHTS", "int8", _weights, "OHWI.", optional=True),
        table("BIAS", "int32", lambda job: job.OUT_CHANNELS),
        table("MULTIPLIER", "int32", lambda job: job.OUT_CHANNELS),
        table("SHIFT", "int32", lambda job: job.OUT_CHANNELS, "-31 to 30, positive to the left."),
        result("OUTPUT", "int8", lambda job: _pixels(job) * job.OUT_CHANNELS, "The strip's rows."),
        number("IN_HEIGHT", 1, _HALF),
        number("IN_WIDTH", 1, _HALF),
        number("IN_CHANNELS", 1, _HALF),
        number("OUT_WIDTH", 1, _HALF),
        number("OUT_CHANNELS", 1, _HALF),
        number("KERNEL_HEIGHT", 1, 255),
        number("KERNEL_WIDTH", 1, 255),
        number("STRIDE_HEIGHT", 1, 255),
        number("STRIDE_WIDTH", 1, 255),
        number("PAD_TOP", 0, 255, "Rows above the image."),
        number("PAD_LEFT", 0, 255, "Columns to its left; the sizes imply the other sides."),
        number("INPUT_ZERO_POINT", -128, 127),
        number("WEIGHT_ZERO_POINT", -128, 127),
        number("OUTPUT_ZERO_POINT", -128, 127),
        number("LOW", -128, 127, "Lowest result."),
        number("HIGH", -128, 127, "Highest result."),
        number(
            "ORDER", 0, 2, "0: WEIGHTS; 1: SECOND, by output channel; 2: SECOND, by input channel."
        ),
        number("FIRST_ROW", 0, _HALF, "First output row of the strip.", varies=True),
        number("ROWS", 1, _HALF, "Output rows of the strip.", varies=True),
    )

    def accepts(self, layer: Layer) -> Iterable[Limit]:
        """Convolutions of one group without dilation, of which one output row fits."""
        if isinstance(layer, QuantizedMatMul):
            yield Limit("transpositions of the first operand", layer.input_by_depth, at_most=0)
        yield Limit("groups", layer.in_channels if layer.depthwise else 1, at_most=1)
        yield Limit("dilation", max(layer.dilation), at_most=1)
        row = layer.kernel[0] * layer.in_width * layer.in_channels
        yield Limit("bytes of input for an output row", row, at_most=self._of("scratchpad"))
        sums = 4 * min(self._of("size"), layer.out_channels) * layer.out_width
        yield Limit("bytes of sums for an output row", sums, at_most=self._of("accumulators"))

    def registers(self, layer: Layer) -> Mapping[str, Any]:
        """The whole layer as one strip; the driver cuts it."""
        values = {**super().registers(layer), "FIRST_ROW": 0, "ROWS": layer.out_height}
        if isinstance(layer, QuantizedConv2D):
            return {**values, "WEIGHT_ZERO_POINT": 0, "ORDER": 0}
        order = 2 if layer.weights_by_depth else 1
        return {**values, **product_values(layer), "ORDER": order}

    def tensors(self, match: Match) -> list[Argument]:
        """The address of SECOND is 0 where the weights are constants of a convolution."""
        first, second = match.op.input(0), match.op.input(1)
        return [first, second if match.op.kind == "BATCH_MATMUL" else 0]

    def before_partitioning(self, graph: Graph) -> Graph:
        """Attention in tiles becomes matrix products again."""
        expanded = copy_graph(graph)
        expand_attention(expanded)
        return expanded

    def lower(self, match: Match) -> CCall:
        """One call: images and strips are loops of the driver."""
        layer = self.layer(match)
        step = super().lower(match)
        assert isinstance(step, CCall)
        image, source, second, target, *_ = step.arguments
        input_bytes = layer.in_height * layer.in_width * layer.in_channels
        row_bytes = layer.out_width * layer.out_channels
        rows = (row_bytes, layer.out_height, self.strip_rows(layer))
        if isinstance(layer, QuantizedConv2D):
            steps = (layer.batch, input_bytes)
            return CCall(step.function, step.header, (image, source, target, *steps, *rows))
        pairs = (
            layer.batch,
            0 if layer.input_repeats else input_bytes,
            0 if layer.weights_repeat else layer.in_channels * layer.out_channels,
        )
        arguments = (image, source, second, target, *pairs, *rows)
        return CCall(f"{self.name}_multiply", step.header, arguments)

    def hardware_size(self) -> tuple[int, float]:
        """A multiplier for each element of the array, and both memories."""
        memory = self._of("scratchpad") + self._of("accumulators")
        return self._of("size") ** 2, memory / 1024

    def strip_rows(self, layer: Layer) -> int:
        """The most output rows whose input and sums fit."""
        columns = min(self._of("size"), layer.out_channels)
        by_sums = self._of("accumulators") // (4 * columns * layer.out_width)
        input_rows = self._of("scratchpad") // (layer.in_width * layer.in_channels)
        by_input = (input_rows - layer.kernel[0]) // layer.stride[0] + 1
        return max(1, min(by_sums, by_input, layer.out_height))

    def driver(self, base: int) -> Mapping[str, str]:
        """A driver that cuts a layer into strips; the register header is generated."""
        name, interrupt = self.name, self.values["wait"] == "sleep"
        return {
            f"{name}_registers.h": self.job.registers.c_header(c_prefix(name), base),
            f"{name}.h": driver_file(__package__, "driver.h.in", name),
            f"{name}.c": driver_file(__package__, "driver.c.in", name, interrupt=interrupt),
        }

    def overlaps(self, function: str) -> tuple[str, str] | None:
        """Of convolutions; a layer of several strips waits for all but the last."""
        if function != f"{self.name}_run":
            return None
        return f"{self.name}_begin", f"{self.name}_end"

    def check(self, job: JobValues) -> str | None:
        """The strip must fit into scratchpad and accumulators."""
        if _pixels(job) * 4 * min(self._of("size"), job.OUT_CHANNELS) > self._of("accumulators"):
            return "size"
        first, last = self._input_rows(job)
        if (last - first) * job.IN_WIDTH * job.IN_CHANNELS > self._of("scratchpad"):
            return "size"
        return "range" if job.LOW > job.HIGH else None

    def compute(self, job: Any) -> NDArray[Any]:
        """im2col of the strip, times the weights, requantized."""
        shape = (job.IN_HEIGHT, job.IN_WIDTH, job.IN_CHANNELS)
        image = job.INPUT.reshape(shape).astype(np.int16) - job.INPUT_ZERO_POINT
        first, last = self._input_rows(job)
        top = job.FIRST_ROW * job.STRIDE_HEIGHT - job.PAD_TOP
        seen = patches(
            image[first:last],
            (job.KERNEL_HEIGHT, job.KERNEL_WIDTH),
            (job.STRIDE_HEIGHT, job.STRIDE_WIDTH),
            (max(0, first - top), job.PAD_LEFT),
            (job.ROWS, job.OUT_WIDTH),
        )
        sums = exact_matmul(seen, self._weights(job)) + job.BIAS
        return requantize(sums, job.MULTIPLIER, job.SHIFT, job.OUTPUT_ZERO_POINT, job.LOW, job.HIGH)

    def _weights(self, job: Any) -> NDArray[Any]:
        """The second factor, (depth, output channels), less its zero point."""
        given = job.SECOND if job.ORDER else job.WEIGHTS
        if given is None:
            raise JobError("address", f"ORDER {job.ORDER} needs an operand whose address is 0")
        shape = (_depth(job), job.OUT_CHANNELS)
        matrix = given.reshape(shape) if job.ORDER == 2 else given.reshape(shape[::-1]).T
        return np.asarray(matrix.astype(np.int16) - job.WEIGHT_ZERO_POINT)

    def jobs(self, layer: Layer, job: JobValues) -> Iterable[JobValues]:
        """The driver's strips of each image."""
        step = self.strip_rows(layer)
        for _ in range(layer.batch):
            for row in range(0, layer.out_height, step):
                yield job.but(FIRST_ROW=row, ROWS=min(step, layer.out_height - row))

    def macs(self, job: JobValues) -> int:
        """Padding included."""
        return _pixels(job) * _depth(job) * int(job.OUT_CHANNELS)

    def traffic(self, job: JobValues, declared: Traffic) -> Traffic:
        """Of the image only the strip's rows; the start-up cycles fetch the registers."""
        first, last = self._input_rows(job)
        moved = {
            "INPUT": (last - first) * job.IN_WIDTH * job.IN_CHANNELS,
            "SECOND" if job.ORDER else "WEIGHTS": _weights(job),
            **dict.fromkeys(("BIAS", "MULTIPLIER", "SHIFT"), 4 * job.OUT_CHANNELS),
        }
        return Traffic(sum(moved.values()), declared.written, moved)

    def timing(self, job: JobValues, nbytes: int) -> JobTiming:
        """See the class."""
        size = self._of("size")
        tiles = -(-_depth(job) // size) * -(-job.OUT_CHANNELS // size)
        compute = tiles * max(_pixels(job), size) + 2 * size
        return self.unit_timing().of(compute, nbytes)

    def _input_rows(self, job: JobValues) -> tuple[int, int]:
        """First and one past the last row of the image that the strip looks at."""
        top = job.FIRST_ROW * job.STRIDE_HEIGHT - job.PAD_TOP
        bottom = top + (job.ROWS - 1) * job.STRIDE_HEIGHT + job.KERNEL_HEIGHT
        first = min(max(0, top), job.IN_HEIGHT)
        return first, min(max(bottom, first), job.IN_HEIGHT)

    def _of(self, parameter: str) -> int:
        return int(self.values[parameter])
