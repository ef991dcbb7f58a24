"""Patches: a graph in strips computes what the graph computes, bit for bit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from covp.errors import ModelError
from covp.graph.attributes import (
    Conv2D,
    DepthwiseConv2D,
    Elementwise,
    JoinedRows,
    Padding,
    Pool2D,
)
from covp.graph.cuts import RowWindow
from covp.graph.graph import Graph, Strip, Tensor
from covp.graph.models import load_model
from covp.graph.ops import macs
from covp.graph.passes import run_passes
from covp.graph.passes.patches import find_patches, patch
from covp.graph.random_inputs import random_inputs
from covp.graph.reference import run_reference
from covp.graph.rewrites import demand_same_results
from covp.graph.zoo.builder import GraphBuilder


class _Chain:
    """A network of random layers, each with random paddings and strides."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.builder = GraphBuilder(f"chain_{seed}")

    def graph(self) -> Graph:
        height, width = self.random.integers(9, 25, 2)
        x = self.builder.input((1, int(height), int(width), 4), scale=0.05, zero_point=-4)
        for _ in range(self.random.integers(2, 6)):
            x = self._branch(x) if self.random.random() < 0.25 else self._layer(x)
        return self.builder.graph(x)

    def _layer(self, x: Tensor) -> Tensor:
        size = [int(self.random.integers(1, min(4, n) + 1)) for n in x.shape[1:3]]
        stride = int(self.random.integers(1, 3)), int(self.random.integers(1, 3))
        dilation = (int(self.random.integers(1, 3)), 1) if size[0] * 2 - 1 <= x.shape[1] else (1, 1)
        pads = Padding(*(int(self.random.integers(0, size[n // 2])) for n in range(4)))
        match self.random.integers(4):
            case 0:
                return self._add("CONV_2D", x, (4, *size, 4), Conv2D(stride, pads, dilation))
            case 1:
                how = DepthwiseConv2D(stride, pads, dilation)
                return self._add("DEPTHWISE_CONV_2D", x, (1, *size, 4), how)
            case 2:
                pool = Pool2D((size[0], size[1]), stride, pads)
                return self.builder.add("MAX_POOL_2D", x, attributes=pool)
            case _:
                pool = Pool2D((size[0], size[1]), stride, pads)
                return self.builder.add("AVERAGE_POOL_2D", x, attributes=pool)

    def _branch(self, x: Tensor) -> Tensor:
        """A residual block."""
        y = self._add("CONV_2D", x, (4, 3, 3, 4), Conv2D((1, 1), Padding(1, 1, 1, 1)))
        return self.builder.add("ADD", x, y, attributes=Elementwise(), scale=0.1, zero_point=2)

    def _add(self, kind: str, x: Tensor, shape: tuple[int, ...], how: Any) -> Tensor:
        data = self.random.integers(-127, 128, shape).astype(np.int8)
        weights = self.builder.constant(data, 0.01)
        return self.builder.add(kind, x, weights, attributes=how, scale=0.1, zero_point=-3)


def same(graph: Graph, other: Graph, seed: int) -> bool:
    values = random_inputs(graph.inputs, seed)
    pairs = zip(run_reference(graph, values), run_reference(other, values), strict=True)
    return all(np.array_equal(a, b) for a, b in pairs)


@pytest.mark.parametrize("seed", range(40))
def test_random_chains_compute_the_same(seed: int) -> None:
    graph = _Chain(seed).graph()
    each = list(find_patches(graph))
    for patches in each[:: max(1, len(each) // 12)]:
        strips = patch(graph, patches)
        assert same(graph, strips, seed), patches
        assert len({op.name for op in strips.ops}) == len(strips.ops)
        assert len({t.name for t in strips.tensors()}) == len(list(strips.tensors()))


@pytest.mark.parametrize(("model", "depth"), [("resnet", 8), ("vww", 5)])
def test_networks_compute_the_same_and_nothing_twice(model: str, depth: int) -> None:
    graph = run_passes(load_model(model))
    each = [patches for patches in find_patches(graph) if patches.depth == depth]
    assert {1, 2, 4} <= {patches.rows for patches in each}
    for patches in each[::4]:
        strips = patch(graph, patches)
        assert same(graph, strips, 0)
        assert macs(strips) == macs(graph)
        joined = [op for op in strips.ops if isinstance(op.attributes, JoinedRows)]
        assert len(joined[-1].inputs) == patches.strips
        large = [t for op in strips.ops for t in op.outputs if isinstance(op, Strip)]
        assert max(t.shape[1] for t in large) < graph.ops[0].output.shape[1]


def test_a_wrong_halo_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = run_passes(load_model("resnet"))
    patches = next(p for p in find_patches(graph) if p.depth == 8 and p.rows == 2)
    demand_same_results(graph, patch(graph, patches), "patches")
    strips = patch(graph, patches)
    views = [op for op in strips.ops if op.kind == "STRIDED_SLICE" and not isinstance(op, Strip)]
    wrong = next(op for op in views if op.attributes.slices[1][0] > 0)
    first, end, step = wrong.attributes.slices[1]
    moved = (first - 1, end - 1, step)
    slices = (wrong.attributes.slices[0], moved, *wrong.attributes.slices[2:])
    wrong.attributes = replace(wrong.attributes, slices=slices)
    with pytest.raises(ModelError, match="changed what the model computes"):
        demand_same_results(graph, strips, "patches")


def test_rows_of_a_window() -> None:
    assert RowWindow(stride=2, first=-1, last=1).rows(0, 4) == (-1, 8)
    assert RowWindow(stride=1, first=0, last=4).rows(2, 1) == (2, 7)


def test_what_cannot_be_cut_has_no_patches() -> None:
    assert not list(find_patches(run_passes(load_model("toycar"))))
    float_chain = replace(_Chain(0).graph(), outputs=[])
    assert isinstance(list(find_patches(float_chain)), list)
