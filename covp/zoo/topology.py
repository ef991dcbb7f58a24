"""The topologies of the zoo's models, as float graphs with random weights."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from covp.frontend.tflite.converters.common import same_padding
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
from covp.zoo.builder import GraphBuilder


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
        """The network's input."""
        return self.builder.input(shape, np.float32)

    def conv(
        self,
        x: Tensor,
        filters: int,
        kernel: Pair,
        stride: Pair = (1, 1),
        activation: Activation = "relu",
    ) -> Tensor:
        """CONV_2D with SAME padding."""
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
    ) -> Tensor:
        """DEPTHWISE_CONV_2D with one filter a channel, with SAME or VALID padding."""
        channels = x.shape[3]
        weights = self._weights((1, *kernel, channels), kernel[0] * kernel[1])
        padding = _same(x, kernel, stride) if same else Padding()
        return self.builder.add(
            "DEPTHWISE_CONV_2D",
            x,
            weights,
            self._bias(channels),
            attributes=DepthwiseConv2D(stride, padding, activation=activation),
        )

    def dense(
        self, x: Tensor, units: int, activation: Activation = "none", gain: float = 1.0
    ) -> Tensor:
        """FULLY_CONNECTED."""
        self._gain *= gain
        weights = self._weights((units, x.shape[1]), x.shape[1])
        return self.builder.add(
            "FULLY_CONNECTED", x, weights, self._bias(units), attributes=FullyConnected(activation)
        )

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        """ADD with RELU."""
        return self.builder.add("ADD", x, y, attributes=Elementwise("relu"))

    def max_pool(self, x: Tensor, size: Pair) -> Tensor:
        """MAX_POOL_2D in steps of its own size, without padding."""
        return self.builder.add("MAX_POOL_2D", x, attributes=Pool2D(size, size, Padding()))

    def pool_and_flatten(self, x: Tensor) -> Tensor:
        """The average over the image, one row a batch."""
        size = (x.shape[1], x.shape[2])
        pooled = self.builder.add("AVERAGE_POOL_2D", x, attributes=Pool2D(size, size, Padding()))
        return self.flatten(pooled)

    def flatten(self, x: Tensor) -> Tensor:
        """RESHAPE to one row a batch."""
        return self.builder.add("RESHAPE", x, shape=(x.shape[0], x.size // x.shape[0]))

    def classify(self, x: Tensor, classes: int) -> Graph:
        """A FULLY_CONNECTED layer and SOFTMAX; the end."""
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


def resnet(net: RandomNetwork) -> Graph:
    """ResNet-8 for CIFAR-10: three blocks of two 3x3 convolutions."""
    x = net.conv(net.input(1, 32, 32, 3), 16, (3, 3))
    for filters, stride in ((16, (1, 1)), (32, (2, 2)), (64, (2, 2))):
        y = net.conv(x, filters, (3, 3), stride)
        y = net.conv(y, filters, (3, 3), activation="none")
        if stride != (1, 1):
            x = net.conv(x, filters, (1, 1), stride, "none")
        x = net.add(x, y)
    return net.classify(net.pool_and_flatten(x), 10)


def kws(net: RandomNetwork) -> Graph:
    """DS-CNN: one convolution and four depthwise-separable ones of 64 channels."""
    x = net.conv(net.input(1, 49, 10, 1), 64, (10, 4), (2, 2))
    for _ in range(4):
        x = net.conv(net.depthwise(x), 64, (1, 1))
    return net.classify(net.pool_and_flatten(x), 12)


def vww(net: RandomNetwork) -> Graph:
    """MobileNetV1 of width 0.25."""
    x = net.conv(net.input(1, 96, 96, 3), 8, (3, 3), (2, 2))
    blocks = [(16, 1), (32, 2), (32, 1), (64, 2), (64, 1), (128, 2), *[(128, 1)] * 5]
    for filters, stride in (*blocks, (256, 2), (256, 1)):
        x = net.conv(net.depthwise(x, stride=(stride, stride)), filters, (1, 1))
    return net.classify(net.pool_and_flatten(x), 2)


def toycar(net: RandomNetwork) -> Graph:
    """An autoencoder of ten fully connected layers, eight units in the middle."""
    x = net.input(1, 640)
    for units in (128, 128, 128, 128, 8, 128, 128, 128, 128):
        x = net.dense(x, units, "relu")
    return net.builder.graph(net.dense(x, 640, gain=10.0))


def sww(net: RandomNetwork) -> Graph:
    """Depthwise-separable convolutions along time, then one row of 32 features."""
    x = net.input(1, 30, 1, 40)
    for rows, filters in ((3, 128), (5, 128), (10, 128), (15, 32)):
        x = net.depthwise(x, (rows, 1), same=False, activation="none")
        x = net.conv(x, filters, (1, 1))
    return net.classify(net.flatten(x), 3)


def cifar10(net: RandomNetwork) -> Graph:
    """The CNN of the microTVM thesis: three 5x5 convolutions with pools, one dense layer.

    Given are the kernels' sizes, the channels and the order of the layers. Left open, chosen here:
    SAME padding and pools of 2x2 in steps of 2, with which the inputs of the convolutions are
    32x32, 16x16 and 8x8 as in its comparison of single operators; ReLU, fused into the convolution
    as TFLite does; and no SOFTMAX at the end.
    """
    x = net.input(1, 32, 32, 3)
    for filters in (32, 32, 64):
        x = net.max_pool(net.conv(x, filters, (5, 5)), (2, 2))
    return net.builder.graph(net.dense(net.flatten(x), 10))


TOPOLOGIES: dict[str, Callable[[RandomNetwork], Graph]] = {
    "resnet": resnet,
    "kws": kws,
    "vww": vww,
    "toycar": toycar,
    "sww": sww,
    "cifar10": cifar10,
}
"""Name to the function that lays the layers."""
