"""A network with an operator for every accelerator."""

from __future__ import annotations

import numpy as np

from covp.graph.graph import Graph
from covp.graph.zoo.builder import quantization
from covp.graph.zoo.calibrate import quantize
from covp.graph.zoo.random_network import RandomNetwork


def small_network() -> Graph:
    """int8: convolutions, one depthwise, ADD beside a shortcut, a pool, a dense layer, SOFTMAX."""
    network = RandomNetwork("small", 7, 1.0)
    x = network.conv(network.input(1, 12, 10, 4), 8, (3, 3))
    y = network.conv(network.depthwise(x), 8, (1, 1))
    z = network.add(x, network.conv(y, 8, (3, 3)))
    graph = network.classify(network.pool_and_flatten(z), 6)
    scaled = quantization(1 / 64, 3)
    assert scaled is not None
    chance = np.random.default_rng(2)
    samples = [[chance.normal(size=(1, 12, 10, 4)).astype(np.float32)] for _ in range(4)]
    return quantize(graph, [scaled], samples)
