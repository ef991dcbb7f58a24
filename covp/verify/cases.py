"""Layers to try: each a few numbers, which hypothesis draws and shrinks, and prints as Python."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from covp.graph.attributes import (
    Activation,
    Concatenation,
    Conv2D,
    DepthwiseConv2D,
    Elementwise,
    FullyConnected,
    Padding,
    Pair,
    Pool2D,
    Softmax,
)
from covp.graph.graph import Graph, Op, Quantization, Tensor

Strategy = st.SearchStrategy[Any]


class Case(Protocol):
    """One layer with its inputs; its repr is Python text that makes it again.

    Attributes:
        kind: of the operator.
        gap: bytes between the buffers in memory, in units of their alignment: placements differ.
    """

    @property
    def kind(self) -> str:
        """Of the operator."""
        ...

    @property
    def gap(self) -> int:
        """Unused elements in front of each buffer in memory, so that its alignment varies."""
        ...

    def graph(self) -> Graph:
        """The layer alone."""
        ...

    def inputs(self) -> list[NDArray[Any]]:
        """Values for the graph's inputs."""
        ...


def _tensor(name: str, shape: tuple[int, ...], scale: float, zero_point: int) -> Tensor:
    quantization = Quantization(np.array([scale], np.float32), np.array([zero_point], np.int32))
    return Tensor(name, shape, np.dtype(np.int8), quantization)


def _constant(name: str, data: NDArray[Any], scale: NDArray[Any] | None, axis: int = 0) -> Tensor:
    quantization = None
    if scale is not None:
        zero = np.zeros(scale.size, np.int32)
        quantization = Quantization(scale.astype(np.float32), zero, axis)
    return Tensor(name, data.shape, data.dtype, quantization, data)


def _random_inputs(graph: Graph, seed: int) -> list[NDArray[Any]]:
    rng = np.random.default_rng(seed)
    return [
        rng.integers(-128, 128, t.shape).astype(np.int8)
        if t.dtype == np.int8
        else rng.uniform(-4, 4, t.shape).astype(np.float32)
        for t in graph.inputs
    ]


