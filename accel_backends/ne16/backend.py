"""NE16, the neural engine of GAP9: layers in its layout of weights, the cycles of its RTL."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.accelerator import (
    TECHNOLOGY,
    TIMING,
    WAIT,
    Accelerator,
    Job,
    Limit,
    TimingCheck,
    number,
    result,
    table,
    tensor,
)
from covp.graph.typed_convolution import QuantizedConv2D
from covp.hardware.arithmetic import exact_matmul, patches, requantize
from covp.hardware.job import JobValues
from covp.hardware.job_timing import JobTiming, Traffic

CHANNELS = 16
"""Input channels that the array takes at a time; their weights are bits of one 16-bit word."""
OUTPUTS = 32
"""Output channels of a tile."""
SIDE = 3
"""Pixels of a tile's output, down and to the right."""
LINEAR = 256
"""Inputs of a fully connected layer that the array takes at a time."""
_FIFO = 6
"""Cycles before the first word of a stream has come through the queue."""
_JOB = 2
"""Cycles of a job beside its tiles: the step to the first one, and the one after the last."""
_INDICES = 3
"""Outputs that a job's first 1x1 products need, or it waits for the next tile's addresses."""
_HALF = 0xFFFF
_POINTWISE, _FULL, _DEPTHWISE, _LINEAR = range(4)
_DEFAULTS = {"bytes_per_cycle": 36, "startup_cycles": 0}


