"""Small networks and their files, and what numpy says of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.graph.attributes import Conv2D, Elementwise, FullyConnected, Padding, Softmax
from covp.graph.graph import Graph, Tensor
from covp.graph.zoo.builder import GraphBuilder

Array = NDArray[Any]


def classifier(classes: int = 12, dtype: str = "int8") -> Graph:
    """A convolution of 6x6x2, a fully connected layer and SOFTMAX."""
    rng = np.random.default_rng(5)
    builder = GraphBuilder("classifier")
    is_float = dtype == "float32"
    x = builder.input((1, 6, 6, 2), np.dtype(dtype), None if is_float else 0.05, -3)

    def constant(shape: tuple[int, ...]) -> Tensor:
        values = rng.integers(-127, 128, shape)
        if is_float:
            return builder.constant((values * 0.01).astype(np.float32))
        return builder.constant(values.astype(np.int8), 0.01)

    def bias(count: int, scale: float) -> Tensor:
        values = rng.integers(-2000, 2000, count)
        if is_float:
            return builder.constant((values * scale).astype(np.float32))
        return builder.constant(values.astype(np.int32), scale)

    filters, first = constant((4, 3, 3, 2)), bias(4, 0.05 * 0.01)
    attributes = Conv2D((1, 1), Padding(), activation="relu")
    conv = builder.add("CONV_2D", x, filters, first, attributes=attributes, scale=0.1)
    flat = builder.add("RESHAPE", conv, shape=(1, 64))
    dense = builder.add("FULLY_CONNECTED", flat, constant((classes, 64)), bias(classes, 0.1 * 0.01),
                        attributes=FullyConnected(), scale=0.2, zero_point=1)  # fmt: skip
    soft = builder.add("SOFTMAX", dense, attributes=Softmax(), scale=1 / 256, zero_point=-128)
    return builder.graph(soft)


def dense(inputs: int, outputs: int, name: str = "dense") -> Graph:
    """One fully connected layer."""
    rng = np.random.default_rng(6)
    builder = GraphBuilder(name)
    x = builder.input((1, inputs), scale=0.1, zero_point=2)
    weights = builder.constant(rng.integers(-127, 128, (outputs, inputs)).astype(np.int8), 0.01)
    y = builder.add("FULLY_CONNECTED", x, weights, attributes=FullyConnected(), scale=0.1)
    return builder.graph(y)


def summing(features: int = 3) -> Graph:
    """y = relu(x + state), which is the state of the next inference."""
    builder = GraphBuilder("summing")
    x = builder.input((1, features), scale=0.1)
    before = builder.state("sum", np.zeros((1, features), np.int8), 0.1)
    total = builder.add("ADD", x, before, attributes=Elementwise(), scale=0.1)
    after = builder.add("RELU", total)
    builder.becomes(before, after)
    return builder.graph(after)


def floats(shape: tuple[int, ...], seed: int = 0) -> Array:
    """Values that an input with a scale of 0.05 mostly holds."""
    return np.random.default_rng(seed).normal(0, 2, shape).astype(np.float32)
