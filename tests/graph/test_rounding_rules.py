"""Rules for what LiteRT computes otherwise: they allow what it gives, and no more."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from covp.graph.attributes import Concatenation, Elementwise, FullyConnected, Mean
from covp.graph.deviations import Deviation, deviations
from covp.graph.graph import Graph, Op, Tensor
from covp.graph.tflite import read_tflite
from covp.graph.zoo.builder import GraphBuilder
from covp.graph.zoo.tflite_writer import write_tflite
from covp.testing.tensors import int8

Array = NDArray[Any]
Litert = Callable[[bytes, list[Array]], list[Array]]
DRAWS = 60


def summed(rng: np.random.Generator) -> tuple[Graph, list[Array]]:
    """A SUM of few and many bytes, near its zero point and far from it."""
    count, scale = int(rng.choice([1, 2, 4, 16, 200])), float(10 ** rng.uniform(-3, -0.5))
    zero, end = (int(value) for value in rng.integers(-128, 128, 2))
    x = rng.integers(-128, 128, (40, count)).astype(np.int8)
    if rng.random() < 0.5:
        x = np.clip(rng.integers(-5, 6, x.shape) + zero, -128, 127).astype(np.int8)
    same = rng.random() < 0.25
    source = int8("x", x.shape, scale, zero)
    target = int8("y", (40, 1), scale if same else scale * 10 ** rng.uniform(-1, 2), end)
    axes = Tensor("axes", (1,), np.dtype(np.int32), None, np.array([1], np.int32))
    op = Op("SUM", "layer", [source, axes], [target], Mean((1,), True))
    return Graph("g", [source], [target], [op]), [x]


def divided(rng: np.random.Generator) -> tuple[Graph, list[Array]]:
    """A DIV without a divisor of zero, often of quotients that are small in steps."""
    tensors = []
    for name, low in (("a", -3), ("b", -3), ("y", -4)):
        zero = int(rng.integers(-127, 128))
        tensors.append(int8(name, (1, 500), float(10 ** rng.uniform(low, 0.5)), zero))
    inputs = [rng.integers(-128, 128, (1, 500)).astype(np.int8) for _ in "ab"]
    inputs[1][inputs[1] == tensors[1].zero_point] = -128
    op = Op("DIV", "layer", [*tensors[:2]], tensors[2:], Elementwise())
    return Graph("g", tensors[:2], tensors[2:], [op]), inputs


def beyond(rng: np.random.Generator) -> tuple[Graph, list[Array]]:
    """A FULLY_CONNECTED of int16 whose int64 biases are up to 2**40."""
    b = GraphBuilder("wide")
    x = b.input((1, 8), dtype=np.int16, scale=0.001)
    weights = b.constant(rng.integers(-127, 128, (6, 8)).astype(np.int8), 0.01)
    bias = (rng.uniform(-1, 1, 6) * 2.0 ** rng.integers(33, 41)).astype(np.int64)
    layer = FullyConnected(activation="relu" if rng.random() < 0.5 else "none")
    operands = (weights, b.constant(bias, 0.01 * np.float32(0.001)))
    y = b.add("FULLY_CONNECTED", x, *operands, attributes=layer, scale=0.0001)
    graph = read_tflite(write_tflite(b.graph(y)))
    return graph, [rng.integers(-32768, 32768, (1, 8)).astype(np.int16)]


def found(graph: Graph, inputs: list[Array], result: Array) -> list[Deviation]:
    values = {t.name: value for t, value in zip(graph.inputs, inputs, strict=True)}
    return list(deviations(graph, graph, values | {graph.outputs[0].name: result}, "LiteRT"))


def drawn(make: Callable[..., tuple[Graph, list[Array]]]) -> Iterator[tuple[Graph, list[Array]]]:
    rng = np.random.default_rng(1)
    return (make(rng) for _ in range(DRAWS))


@pytest.mark.parametrize(
    ("make", "name"),
    [(summed, "sums of bytes"), (divided, "division"), (beyond, "beyond 32 bits")],
)
def test_a_rule_allows_what_litert_gives(litert: Litert, make: Any, name: str) -> None:
    all_found = []
    for graph, inputs in drawn(make):
        (result,) = litert(write_tflite(graph), inputs)
        all_found += found(graph, inputs, result)
    all_found = [each for each in all_found if each.steps > 1 or make is not beyond]
    assert all_found and {each.rule and each.rule.name for each in all_found} == {name}
    assert max(each.steps for each in all_found) > 100


@pytest.mark.parametrize("make", [summed, divided, beyond])
def test_a_rule_allows_no_more(litert: Litert, make: Any) -> None:
    """Three steps from LiteRT are too many, but for quotients that covp rounds to zero."""
    wrong = 0
    for graph, inputs in drawn(make):
        (result,) = litert(write_tflite(graph), inputs)
        moved = np.where(result < 0, result + 3, result - 3).astype(result.dtype)
        for each in found(graph, inputs, moved):
            assert each.rule is None or make is divided
            wrong += each.rule is None
    assert wrong > DRAWS // 4


def test_a_concatenation_of_other_scales_has_the_raw_bytes_or_covp_s() -> None:
    """LiteRT 2.3 refuses it; others were seen to copy."""
    parts: list[Tensor] = [int8("a", (2, 3), 0.1, 4), int8("b", (2, 3), 0.3, -7)]
    target = int8("y", (2, 6), 0.2)
    op = Op("CONCATENATION", "layer", [*parts], [target], Concatenation(1))
    graph = Graph("g", parts, [target], [op])
    inputs = [np.arange(6, dtype=np.int8).reshape(2, 3) * k for k in (9, -11)]
    raw = np.concatenate(inputs, axis=1)
    (each,) = found(graph, inputs, raw)
    assert each.rule is not None and each.rule.name == "raw bytes"
    raw[0, 0] += 1
    (each,) = found(graph, inputs, raw)
    assert each.rule is None
