"""The strategies: every drawn layer is one that the graph's rules and the reference accept."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import covp.graph.attributes as attributes
import covp.testing as testing
from covp.errors import UsageError
from covp.graph.graph import Graph, Op
from covp.graph.ops import OPS, definition
from covp.graph.reference import run_reference
from covp.testing import ConvCase, ElementwiseCase, PoolCase, layers

NAMES = {**vars(testing), **vars(attributes)}


def inferred(op: Op) -> list[tuple[int, ...]]:
    """The output shapes by the operator's own rule."""
    return [tuple(shape) for shape in definition(op.kind).infer_shapes(op)]


def described(graph: Graph) -> list[Any]:
    """All that a graph says of its tensors, with constants as bytes."""
    return [
        (
            t.name,
            t.shape,
            t.dtype,
            None if t.data is None else t.data.tobytes(),
            None if t.quantization is None else t.quantization.scale.tobytes(),
            None if t.quantization is None else t.quantization.zero_point.tobytes(),
        )
        for t in graph.tensors()
    ]


@pytest.mark.parametrize("kind", layers.STRATEGIES)
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_drawn_layers_are_valid_and_print_as_python(kind: str, data: st.DataObject) -> None:
    layer = data.draw(layers.layers(kind))
    graph, op = layer.graph(), layer.op()
    assert op.kind == layer.kind == kind
    assert [output.shape for output in op.outputs] == inferred(op)
    outputs = run_reference(graph, layer.inputs())
    assert [o.shape for o in outputs] == [t.shape for t in graph.outputs]
    assert [o.dtype for o in outputs] == [t.dtype for t in graph.outputs]
    again = eval(repr(layer), dict(NAMES))
    assert again == layer
    assert described(again.graph()) == described(graph)
    for first, second in zip(again.inputs(), layer.inputs(), strict=True):
        np.testing.assert_array_equal(first, second)


def test_every_kind_is_an_operator() -> None:
    assert set(layers.STRATEGIES) <= set(OPS)


def test_an_unknown_kind_or_field_is_named() -> None:
    with pytest.raises(UsageError, match="nothing draws layers of GATHER; known are CONV_2D"):
        layers.layers("GATHER")
    with pytest.raises(UsageError, match="ConvCase has no field kernal; it has kind, dtype"):
        layers.convolutions(kernal=(3, 3))


@settings(max_examples=40, deadline=None)
@given(
    layers.convolutions(
        "CONV_2D", max_size=4, max_channels=5, max_kernel=2, dtype="int8", stride=(1, 1)
    )
)
def test_parameters_bound_what_is_drawn(layer: ConvCase) -> None:
    op = layer.op()
    assert layer.kind == "CONV_2D" and op.input(0).dtype == np.int8
    assert max(*layer.size, *layer.channels) <= 5 and max(layer.kernel) <= 2
    assert op.attributes.stride == (1, 1)


@settings(max_examples=40, deadline=None)
@given(
    layers.convolutions("CONV_2D", "DEPTHWISE_CONV_2D", padding=layers.paddings(4))
    | layers.pools(padding=layers.paddings(4))
)
def test_explicit_padding_leaves_an_element_in_every_window(layer: ConvCase | PoolCase) -> None:
    op = layer.op()
    assert [output.shape for output in op.outputs] == inferred(op)
    pad = op.attributes.padding
    kernel = layer.kernel if isinstance(layer, ConvCase) else layer.filter
    dilation = layer.dilation if isinstance(layer, ConvCase) else (1, 1)
    image, out = op.input(0).shape[1:3], op.output.shape[1:3]
    for axis, before in enumerate((pad.top, pad.left)):
        for window in range(out[axis]):
            start = window * op.attributes.stride[axis] - before
            taps = [start + tap * dilation[axis] for tap in range(kernel[axis])]
            assert taps[-1] >= 0 and taps[0] < image[axis]


@settings(max_examples=40, deadline=None)
@given(layers.elementwise("ADD", broadcast=True, constant=st.booleans(), dtype="int8"))
def test_broadcast_operands(layer: ElementwiseCase) -> None:
    op = layer.op()
    assert op.output.shape == np.broadcast_shapes(op.input(0).shape, op.input(1).shape)
    assert len(layer.inputs()) == (1 if layer.constant else 2)
    assert op.input(1).constant == layer.constant


@pytest.mark.parametrize("limit", [1, 17, 127])
def test_weights_have_the_magnitudes_and_zeros_that_were_given(limit: int) -> None:
    plain = ConvCase(channels=(40, 40), weight_limit=limit)
    weights = plain.op().input(1).data
    assert weights is not None and np.abs(weights.astype(int)).max() == limit
    extreme = ConvCase(channels=(40, 40), weight_limit=limit, extreme=True, zeros=0.5)
    weights = extreme.op().input(1).data
    assert weights is not None and set(np.unique(weights)) == {-limit, 0, limit}
    assert 0.4 < np.mean(weights == 0) < 0.6
    assert set(np.unique(extreme.inputs()[0])) == {-128, 127}


def test_the_seed_decides_all_values() -> None:
    drawn = [ConvCase(channels=(4, 4), bias=True, seed=seed) for seed in (0, 0, 1)]
    graphs = [described(layer.graph()) for layer in drawn]
    assert graphs[0] == graphs[1] != graphs[2]
    for first, second in itertools.combinations(drawn, 2):
        equal = np.array_equal(first.inputs()[0], second.inputs()[0])
        assert equal == (first.seed == second.seed)


def test_sums_of_random_values_fill_the_output_and_saturate_at_a_small_scale() -> None:
    """``output_scale`` is in units of a scale at which int8 is filled, whatever the depth."""
    for channels in (4, 64, 500):
        layer = ConvCase(size=(8, 8), channels=(channels, 16), seed=1)
        (wide,) = run_reference(layer.graph(), layer.inputs())
        assert 20 < wide.std() < 120
        narrow = ConvCase(size=(8, 8), channels=(channels, 16), seed=1, output_scale=0.05)
        (clipped,) = run_reference(narrow.graph(), narrow.inputs())
        assert np.mean(np.isin(clipped, (-128, 127))) > 0.7


def test_what_an_earlier_failure_printed_draws_the_same_values() -> None:
    """A layer that was pasted into a test must not change: numpy draws its values here again."""
    layer = ConvCase(kind="CONV_2D", size=(2, 2), channels=(2, 2), kernel=(1, 1), bias=True, seed=3)
    _, weights, bias = (layer.op().input(position) for position in range(3))
    rng = np.random.default_rng(3)
    scales = rng.uniform(0.001, 0.02, 2).astype(np.float32)
    assert weights.quantization is not None and weights.data is not None and bias.data is not None
    assert np.array_equal(weights.quantization.scale, scales)
    assert np.array_equal(weights.data.reshape(-1), rng.integers(-127, 128, 4))
    assert np.array_equal(bias.data, rng.integers(-5000, 5000, 2))
    first = np.random.default_rng(4).integers(-128, 128, 8)
    assert np.array_equal(layer.inputs()[0].reshape(-1), first)
