"""CONTRIBUTING's first walk: an operator is one declaration, examples/soft_threshold.py."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given

from covp.evaluation import build, run
from covp.graph import batches
from covp.graph.attributes import Conv2D, Padding
from covp.graph.graph import Graph
from covp.graph.passes.streaming import make_streaming_graph
from covp.graph.user_operators import unregister_operator
from covp.graph.zoo.builder import GraphBuilder
from covp.testing import OperatorCase, layers
from tests.graph.passes.test_streaming import compare

FILE = Path(__file__).parents[2] / "examples" / "soft_threshold.py"
CORES = ("riscv32", "riscv32f", "cortex-m0plus", "cortex-m7")

pytestmark = pytest.mark.skipif(not FILE.is_file(), reason="not in a checkout")


@pytest.fixture(scope="module", autouse=True)
def declared() -> Iterator[ModuleType]:
    spec = importlib.util.spec_from_file_location("soft_threshold", FILE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    unregister_operator("SoftThreshold")


def network(rows: int) -> Graph:
    """A convolution over time on either side of the operator."""
    rng = np.random.default_rng(3)
    builder = GraphBuilder("sparse")

    def weights(*shape: int) -> np.ndarray:
        return rng.integers(-90, 90, shape, np.int8)

    x = builder.input((1, rows, 1, 4), np.int8, 0.05, 3)
    for inputs, outputs in ((4, 6), (6, 2)):
        w = builder.constant(weights(outputs, 3, 1, inputs), scale=0.02)
        x = builder.add("CONV_2D", x, w, attributes=Conv2D((1, 1), Padding()), scale=0.1)
        if outputs == 6:
            x = builder.add("SoftThreshold", x, scale=0.08, zero_point=-7)
    return builder.graph(x)


def test_the_declaration_is_short() -> None:
    assert FILE.read_text(encoding="utf-8").count("\n") <= 60


@pytest.mark.process
@pytest.mark.parametrize("platform", CORES)
def test_it_is_bit_exact_on_cores(platform: str) -> None:
    result = run(build(network(12), platform))
    assert result.matches_reference and result.check.layers == 3


def test_it_streams() -> None:
    stream = compare(network(12), 1, 1, windows=40)
    assert stream.outputs[0].shape == (1, 1, 1, 2) and len(stream.states) == 2
    assert make_streaming_graph(network(12)).streaming is not None


def test_it_takes_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = network(12)
    (op,) = (op for op in graph.ops if op.kind == "SoftThreshold")
    assert batches._takes_many(op, [True])
    rng = np.random.default_rng(1)
    samples = rng.integers(-128, 128, (5, 1, 12, 1, 4), np.int8)
    together, _ = batches.run_batch(graph, [samples])
    alone = [batches.run_batch(graph, [samples[i : i + 1]])[0][0] for i in range(5)]
    assert np.array_equal(together[0], np.concatenate(alone))


@given(layers.functions("SoftThreshold", dtype="int8"))
def test_it_is_drawn(layer: OperatorCase) -> None:
    """Where it is no threshold it only requantizes, and it is odd about the zero points."""
    op, (x,) = layer.op(), layer.inputs()
    (found,) = [np.asarray(value) for value in reference(op, [x])]
    real = (x.astype(float) - op.input(0).zero_point) * op.input(0).scale
    inside = np.abs(real) <= 0.5
    assert np.all(found[inside] == np.clip(op.output.zero_point, -128, 127))
    assert found.shape == x.shape and found.dtype == np.int8


def reference(op: object, values: list[np.ndarray]) -> list[np.ndarray]:
    from covp.graph.ops.definition import OPS

    return OPS["SoftThreshold"].reference(op, values)  # type: ignore[arg-type]