@dataclass(frozen=True)
class ConvCase:
    """CONV_2D, DEPTHWISE_CONV_2D or FULLY_CONNECTED; values and scales come from the seed.

    Pairs are (height, width). Of fully connected layers only the channels and the batch count;
    of depthwise ones the output channels are a multiple of the input's.
    """

    kind: str = "CONV_2D"
    dtype: str = "int8"
    batch: int = 1
    size: Pair = (1, 1)
    channels: Pair = (1, 1)
    kernel: Pair = (1, 1)
    stride: Pair = (1, 1)
    dilation: Pair = (1, 1)
    same: bool = False
    bias: bool = False
    activation: Activation = "none"
    zero_points: Pair = (0, 0)
    output_scale: float = 1.0
    seed: int = 0
    gap: int = 0

    def graph(self) -> Graph:
        """The layer alone."""
        if self.kind == "FULLY_CONNECTED":
            return self._assemble(
                (self.batch, self.channels[0]),
                self.channels[::-1],
                (self.batch, self.channels[1]),
                FullyConnected(self.activation),
                0,
            )
        effective = [(self.kernel[i] - 1) * self.dilation[i] + 1 for i in (0, 1)]
        out, pads = [], []
        for i in (0, 1):
            if self.same:
                out.append(-(-self.size[i] // self.stride[i]))
                total = max(0, (out[i] - 1) * self.stride[i] + effective[i] - self.size[i])
                pads.append((total // 2, total - total // 2))
            else:
                out.append((max(self.size[i], effective[i]) - effective[i]) // self.stride[i] + 1)
                pads.append((0, 0))
        size = [max(self.size[i], effective[i]) if not self.same else self.size[i] for i in (0, 1)]
        padding = Padding(*pads[0], *pads[1])
        depthwise = self.kind == "DEPTHWISE_CONV_2D"
        multiplier = -(-self.channels[1] // self.channels[0])
        outputs = self.channels[0] * multiplier if depthwise else self.channels[1]
        weights = (
            (1, *self.kernel, outputs) if depthwise else (outputs, *self.kernel, self.channels[0])
        )
        attributes = (
            DepthwiseConv2D(self.stride, padding, self.dilation, multiplier, self.activation)
            if depthwise
            else Conv2D(self.stride, padding, self.dilation, self.activation)
        )
        return self._assemble(
            (self.batch, size[0], size[1], self.channels[0]),
            weights,
            (self.batch, out[0], out[1], outputs),
            attributes,
            3 if depthwise else 0,
        )

    def _assemble(
        self,
        input_shape: tuple[int, ...],
        weight_shape: tuple[int, ...],
        output_shape: tuple[int, ...],
        attributes: Any,
        axis: int,
    ) -> Graph:
        rng = np.random.default_rng(self.seed)
        channels = output_shape[-1]
        if self.dtype == "float32":
            x, y = (
                Tensor(name, shape, np.dtype(np.float32))
                for name, shape in (("x", input_shape), ("y", output_shape))
            )
            weights = _constant("w", rng.uniform(-1, 1, weight_shape).astype(np.float32), None)
            offsets = _constant("b", rng.uniform(-1, 1, channels).astype(np.float32), None)
        else:
            scales = rng.uniform(0.001, 0.02, channels if self.kind != "FULLY_CONNECTED" else 1)
            depth = int(np.prod(weight_shape)) // channels
            x = _tensor("x", input_shape, 0.05, self.zero_points[0])
            # sums of random products grow with the root of their number
            scale = float(0.05 * 0.02 * 50 * 80 * depth**0.5 / 128) * self.output_scale
            y = _tensor("y", output_shape, scale, self.zero_points[1])
            weights = _constant(
                "w", rng.integers(-127, 128, weight_shape).astype(np.int8), scales, axis
            )
            offsets = _constant("b", rng.integers(-5000, 5000, channels).astype(np.int32), None)
        inputs = [x, weights, offsets if self.bias else None]
        return Graph("layer", [x], [y], [Op(self.kind, "layer", inputs, [y], attributes)])

    def inputs(self) -> list[NDArray[Any]]:
        """Values for the graph's inputs."""
        return _random_inputs(self.graph(), self.seed + 1)


@dataclass(frozen=True)
class ElementwiseCase:
    """ADD, SUB or MUL of two int8 tensors of one shape."""

    kind: str = "ADD"
    shape: tuple[int, ...] = (1, 1)
    zero_points: tuple[int, int, int] = (0, 0, 0)
    scales: tuple[float, float, float] = (0.05, 0.05, 0.1)
    activation: Activation = "none"
    seed: int = 0
    gap: int = 0

    def graph(self) -> Graph:
        """The layer alone."""
        a, b, y = (
            _tensor(name, self.shape, self.scales[i], self.zero_points[i])
            for i, name in enumerate("aby")
        )
        op = Op(self.kind, "layer", [a, b], [y], Elementwise(self.activation))
        return Graph("layer", [a, b], [y], [op])

    def inputs(self) -> list[NDArray[Any]]:
        """Values for the graph's inputs."""
        return _random_inputs(self.graph(), self.seed)


@dataclass(frozen=True)
class PoolCase:
    """AVERAGE_POOL_2D or MAX_POOL_2D on int8."""

    kind: str = "AVERAGE_POOL_2D"
    size: Pair = (1, 1)
    channels: int = 1
    filter: Pair = (1, 1)
    stride: Pair = (1, 1)
    same: bool = False
    activation: Activation = "none"
    seed: int = 0
    gap: int = 0

    def graph(self) -> Graph:
        """The layer alone."""
        conv = ConvCase(size=self.size, kernel=self.filter, stride=self.stride, same=self.same)
        shape = conv.graph()
        attributes: Conv2D = shape.ops[0].attributes
        x = _tensor("x", (*shape.inputs[0].shape[:3], self.channels), 0.05, -3)
        y = _tensor("y", (*shape.outputs[0].shape[:3], self.channels), 0.05, -3)
        pool = Pool2D(self.filter, self.stride, attributes.padding, self.activation)
        return Graph("layer", [x], [y], [Op(self.kind, "layer", [x], [y], pool)])

    def inputs(self) -> list[NDArray[Any]]:
        """Values for the graph's inputs."""
        return _random_inputs(self.graph(), self.seed)


@dataclass(frozen=True)
class SoftmaxCase:
    """SOFTMAX on int8."""

    rows: int = 1
    depth: int = 1
    scale: float = 0.1
    seed: int = 0
    gap: int = 0
    kind: str = "SOFTMAX"

    def graph(self) -> Graph:
        """The layer alone."""
        x = _tensor("x", (self.rows, self.depth), self.scale, 0)
        y = _tensor("y", (self.rows, self.depth), 1 / 256, -128)
        return Graph("layer", [x], [y], [Op("SOFTMAX", "layer", [x], [y], Softmax())])

    def inputs(self) -> list[NDArray[Any]]:
        """Values for the graph's inputs."""
        return _random_inputs(self.graph(), self.seed)


@dataclass(frozen=True)
class ConcatenationCase:
    """CONCATENATION of int8 tensors that differ along ``axis`` only, all of one scale."""

    lengths: tuple[int, ...] = (1, 1)
    shape: tuple[int, ...] = (1, 1)
    axis: int = 0
    seed: int = 0
    gap: int = 0
    kind: str = "CONCATENATION"

    def graph(self) -> Graph:
        """The layer alone."""

        def shape(length: int) -> tuple[int, ...]:
            return (*self.shape[: self.axis], length, *self.shape[self.axis + 1 :])

        parts = [_tensor(f"x{i}", shape(n), 0.1, 3) for i, n in enumerate(self.lengths)]
        y = _tensor("y", shape(sum(self.lengths)), 0.1, 3)
        op = Op("CONCATENATION", "layer", list(parts), [y], Concatenation(self.axis))
        return Graph("layer", parts, [y], [op])

    def inputs(self) -> list[NDArray[Any]]:
        """Values for the graph's inputs."""
        return _random_inputs(self.graph(), self.seed)


_small = st.integers(1, 3)
_pairs = st.tuples(_small, _small)
_sizes = st.tuples(st.integers(1, 9), st.integers(1, 9))
_channels = st.tuples(st.integers(1, 20), st.integers(1, 20))
_same_channels = st.sampled_from([4, 8, 12, 16, 1, 3, 6]).map(lambda n: (n, n))
_stored = st.integers(-128, 127)
_activations = st.sampled_from(["none", "relu", "relu6"])
_seeds = st.integers(0, 2**16)
_gaps = st.integers(0, 7)


def _conv(kind: str) -> Strategy:
    depthwise = st.one_of(_same_channels, _same_channels, _channels)
    return st.builds(
        ConvCase,
        kind=st.just(kind),
        dtype=st.sampled_from(["int8", "int8", "int8", "float32"]),
        batch=st.integers(1, 2),
        size=_sizes,
        channels=depthwise if kind == "DEPTHWISE_CONV_2D" else _channels,
        kernel=_pairs,
        stride=_pairs,
        dilation=st.sampled_from([(1, 1), (1, 1), (1, 1), (2, 1), (2, 2)]),
        same=st.booleans(),
        bias=st.booleans(),
        activation=_activations,
        zero_points=st.tuples(_stored, _stored),
        output_scale=st.sampled_from([1.0, 0.05, 3.0]),
        seed=_seeds,
        gap=_gaps,
    )


def _elementwise(kind: str) -> Strategy:
    scale = st.floats(1 / 64, 1.0, width=32)
    return st.builds(
        ElementwiseCase,
        kind=st.just(kind),
        shape=st.tuples(st.integers(1, 3), st.integers(1, 40), st.integers(1, 9)),
        zero_points=st.tuples(_stored, _stored, _stored),
        scales=st.tuples(scale, scale, scale),
        activation=_activations,
        seed=_seeds,
        gap=_gaps,
    )


def _pool(kind: str) -> Strategy:
    return st.builds(
        PoolCase,
        kind=st.just(kind),
        size=_sizes,
        channels=st.integers(1, 9),
        filter=_pairs,
        stride=_pairs,
        same=st.booleans(),
        activation=_activations,
        seed=_seeds,
        gap=_gaps,
    )


def _softmax(kind: str) -> Strategy:
    return st.builds(
        SoftmaxCase,
        rows=_small,
        depth=st.integers(1, 40),
        scale=st.floats(1 / 64, 1.0, width=32),
        seed=_seeds,
        gap=_gaps,
    )


def _concatenation(kind: str) -> Strategy:
    return st.builds(
        ConcatenationCase,
        lengths=st.lists(st.integers(1, 6), min_size=2, max_size=5).map(tuple),
        shape=st.tuples(_small, _small, _small),
        axis=st.integers(0, 2),
        seed=_seeds,
        gap=_gaps,
    )


STRATEGIES: dict[str, Callable[[str], Strategy]] = {
    **dict.fromkeys(("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"), _conv),
    **dict.fromkeys(("ADD", "SUB", "MUL"), _elementwise),
    **dict.fromkeys(("AVERAGE_POOL_2D", "MAX_POOL_2D"), _pool),
    "SOFTMAX": _softmax,
    "CONCATENATION": _concatenation,
}
"""Operator kind to what draws layers of it."""
