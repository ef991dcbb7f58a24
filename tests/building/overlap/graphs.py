"""Small networks whose branches or rows can be computed at the same time."""

from __future__ import annotations

import numpy as np

from covp.graph.attributes import Conv2D, DepthwiseConv2D, Elementwise, Padding
from covp.graph.graph import Graph, Tensor
from covp.graph.zoo.builder import GraphBuilder

SAME = Padding(1, 1, 1, 1)


class Network(GraphBuilder):
    """With weights from a seed."""

    def __init__(self, name: str, seed: int) -> None:
        super().__init__(name)
        self.random = np.random.default_rng(seed)

    def conv(self, x: Tensor, channels: int, side: int, stride: int = 1) -> Tensor:
        shape = (channels, side, side, x.shape[3])
        w = self.constant(self.random.integers(-127, 128, shape).astype(np.int8), 0.01)
        padding = SAME if side == 3 else Padding()
        how = Conv2D((stride, stride), padding)
        return self.add("CONV_2D", x, w, attributes=how, scale=0.3, zero_point=-3)

    def depthwise(self, x: Tensor) -> Tensor:
        data = self.random.integers(-127, 128, (1, 3, 3, x.shape[3])).astype(np.int8)
        how = DepthwiseConv2D((1, 1), SAME)
        w = self.constant(data, 0.01)
        return self.add("DEPTHWISE_CONV_2D", x, w, attributes=how, scale=0.1, zero_point=5)

    def sum(self, x: Tensor, y: Tensor) -> Tensor:
        return self.add("ADD", x, y, attributes=Elementwise(), scale=0.35, zero_point=1)


def two_branches() -> Graph:
    """A convolution beside a depthwise one, and their sum."""
    net = Network("branches", 1)
    x = net.input((1, 16, 16, 8), scale=0.05, zero_point=-4)
    return net.graph(net.sum(net.conv(x, 8, 3), net.depthwise(x)))


def chain(columns: int = 10, channels: int = 8) -> Graph:
    """Depthwise convolutions and convolutions: each layer needs the one before it."""
    net = Network("chain", 2)
    x = net.input((1, 12, columns, channels), scale=0.05, zero_point=-4)
    for _ in range(2):
        x = net.conv(net.depthwise(x), channels, 1)
    return net.graph(net.sum(x, net.conv(x, channels, 3)))


def one_after_the_other() -> Graph:
    """Nothing but convolutions."""
    net = Network("line", 3)
    x = net.input((1, 8, 8, 8), scale=0.05, zero_point=-4)
    return net.graph(net.conv(net.conv(x, 8, 1), 4, 3))
