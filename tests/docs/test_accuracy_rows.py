"""docs/accuracy.md, "Where they differ": what is measured beside LiteRT is what the page says."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from covp.graph.attributes import Elementwise, FullyConnected
from covp.graph.reference import run_reference
from covp.graph.tflite import read_tflite
from covp.graph.zoo.builder import GraphBuilder
from covp.graph.zoo.tflite_writer import write_tflite
from covp.testing import ConvCase

PAGE = Path(__file__).parents[2] / "docs" / "accuracy.md"
Pair = tuple[bytes, list[Any]]
SEEDS = range(25)


def layers(kind: str, dtype: Literal["int8", "int16", "float32"], **fields: Any) -> Iterator[Pair]:
    """Models of one layer with weights and a bias, and their inputs."""
    channels = (24, 9) if kind == "FULLY_CONNECTED" else (6, 6)
    for seed in SEEDS:
        case = ConvCase(
            kind, dtype=dtype, bias=True, channels=channels, size=(6, 6), kernel=(3, 3),
            seed=seed, **fields,
        )  # fmt: skip
        yield write_tflite(case.graph()), case.inputs()


def convolutions_of_int16() -> Iterator[Pair]:
    yield from layers("CONV_2D", "int16")
    yield from layers("CONV_2D", "int16", narrow_bias=True)
    yield from layers("DEPTHWISE_CONV_2D", "int16")


def products_of_int16() -> Iterator[Pair]:
    for seed in SEEDS:
        rng, builder = np.random.default_rng(seed), GraphBuilder("product")
        x, y = (builder.input((4000,), np.int16, float(rng.uniform(0.001, 0.1))) for _ in "xy")
        scale = x.scale * y.scale * 20_000
        product = builder.add("MUL", x, y, attributes=Elementwise(), scale=scale)
        values = [rng.integers(-32768, 32768, 4000).astype(np.int16) for _ in "xy"]
        yield write_tflite(builder.graph(product)), values


def float_layers_of_int8_weights() -> Iterator[Pair]:
    for seed in SEEDS:
        rng, builder = np.random.default_rng(seed), GraphBuilder("dynamic")
        depth = int(2 ** rng.uniform(3, 10))
        x = builder.input((4, depth), np.float32)
        w = builder.constant(rng.integers(-127, 128, (16, depth)).astype(np.int8), 0.01)
        b = builder.constant(rng.normal(0, 1, 16).astype(np.float32))
        y = builder.add("FULLY_CONNECTED", x, w, b, attributes=FullyConnected())
        yield write_tflite(builder.graph(y)), [rng.normal(0, 1, (4, depth)).astype(np.float32)]


MEASURED: dict[str, Callable[[], Iterator[Pair]]] = {
    r"FULLY_CONNECTED \| int8, int16 \| 1 step": lambda: layers("FULLY_CONNECTED", "int8"),
    r"bias is int64 \(([\d.]+) to ([\d.]+) %": lambda: layers("FULLY_CONNECTED", "int16"),
    r"int32 LiteRT 2.3 rounds twice as well \(([\d.]+) to ([\d.]+) %": lambda: layers(
        "FULLY_CONNECTED", "int16", narrow_bias=True
    ),
    "int16 CONV_2D and DEPTHWISE_CONV_2D are the same": convolutions_of_int16,
    r"LiteRT in single: 1 of ([\d,]+) values": products_of_int16,
    r"quantizes activations: ([\d.]+) to ([\d.]+) % of the results' range": (
        float_layers_of_int8_weights
    ),
}
"""What the page says, with its figures, of which models and inputs."""


def stated(sentence: str) -> tuple[float, float]:
    """The bounds that a sentence of the page states, as shares; no more than all."""
    found = re.search(sentence, PAGE.read_text(encoding="utf-8"))
    assert found is not None, sentence
    numbers = [float(number.replace(",", "")) for number in found.groups()]
    if len(numbers) == 2:
        return numbers[0] / 100, numbers[1] / 100
    return 0, 3 / numbers[0] if numbers else 1


@pytest.mark.parametrize("sentence", MEASURED)
def test_a_row_is_what_is_measured(litert: Any, sentence: str) -> None:
    (low, high), pairs = stated(sentence), []
    for data, values in MEASURED[sentence]():
        pairs.append((run_reference(read_tflite(data), values)[0], litert(data, values)[0]))
    if "range" in sentence:
        off = [float(np.abs(a - b).max() / (a.max() - a.min())) for a, b in pairs]
        assert low <= min(off) and max(off) <= high, (min(off), max(off))
        return
    steps = np.concatenate([np.abs(a.astype(int) - b).ravel() for a, b in pairs])
    assert steps.max() <= (0 if "the same" in sentence else 1)
    assert low <= (steps > 0).mean() <= high, (steps > 0).mean()
