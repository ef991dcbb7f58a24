"""Many samples at once have the bits of single runs, whatever the operators and their types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from covp.graph import batches
from covp.graph.batches import run_batch
from covp.graph.graph import Graph, Op, Tensor
from covp.graph.index_map import elementwise, everything, rows_of
from covp.graph.models import load_model
from covp.graph.passes.streaming import make_streaming_graph
from covp.graph.random_inputs import random_inputs
from covp.graph.reference import ReferenceExecutor
from covp.graph.user_operators import UserOperator, register_operator, unregister_operator
from covp.graph.zoo.builder import GraphBuilder
from covp.testing import layers
from tests.graph import every_kind, test_index_maps

Array = NDArray[Any]


def compare(graph: Graph, samples: Sequence[Sequence[Array]], steps: int = 1) -> None:
    """All at once beside one by one; each sample is in turn the input of each step."""
    executors = [ReferenceExecutor(graph) for _ in samples]
    states: dict[str, Array] = {}
    for step in range(steps):
        given_now = [samples[(n + step) % len(samples)] for n in range(len(samples))]
        stacked = [np.stack(arrays) for arrays in zip(*given_now, strict=True)]
        found, states = run_batch(graph, stacked, states)
        for n, executor in enumerate(executors):
            wanted = executor.run(*given_now[n])
            pairs = zip(graph.outputs, found, wanted, strict=True)
            for tensor, array, single in pairs:
                assert array.shape == (len(samples), *tensor.shape)
                assert array.dtype == single.dtype == tensor.dtype
                assert array[n].tobytes() == single.tobytes(), (step, n, tensor.name)
            for name, value in executor.states.items():
                assert states[name][n].tobytes() == value.tobytes()


@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow])
@given(layers.layers(), st.integers(1, 5), st.integers(0, 1000))
def test_operators(case: Any, samples: int, seed: int) -> None:
    graph = case.graph()
    inputs = [case.inputs(), *(random_inputs(graph.inputs, seed + n) for n in range(samples))]
    compare(graph, inputs)


@pytest.mark.parametrize("name", ["resnet", "kws", "vww", "toycar", "sww", "kws_float", "rnnoise"])
def test_models(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = load_model(name)
    inputs = [random_inputs(graph.inputs, seed) for seed in range(5)]
    compare(graph, inputs)
    monkeypatch.setattr(batches, "_CACHED", 1)  # two at a time, and one that is left
    compare(graph, inputs)


def test_states_are_those_of_each_sample() -> None:
    stream = make_streaming_graph(load_model("sww"), 2)
    assert stream.states
    compare(stream, [random_inputs(stream.inputs, seed) for seed in range(4)], steps=6)


def test_what_no_input_reaches_is_the_same_for_all() -> None:
    builder = GraphBuilder("constant")
    x = builder.input((2, 3), scale=0.5)
    constant = builder.constant(np.arange(6, dtype=np.int8).reshape(2, 3), 0.5)
    graph = builder.graph(builder.add("RELU", x), builder.add("RELU", constant))
    compare(graph, [random_inputs(graph.inputs, seed) for seed in range(3)])


@pytest.mark.costly
def test_layers_of_every_kind() -> None:
    """A call of several samples has the bits of calls of one, where the map says that it may."""
    taken = set()
    for op in every_kind.layers():
        runtime = [t is not None and t.data is None for t in op.inputs]
        first_only = [is_each and n == 0 for n, is_each in enumerate(runtime)]
        for is_each in (runtime, first_only):
            if any(is_each) and batches._takes_many(op, is_each):
                widened_is_single(op, is_each)
                taken.add(op.kind)
    assert len(taken) >= 115


def widened_is_single(op: Op, is_each: Sequence[bool], samples: int = 3) -> None:
    each = [test_index_maps.drawn(op, seed) for seed in range(samples)]
    arguments = [
        np.concatenate([values[n] for values in each]) if varies else each[0][n]
        for n, varies in enumerate(is_each)
    ]
    found = test_index_maps.run(batches._widen(op, is_each, samples), arguments)
    for number, values in enumerate(each):
        given_now = [
            v if varies else first
            for v, varies, first in zip(values, is_each, each[0], strict=True)
        ]
        for many, single in zip(found, test_index_maps.run(op, given_now), strict=True):
            own = many.reshape(samples, *single.shape)[number]
            assert (many.dtype, own.tobytes()) == (single.dtype, single.tobytes()), op


def test_a_map_of_a_users_operator_takes_many() -> None:
    def both(reads: Any) -> bool:
        operator = UserOperator(
            "DOUBLED", lambda op, values: [np.asarray(values[0]) * 2], reads=reads
        )
        register_operator(operator)
        tensors = (Tensor(name, (1, 4), np.dtype(np.int32)) for name in "xy")
        x, y = tensors
        op = Op("DOUBLED", "doubled", [x], [y])
        took = batches._takes_many(op, [True])
        graph = Graph("doubled", [x], [y], [op])
        compare(graph, [random_inputs(graph.inputs, seed) for seed in range(3)])
        unregister_operator("DOUBLED")
        return took

    assert both(elementwise)
    assert both(lambda op: rows_of(op, -1))
    assert not both(lambda op: rows_of(op, 0))
    assert not both(everything)
