"""int8 functions of one and two elements: definitions against LiteRT, cores against them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from covp.codegen.generate import generate
from covp.errors import ModelError
from covp.graph.attributes import Elementwise
from covp.graph.graph import Graph, Op, Tensor
from covp.graph.ops.quantized_binary import COMPARISONS
from covp.graph.ops.quantized_unary import TABLES
from covp.graph.ops.unary import Gelu
from covp.graph.reference import run_reference
from covp.graph.tflite import read_tflite
from covp.graph.zoo.tflite_writer import write_tflite
from covp.runtime.session import Session
from covp.testing.quantizations import affine
from covp.testing.tensors import int8, plain

SINGLE = np.dtype(np.float32)
ROOTS = ("RSQRT", "SQRT")
BINARY = ("DIV", "MAXIMUM", "MINIMUM", "PRELU", "SQUARED_DIFFERENCE", *COMPARISONS)
PLATFORMS = ("cortex-m0plus", "riscv32", "cortex-m4")


def unary(kind: str, rng: np.random.Generator) -> tuple[Graph, list[Any]]:
    """Every byte that the function takes."""
    scales, points = 10 ** rng.uniform(-2.5, -0.3, 2), rng.integers(-128, 128, 2).tolist()
    if kind == "NEG":
        scales, points = np.full(2, scales[0]), [0, 0]
    x = np.arange(points[0] if kind in ROOTS else -128, 128).astype(np.int8)[None]
    source, out = (int8(n, x.shape, *q) for n, *q in zip("xy", scales, points, strict=True))
    attributes = Gelu(bool(rng.integers(2))) if kind == "GELU" else None
    op = Op(kind, "layer", [source], [out], attributes)
    return Graph("layer", [source], [out], [op]), [x]


def binary(kind: str, rng: np.random.Generator) -> tuple[Graph, list[Any]]:
    """Random bytes, the second operand broadcast; quotients that C defines."""
    scales, points = 10 ** rng.uniform(-2.5, -0.05, 3), rng.integers(-128, 128, 3).tolist()
    if kind in ("MAXIMUM", "MINIMUM"):
        scales, points = np.full(3, scales[0]), [points[0]] * 3
    x = rng.integers(-128, 128, (1, 5, 60)).astype(np.int8)
    y = rng.integers(-128, 128, (1, 1, 60) if kind != "PRELU" else (5, 1)).astype(np.int8)
    if kind == "DIV":
        y[y == points[1]] = 127 if points[1] != 127 else 126
        x[np.abs(x.astype(int) - points[0]) < 100] = -128 if points[0] > 0 else 127
    a, b = (int8(n, v.shape, *q) for n, v, *q in zip("ab", (x, y), scales, points, strict=False))
    out = int8("out", x.shape, scales[2], points[2])
    if kind in COMPARISONS:
        out = plain("out", x.shape, bool)
    op = Op(kind, "layer", [a, b], [out], Elementwise() if kind == "DIV" else None)
    return Graph("layer", [a, b], [out], [op]), [x, y]


@pytest.mark.parametrize("kind", sorted({*TABLES, "GELU"} - {"ELU"}) + sorted(BINARY))
def test_litert_computes_the_same(litert: Any, kind: str) -> None:
    """ELU is not among its reference kernels."""
    rng = np.random.default_rng(len(kind))
    for _ in range(12):
        graph, inputs = (binary if kind in BINARY else unary)(kind, rng)
        data = write_tflite(graph)
        (wanted,) = litert(data, inputs)
        (found,) = run_reference(read_tflite(data), inputs)
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.process
@pytest.mark.parametrize("kind", ["ABS", "ELU", "EXP", "LOG", "HARD_SWISH", *BINARY])
def test_cores_compute_the_same(kind: str) -> None:
    rng = np.random.default_rng(len(kind))
    graph, inputs = (binary if kind in BINARY else unary)(kind, rng)
    wanted = run_reference(graph, inputs)[0]
    for platform in PLATFORMS:
        with Session(platform) as session:
            found = session.load(generate(graph, platform)).run(*inputs)
        np.testing.assert_array_equal(found, wanted)


def test_elu_is_a_rounded_function() -> None:
    graph, (x,) = unary("ELU", np.random.default_rng(1))
    source, out = graph.inputs[0], graph.outputs[0]
    real = (x.astype(float) - source.zero_point) * source.scale
    steps = np.where(real < 0, np.expm1(real), real) / out.scale + out.zero_point
    found = run_reference(graph, [x])[0]
    assert np.abs(found - np.clip(steps, -128, 127)).max() < 0.5 + 1e-4
    assert len(np.unique(found)) > 10


@pytest.mark.process
def test_a_division_by_zero_is_an_end_of_the_range() -> None:
    a, b, y = int8("a", (3,), 0.1), int8("b", (1,), 0.1), int8("y", (3,), 0.1, 3)
    graph = Graph("layer", [a, b], [y], [Op("DIV", "layer", [a, b], [y], Elementwise())])
    inputs = [np.array([-7, 5, 0], np.int8), np.zeros(1, np.int8)]
    wanted = run_reference(graph, inputs)[0]
    assert wanted.tolist() == [-128, 127, 127]
    with Session("riscv32") as session:
        found = session.load(generate(graph, "riscv32")).run(*inputs)
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("kind", ["SIN", "POW", "SQUARE"])
def test_what_litert_does_not_have_is_refused(kind: str) -> None:
    x, y = int8("x", (4,), 0.1), int8("y", (4,), 0.1)
    inputs: list[Tensor | None] = [x, x] if kind == "POW" else [x]
    data = write_tflite(Graph("layer", [x], [y], [Op(kind, "layer", inputs, [y])]))
    with pytest.raises(ModelError, match=f"{kind} of quantized int8, which is not supported"):
        read_tflite(data)


def rows(kind: str, rng: np.random.Generator) -> tuple[Graph, list[Any]]:
    scale, point = float(10 ** rng.uniform(-2.5, -0.3)), int(rng.integers(-128, 128))
    shape = (6, int(rng.choice([1, 2, 10, 200])))
    x = rng.integers(-128, 128, shape)
    x[0], x[1] = point, np.clip(x[1], point - 2, point + 2)
    source = int8("x", shape, scale, point)
    out = int8("y", shape, *((1 / 128, 0) if kind == "L2_NORMALIZATION" else (1 / 16, 127)))
    op = Op(kind, "layer", [source], [out])
    return Graph("layer", [source], [out], [op]), [np.clip(x, -128, 127).astype(np.int8)]


@pytest.mark.parametrize("kind", ["L2_NORMALIZATION", "LOG_SOFTMAX"])
def test_rows_are_litert_s(litert: Any, kind: str) -> None:
    rng = np.random.default_rng(len(kind))
    for _ in range(40):
        graph, inputs = rows(kind, rng)
        data = write_tflite(graph)
        (wanted,) = litert(data, inputs)
        np.testing.assert_array_equal(run_reference(read_tflite(data), inputs)[0], wanted)


@pytest.mark.process
@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("kind", ["L2_NORMALIZATION", "LOG_SOFTMAX"])
def test_rows_on_cores(kind: str, platform: str) -> None:
    rng = np.random.default_rng(len(kind))
    with Session(platform) as session:
        for _ in range(3):
            graph, inputs = rows(kind, rng)
            found = session.load(generate(graph, platform)).run(*inputs)
            np.testing.assert_array_equal(found, run_reference(graph, inputs)[0])


@pytest.mark.process
@pytest.mark.parametrize("kind", ["EXP", "LOG", "RSQRT", "SQRT"])
def test_int16_is_litert_s_and_the_cores_compute_it(litert: Any, kind: str) -> None:
    rng = np.random.default_rng(3)
    low = 0 if kind in ROOTS else -32768
    x = rng.integers(low, 32768, (1, 300)).astype(np.int16)
    x[0, :2] = low, 32767
    for number in range(8):
        tensors = [Tensor(n, x.shape, x.dtype, affine(10 ** rng.uniform(-4.5, -3))) for n in "xy"]
        graph = Graph(
            "layer", tensors[:1], tensors[1:], [Op(kind, "layer", [*tensors[:1]], tensors[1:])]
        )
        data = write_tflite(graph)
        (wanted,) = litert(data, [x])
        np.testing.assert_array_equal(run_reference(read_tflite(data), [x])[0], wanted)
        if number < 2:
            platform = PLATFORMS[number]
            with Session(platform) as session:
                found = session.load(generate(graph, platform)).run(x)
            np.testing.assert_array_equal(found, wanted)
