"""`RandomNetwork`: layers of float networks with random weights."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from covp.graph.attributes import (
    Activation,
    Conv2D,
    DepthwiseConv2D,
    Elementwise,
    FullyConnected,
    Padding,
    Pair,
    Pool2D,
    Softmax,
)
from covp.graph.graph import Graph, Tensor
from covp.graph.ops.sequence_lstm import SequenceLstm
from covp.graph.tflite.converters.common import same_padding
from covp.graph.zoo.builder import GraphBuilder


class RandomNetwork:
    """A `GraphBuilder` for float networks whose weights keep the signal's size (He's rule).

    Args:
        seed: of the weights.
        input_size: root mean square of the input's values; the first layer divides by it.
    """

    def __init__(self, name: str, seed: int, input_size: float) -> None:
        self.builder = GraphBuilder(name)
        self._rng = np.random.default_rng(seed)
        self._gain = 1 / input_size

    def input(self, *shape: int) -> Tensor:
        """Return an input of the network."""
        return self.builder.input(shape, np.float32)

    def conv(
        self,
        x: Tensor,
        filters: int,
        kernel: Pair,
        stride: Pair = (1, 1),
        activation: Activation = "relu",
    ) -> Tensor:
        """Add a CONV_2D with SAME padding."""
        weights = self._weights((filters, *kernel, x.shape[3]), kernel[0] * kernel[1] * x.shape[3])
        attributes = Conv2D(stride, _same(x, kernel, stride), activation=activation)
        return self.builder.add("CONV_2D", x, weights, self._bias(filters), attributes=attributes)

    def depthwise(
        self,
        x: Tensor,
        kernel: Pair = (3, 3),
        stride: Pair = (1, 1),
        same: bool = True,
        activation: Activation = "relu",
        multiplier: int = 1,
    ) -> Tensor:
        """Add a DEPTHWISE_CONV_2D with SAME or VALID padding."""
        channels = x.shape[3] * multiplier
        weights = self._weights((1, *kernel, channels), kernel[0] * kernel[1])
        padding = _same(x, kernel, stride) if same else Padding()
        return self.builder.add(
            "DEPTHWISE_CONV_2D",
            x,
            weights,
            self._bias(channels),
            attributes=DepthwiseConv2D(stride, padding, (1, 1), multiplier, activation),
        )

    def dense(
        self, x: Tensor, units: int, activation: Activation = "none", gain: float = 1.0
    ) -> Tensor:
        """Add a FULLY_CONNECTED."""
        self._gain *= gain
        depth = x.shape[-1]
        weights = self._weights((units, depth), depth)
        attributes = FullyConnected(activation, keep_num_dims=len(x.shape) > 2)
        return self.builder.add(
            "FULLY_CONNECTED", x, weights, self._bias(units), attributes=attributes
        )

    def lstm(self, x: Tensor, cells: int) -> Tensor:
        """Add a UNIDIRECTIONAL_SEQUENCE_LSTM whose states stay from one inference to the next."""
        batch, _, depth = x.shape
        number = len(self.builder.ops)
        gain, self._gain = self._gain, 1.0
        own = [self._matrix((cells, depth), gain) for _ in range(4)]
        back = [self._matrix((cells, cells), 1.0) for _ in range(4)]
        biases = [self._bias(cells) for _ in range(4)]
        zeros = np.zeros((batch, cells), np.float32)
        states = [self.builder.state(f"{what}_{number}", zeros) for what in ("hidden", "cell")]
        result, *after = self.builder.add_all(
            "UNIDIRECTIONAL_SEQUENCE_LSTM",
            *[x, *own, *back, None, None, None, *biases, None, None, *states, *[None] * 4],
            attributes=SequenceLstm(cell_clip=10.0),
            outputs=3,
        )
        for before, tensor in zip(states, after, strict=True):
            self.builder.becomes(before, tensor)
        return result

    def _matrix(self, shape: Pair, gain: float) -> Tensor:
        """Return the weights of a gate: sums of size 1."""
        return self.builder.constant(self._normal(shape, gain / float(np.sqrt(shape[1]))))

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        """Add an ADD with RELU."""
        return self.builder.add("ADD", x, y, attributes=Elementwise("relu"))

    def max_pool(self, x: Tensor, size: Pair) -> Tensor:
        """Add a MAX_POOL_2D in steps of its own size, without padding."""
        return self.builder.add("MAX_POOL_2D", x, attributes=Pool2D(size, size, Padding()))

    def average_pool(self, x: Tensor, size: Pair, stride: Pair | None = None) -> Tensor:
        """Add an AVERAGE_POOL_2D without padding, in steps of its own size by default."""
        attributes = Pool2D(size, stride or size, Padding())
        return self.builder.add("AVERAGE_POOL_2D", x, attributes=attributes)

    def pool_and_flatten(self, x: Tensor) -> Tensor:
        """Add the average over the image, one row a batch."""
        return self.flatten(self.average_pool(x, (x.shape[1], x.shape[2])))

    def flatten(self, x: Tensor) -> Tensor:
        """Add a RESHAPE to one row a batch."""
        return self.builder.add("RESHAPE", x, shape=(x.shape[0], x.size // x.shape[0]))

    def classify(self, x: Tensor, classes: int) -> Graph:
        """Add a FULLY_CONNECTED layer and SOFTMAX, and end the graph."""
        logits = self.dense(x, classes)
        return self.builder.graph(self.builder.add("SOFTMAX", logits, attributes=Softmax()))

    def _weights(self, shape: tuple[int, ...], fan_in: int) -> Tensor:
        deviation = self._gain * float(np.sqrt(2 / fan_in))
        self._gain = 1.0
        return self.builder.constant(self._normal(shape, deviation))

    def _bias(self, channels: int) -> Tensor:
        return self.builder.constant(self._normal((channels,), 0.1))

    def _normal(self, shape: tuple[int, ...], deviation: float) -> NDArray[np.float32]:
        return (self._rng.standard_normal(shape) * deviation).astype(np.float32)


def _same(x: Tensor, kernel: Pair, stride: Pair) -> Padding:
    return same_padding((x.shape[1], x.shape[2]), kernel, stride)