def _groups(job: JobValues) -> int:
    """Return in how many steps the input channels of an output are taken."""
    if job.MODE == _DEPTHWISE:
        return 1
    return -(-int(job.IN_CHANNELS) // (LINEAR if job.MODE == _LINEAR else CHANNELS))


def _taps(mode: int) -> int:
    return 9 if mode in (_FULL, _DEPTHWISE) else 1


def _shape(job: JobValues) -> tuple[int, ...]:
    """Return the shape of the packed weights; the last axis are the two bytes of 16 channels."""
    bits, words = int(job.WEIGHT_BITS), -(-int(job.IN_CHANNELS) // CHANNELS)
    if job.MODE == _DEPTHWISE:
        return words, bits, 9, 2
    if job.MODE == _LINEAR:
        return int(job.OUT_CHANNELS), bits, words, 2
    return int(job.OUT_CHANNELS), words, bits, _taps(job.MODE), 2


def pack(weights: NDArray[Any], mode: int, bits: int) -> NDArray[np.uint8]:
    """Return the weights, bit by bit, in the order in which the streamer fetches them.

    Args:
        weights: unsigned, (outputs, taps, inputs); of depthwise layers (1, taps, channels).
        mode: as the register MODE says.
        bits: of each weight, 2 to 8.
    """
    outputs, taps, channels = weights.shape
    words = -(-channels // CHANNELS)
    padded = np.zeros((outputs, taps, words * CHANNELS), np.uint8)
    padded[:, :, :channels] = weights
    planes = (padded[..., None] >> np.arange(bits, dtype=np.uint8)) & 1
    planes = planes.reshape(outputs, taps, words, CHANNELS, bits)
    order = (0, 4, 1, 2, 3) if mode == _LINEAR else (0, 2, 4, 1, 3)
    return np.packbits(planes.transpose(order), axis=-1, bitorder="little").ravel()


def unpack(packed: NDArray[np.uint8], mode: int, channels: int) -> NDArray[np.uint8]:
    """Return what `pack` was given: (outputs, taps, inputs)."""
    planes = np.unpackbits(packed, axis=-1, bitorder="little")
    if mode == _DEPTHWISE:
        planes = planes[None]
    order = (0, 2, 3, 1) if mode == _LINEAR else (0, 3, 1, 4, 2)
    planes = planes.transpose(order)
    bits = planes.shape[-1]
    worth = planes << np.arange(bits, dtype=np.uint8)
    values: NDArray[np.uint8] = np.add.reduce(worth, axis=-1, dtype=np.uint8)
    taps = 1 if mode == _LINEAR else values.shape[1]
    return values.reshape(len(values), taps, -1)[:, :, :channels]


class Ne16(Accelerator):
    """NE16: 3x3, 1x1 and depthwise 3x3 convolutions, fully connected layers; weights bit by bit.

    Nine blocks for each of 3x3 pixels multiply 16 channels by one bit of their weights in a cycle.
    A tile of 3x3 pixels and 32 output channels takes, for each 16 input channels, the load of 5x5
    pixels (3x3 of 1x1 layers), the weights' offset and the products: a cycle for each bit of each
    output channel (1x1: for each output channel). Then its sums are scaled and stored. Stride 2
    computes all pixels and keeps every second one. Nothing overlaps.

    Cycles are those of the unit's RTL (github.com/pulp-platform/ne16, 6bd7272) with a memory of
    288 bits a cycle without conflicts, from the start of a job to its event; with fewer
    ``bytes_per_cycle`` each access takes as many cycles as it has such words. They are the sums of
    its public model (Ne16PerfModel.py of DORY: Burrello et al., IEEE Transactions on Computers
    2021), which has no fully connected layers, and some cycles for each job. With stride 2 the RTL
    needs a job for each tile; what the core does for them is not counted. Weights have the fewest
    bits that hold a layer's, and lie as the unit fetches them (16 channels a word).

    Sums are requantized as TFLite does, in the time of 32-bit scales with a shift and a bias for
    each channel; the unit itself multiplies and shifts without rounding.
    """

    name = "ne16"
    operators = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED")
    parameters = (
        *(replace(p, default=_DEFAULTS.get(p.name, p.default)) for p in TIMING[1:]),
        WAIT,
        TECHNOLOGY,
    )
    timing_check = TimingCheck("its RTL, 327 layers", 0.0, {**_DEFAULTS, "contention": 0.0})
    job = Job(
        tensor("INPUT", "int8", lambda job: job.IN_HEIGHT * job.IN_WIDTH * job.IN_CHANNELS),
        table("WEIGHTS", "uint8", lambda job: int(np.prod(_shape(job))), "See `pack`."),
        table("BIAS", "int32", lambda job: job.OUT_CHANNELS),
        table("MULTIPLIER", "int32", lambda job: job.OUT_CHANNELS),
        table("SHIFT", "int32", lambda job: job.OUT_CHANNELS),
        result("OUTPUT", "int8", lambda job: job.OUT_HEIGHT * job.OUT_WIDTH * job.OUT_CHANNELS),
        number("MODE", 0, 3, "0: 1x1; 1: 3x3; 2: depthwise 3x3; 3: fully connected."),
        number("WEIGHT_BITS", 2, 8),
        number("WEIGHT_OFFSET", -128, 127, "Added to each weight."),
        number("IN_HEIGHT", 1, _HALF),
        number("IN_WIDTH", 1, _HALF),
        number("IN_CHANNELS", 1, _HALF),
        number("OUT_HEIGHT", 1, _HALF),
        number("OUT_WIDTH", 1, _HALF),
        number("OUT_CHANNELS", 1, _HALF),
        number("STRIDE", 1, 2),
        number("PAD_TOP", 0, 2),
        number("PAD_LEFT", 0, 2),
        number("INPUT_ZERO_POINT", -128, 127, "Stands for padding, too."),
        number("OUTPUT_ZERO_POINT", -128, 127),
        number("LOW", -128, 127, "Lowest result."),
        number("HIGH", -128, 127, "Highest result."),
    )

    def accepts(self, layer: QuantizedConv2D) -> Iterable[Limit]:
        """Return the limits: one image, kernels of 1x1 and 3x3, both strides equal."""
        yield Limit("batch", layer.batch, at_most=1)
        yield Limit("rows of the kernel", layer.kernel[0], one_of=(1, 3))
        yield Limit("columns of the kernel", layer.kernel[1], one_of=(layer.kernel[0],))
        yield Limit("stride to the right", layer.stride[1], one_of=(layer.stride[0],))
        yield Limit("dilation", max(layer.dilation), at_most=1)
        if layer.depthwise:
            yield Limit("rows of the kernel, depthwise", layer.kernel[0], one_of=(3,))
            yield Limit("depth multiplier", layer.depth_multiplier, at_most=1)

    def registers(self, layer: QuantizedConv2D) -> Mapping[str, Any]:
        """Return the weights as the unit fetches them, with the fewest bits that hold them."""
        taps = layer.kernel[0] * layer.kernel[1]
        mode = _mode(layer)
        weights = layer.weights.reshape(1 if layer.depthwise else layer.out_channels, taps, -1)
        lowest, highest = int(weights.min()), int(weights.max())
        bits = max(2, (highest - lowest).bit_length())
        return {
            **super().registers(layer),
            "MODE": mode,
            "WEIGHT_BITS": bits,
            "WEIGHT_OFFSET": lowest,
            "WEIGHTS": pack((weights.astype(np.int16) - lowest).astype(np.uint8), mode, bits),
            "STRIDE": layer.stride[0],
        }

    def compute(self, job: Any) -> NDArray[Any]:
        """Multiply all pixels by the unpacked weights; requantize the sums."""
        image = job.INPUT.reshape(job.IN_HEIGHT, job.IN_WIDTH, job.IN_CHANNELS).astype(np.int16)
        kernel = 3 if _taps(job.MODE) == 9 else 1
        seen = patches(
            image - np.int16(job.INPUT_ZERO_POINT),
            (kernel, kernel),
            (job.STRIDE, job.STRIDE),
            (job.PAD_TOP, job.PAD_LEFT),
            (job.OUT_HEIGHT, job.OUT_WIDTH),
        )
        packed = job.WEIGHTS.reshape(_shape(job))
        weights = unpack(packed, job.MODE, job.IN_CHANNELS).astype(np.int16) + job.WEIGHT_OFFSET
        if job.MODE == _DEPTHWISE:
            taps = seen.reshape(len(seen), 9, job.IN_CHANNELS).astype(np.int32)
            sums = np.einsum("ptc,tc->pc", taps, weights[0].astype(np.int32))
        else:
            sums = exact_matmul(seen, weights.reshape(job.OUT_CHANNELS, -1).T)
        zero_point = job.OUTPUT_ZERO_POINT
        sums = sums + job.BIAS
        return requantize(sums, job.MULTIPLIER, job.SHIFT, zero_point, job.LOW, job.HIGH)

    def macs(self, job: JobValues) -> int:
        """Return the multiply-accumulates, those with padding included."""
        depth = 1 if job.MODE == _DEPTHWISE else int(job.IN_CHANNELS)
        return int(job.OUT_HEIGHT * job.OUT_WIDTH * job.OUT_CHANNELS) * _taps(job.MODE) * depth

    def hardware_size(self) -> tuple[int, float]:
        """Return 1,296 multipliers of 8 by 1 bit as 648 of 8 by 2; KB of input buffer and sums."""
        memory = 5 * 5 * CHANNELS + 4 * OUTPUTS * SIDE * SIDE
        return 9 * 9 * CHANNELS // 2, memory / 1024

    def traffic(self, job: JobValues, declared: Traffic) -> Traffic:
        """Return what is moved: each tile loads its pixels and the weights of its channels anew."""
        tiles = _tiles(job)
        outputs = -(-int(job.OUT_CHANNELS) // (CHANNELS if job.MODE == _DEPTHWISE else OUTPUTS))
        pixels = 1 if job.MODE == _LINEAR else (5 if _taps(job.MODE) == 9 else SIDE) ** 2
        passes = 1 if job.MODE == _DEPTHWISE else outputs
        moved = {
            "INPUT": tiles * pixels * int(job.IN_CHANNELS) * passes,
            "WEIGHTS": tiles * int(np.prod(_shape(job))),
            **dict.fromkeys(("BIAS", "MULTIPLIER", "SHIFT"), 4 * tiles * int(job.OUT_CHANNELS)),
        }
        return Traffic(sum(moved.values()), declared.written, moved)

    def timing(self, job: JobValues, nbytes: int) -> JobTiming:
        """Return the cycles of all tiles, as the class says."""
        width = CHANNELS if job.MODE == _DEPTHWISE else OUTPUTS
        outputs = int(job.OUT_CHANNELS)
        full, rest = divmod(outputs, width)
        tile = full * self._tile(job, width) + (self._tile(job, rest) if rest else 0)
        tiles = _tiles(job)
        start = _JOB + (max(0, _INDICES - outputs) if job.MODE == _POINTWISE else 0)
        return self.unit_timing().of(tiles * tile + start * (tiles if job.STRIDE == 2 else 1), 0)

    def _tile(self, job: JobValues, outputs: int) -> Any:
        """Return the cycles of a tile of 3x3 pixels and this many output channels."""
        access = self.unit_timing().port.cycles
        bits, pixels = int(job.WEIGHT_BITS), SIDE * SIDE
        offset = _FIFO
        if job.MODE == _POINTWISE:
            load = 10 + pixels * access(CHANNELS)
            products = _FIFO + outputs * access(2 * bits)
        elif job.MODE == _LINEAR:
            load = _FIFO + CHANNELS * access(CHANNELS)
            products = _FIFO + outputs * bits * access(LINEAR // 8)
        else:
            load = _FIFO + 5 * 5 * access(CHANNELS)
            products = _FIFO + outputs * bits * access(9 * 2)
            offset += outputs if job.MODE == _DEPTHWISE else 0
        updates = 2
        shift, scale, bias = OUTPUTS // 4, 9 + outputs, 8 + -(-outputs // 8)
        stored = 3 + pixels * access(OUTPUTS) + 1
        steps = _groups(job) * (load + offset + products + updates)
        return steps + shift + scale + bias + stored


def _mode(layer: QuantizedConv2D) -> int:
    if layer.depthwise:
        return _DEPTHWISE
    if layer.kernel == (3, 3):
        return _FULL
    return _LINEAR if layer.in_height * layer.in_width == 1 else _POINTWISE


def _tiles(job: JobValues) -> int:
    """Return the number of tiles of 3x3 pixels; with stride 2 each keeps 2x2 of them."""
    if job.MODE == _LINEAR:
        return 1
    side = SIDE if job.STRIDE == 1 else 2
    return -(-int(job.OUT_HEIGHT) // side) * -(-int(job.OUT_WIDTH) // side)
