"""Every pass: what it removes, what it must leave, and that no bit of the output changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from covp.graph.attributes import (
    Activation,
    Concatenation,
    Conv2D,
    DepthwiseConv2D,
    Elementwise,
    Pad,
    Padding,
    Pool2D,
    ResizeNearest,
    Split,
    StridedSlice,
    Transpose,
)
from covp.graph.graph import Graph, Tensor, copy_graph
from covp.graph.passes import run_passes
from covp.graph.passes.cleanup import fold_constants, remove_dead_ops, remove_no_ops
from covp.graph.passes.fusions import fuse_activations, fuse_pads
from covp.graph.reference import run_reference
from covp.graph.zoo.builder import GraphBuilder

IMAGE = (1, 6, 6, 4)


class Net(GraphBuilder):
    """A builder with an image for input and convolutions with random weights."""

    def __init__(self, dtype: str = "int8") -> None:
        super().__init__()
        self.rng = np.random.default_rng(0)
        self.quantized = dtype == "int8"
        scale: dict[str, Any] = {"scale": 0.1, "zero_point": -5} if self.quantized else {}
        self.x = self.input(IMAGE, dtype, **scale)

    def filled(self, shape: tuple[int, ...], scale: float = 0.01) -> Tensor:
        if self.quantized:
            return self.constant(self.rng.integers(-127, 128, shape).astype(np.int8), scale)
        return self.constant(self.rng.uniform(-1, 1, shape).astype(np.float32))

    def scaled(self, scale: float, zero_point: int) -> dict[str, Any]:
        return {"scale": scale, "zero_point": zero_point} if self.quantized else {}

    def conv(
        self, x: Tensor, padding: Padding | None = None, activation: Activation = "none"
    ) -> Tensor:
        attributes = Conv2D((1, 1), padding or Padding(), activation=activation)
        weights = self.filled((4, 3, 3, x.shape[3]))
        return self.add("CONV_2D", x, weights, attributes=attributes, **self.scaled(0.5, 7))

    def depthwise(self, x: Tensor) -> Tensor:
        attributes = DepthwiseConv2D((2, 2), Padding())
        weights = self.filled((1, 3, 3, x.shape[3]))
        scale = self.scaled(0.3, -7)
        return self.add("DEPTHWISE_CONV_2D", x, weights, attributes=attributes, **scale)


def after(run: Callable[[Graph], Any], graph: Graph) -> list[str]:
    """The kinds left by a pass, after a check that all values stay the same."""
    before = [(op.kind, op.attributes, list(op.inputs), list(op.outputs)) for op in graph.ops]
    lowered = copy_graph(graph)
    run(lowered)
    remove_dead_ops(lowered)
    now = [(op.kind, op.attributes, list(op.inputs), list(op.outputs)) for op in graph.ops]
    assert before == now, "the argument was changed"
    for seed in range(4):
        rng = np.random.default_rng(seed)
        values = [
            rng.integers(-128, 128, t.shape).astype(np.int8)
            if t.dtype == np.int8
            else rng.uniform(-9, 9, t.shape).astype(np.float32)
            for t in graph.inputs
        ]
        for a, b in zip(run_reference(graph, values), run_reference(lowered, values), strict=True):
            np.testing.assert_array_equal(a, b)
            assert a.size
    return [op.kind for op in lowered.ops]


@pytest.mark.parametrize("dtype", ["int8", "float32"])
@pytest.mark.parametrize("layer", ["conv", "depthwise"])
def test_pad_becomes_padding(dtype: str, layer: str) -> None:
    net = Net(dtype)
    value = -5.0 if net.quantized else 0.0
    padded = net.add("PAD", net.x, attributes=Pad(((0, 0), (1, 2), (0, 3), (0, 0)), value))
    graph = net.graph(getattr(net, layer)(padded))
    assert after(fuse_pads, graph) == [graph.ops[1].kind]


def test_pad_adds_to_the_padding_there_is() -> None:
    net = Net()
    padded = net.add("PAD", net.x, attributes=Pad(((0, 0), (1, 0), (0, 2), (0, 0)), -5.0))
    graph = net.graph(net.conv(padded, Padding(1, 1, 1, 1)))
    lowered = copy_graph(graph)
    fuse_pads(lowered)
    assert lowered.ops[1].attributes.padding == Padding(2, 1, 1, 3)
    assert after(fuse_pads, graph) == ["CONV_2D"]


@pytest.mark.parametrize(
    ("paddings", "value"),
    [
        (((0, 0), (1, 1), (1, 1), (0, 0)), 0.0),  # not the zero point
        (((0, 0), (1, 1), (1, 1), (0, 1)), -5.0),  # channels
        (((1, 0), (1, 1), (1, 1), (0, 0)), -5.0),  # batch
    ],
)
def test_pad_stays(paddings: Any, value: float) -> None:
    net = Net()
    padded = net.add("PADV2", net.x, attributes=Pad(paddings, value))
    assert after(fuse_pads, net.graph(net.conv(padded))) == ["PADV2", "CONV_2D"]


def test_pad_with_two_readers_stays_for_the_other() -> None:
    net = Net()
    padded = net.add("PAD", net.x, attributes=Pad(((0, 0), (1, 1), (1, 1), (0, 0)), -5.0))
    pooled = net.add("MAX_POOL_2D", padded, attributes=Pool2D((2, 2), (2, 2), Padding()))
    kinds = after(fuse_pads, net.graph(net.conv(padded), pooled))
    assert sorted(kinds) == ["CONV_2D", "MAX_POOL_2D", "PAD"]


def producers(net: Net) -> dict[str, Tensor]:
    window = Pool2D((2, 2), (1, 1), Padding())
    return {
        "CONV_2D": net.conv(net.x),
        "DEPTHWISE_CONV_2D": net.depthwise(net.x),
        "ADD": net.add("ADD", net.x, net.x, attributes=Elementwise(), **net.scaled(0.1, 20)),
        "AVERAGE_POOL_2D": net.add("AVERAGE_POOL_2D", net.x, attributes=window),
        "MAX_POOL_2D": net.add("MAX_POOL_2D", net.x, attributes=window),
    }


@pytest.mark.parametrize("dtype", ["int8", "float32"])
@pytest.mark.parametrize("kind", ["RELU", "RELU6"])
@pytest.mark.parametrize("producer", sorted(producers(Net())))
def test_activation_is_fused(producer: str, kind: str, dtype: str) -> None:
    net = Net(dtype)
    graph = net.graph(net.add(kind, producers(net)[producer]))
    assert after(fuse_activations, graph) == [producer]


def test_activation_stays() -> None:
    """After another activation, another scale, a second reader, or what has no activation."""
    net = Net()
    assert after(
        fuse_activations, net.graph(net.add("RELU", net.conv(net.x, activation="relu6")))
    ) == ["CONV_2D", "RELU"]
    net = Net()
    rescaled = net.add("RELU", net.conv(net.x), scale=0.25, zero_point=7)
    assert after(fuse_activations, net.graph(rescaled)) == ["CONV_2D", "RELU"]
    net = Net()
    middle = net.conv(net.x)
    assert after(fuse_activations, net.graph(net.add("RELU", middle), middle)) == [
        "CONV_2D",
        "RELU",
    ]
    net = Net()
    joined = net.add("CONCATENATION", net.x, net.x, attributes=Concatenation(3))
    assert after(fuse_activations, net.graph(net.add("RELU", joined))) == ["CONCATENATION", "RELU"]


def test_constants_are_folded() -> None:
    net = Net()
    stored = net.constant(np.arange(4, dtype=np.int8), 0.2, 3)
    doubled = net.add("ADD", stored, stored, attributes=Elementwise(), scale=0.4)
    added = net.add("ADD", net.x, doubled, attributes=Elementwise(), scale=0.3)
    assert after(fold_constants, net.graph(added)) == ["ADD"]


def test_a_constant_output_stays_computed() -> None:
    net = Net()
    stored = net.constant(np.arange(4, dtype=np.int8), 0.2, 3)
    doubled = net.add("ADD", stored, stored, attributes=Elementwise(), scale=0.4)
    assert after(fold_constants, net.graph(net.conv(net.x), doubled)) == ["ADD", "CONV_2D"]


def test_dead_code_is_removed() -> None:
    net = Net()
    net.conv(net.conv(net.x))
    kept = net.add("RELU", net.x)
    assert after(remove_dead_ops, net.graph(kept)) == ["RELU"]


NO_OPS: dict[str, dict[str, Any]] = {
    "CONCATENATION": {"attributes": Concatenation(1)},
    "PAD": {"attributes": Pad(((0, 0),) * 4, -5.0)},
    "QUANTIZE": {},
    "RESIZE_NEAREST_NEIGHBOR": {"attributes": ResizeNearest((6, 6))},
    "SPLIT": {"attributes": Split(3)},
    "STRIDED_SLICE": {"attributes": StridedSlice(tuple((0, n, 1) for n in IMAGE))},
    "TRANSPOSE": {"attributes": Transpose((0, 1, 2, 3))},
}


@pytest.mark.parametrize("kind", sorted(NO_OPS))
def test_no_ops_are_removed(kind: str) -> None:
    net = Net()
    graph = net.graph(net.add("RELU", net.add(kind, net.x, **NO_OPS[kind])))
    assert after(remove_no_ops, graph) == ["RELU"]
    # as the graph's output it needs a place
    net = Net()
    assert after(remove_no_ops, net.graph(net.add(kind, net.x, **NO_OPS[kind]))) == [kind]


@pytest.mark.parametrize(
    ("kind", "how"),
    [
        ("STRIDED_SLICE", StridedSlice(((0, 1, 1), (5, None, -1), (0, 6, 1), (0, 4, 1)))),
        ("TRANSPOSE", Transpose((0, 2, 1, 3))),
    ],
)
def test_what_keeps_the_shape_and_moves_values_stays(kind: str, how: Any) -> None:
    net = Net()
    graph = net.graph(net.add("RELU", net.add(kind, net.x, attributes=how)))
    assert after(remove_no_ops, graph) == [kind, "RELU"]


def test_requantizing_stays() -> None:
    net = Net()
    graph = net.graph(net.add("RELU", net.add("QUANTIZE", net.x, scale=0.1, zero_point=-4)))
    assert after(remove_no_ops, graph) == ["QUANTIZE", "RELU"]


def test_all_together() -> None:
    net = Net()
    padded = net.add("PAD", net.x, attributes=Pad(((0, 0), (1, 1), (1, 1), (0, 0)), -5.0))
    same = net.add("TRANSPOSE", padded, attributes=Transpose((0, 1, 2, 3)))
    graph = net.graph(net.add("RELU", net.conv(same)))
    assert after(all_passes, graph) == ["CONV_2D"]


def all_passes(graph: Graph) -> None:
    """`run_passes` in place, as `after` wants it."""
    lowered = run_passes(graph)
    graph.ops, graph.outputs = lowered.ops, lowered.outputs
