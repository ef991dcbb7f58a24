"""Elementwise operators of plain numbers on the cores against their definitions in numpy.

The definitions are held against the official ONNX tests (tests/graph/onnx) and LiteRT.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from covp.graph.attributes import Elementwise
from covp.graph.equality import differences
from covp.graph.graph import Op, Tensor
from covp.graph.ops import definition
from covp.graph.ops.binary import BitShift, Mod
from covp.graph.ops.pointwise import POINTWISE
from covp.graph.ops.unary import FLOAT_FUNCTIONS, Gelu, IsInfinite, Parameters

PLATFORMS = ["cortex-m7", "riscv32"]
INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
ATTRIBUTES: dict[str, list[Any]] = {
    "BIT_SHIFT": [BitShift(True), BitShift(False)],
    "CELU": [Parameters(2.0)],
    "DIV": [None, Elementwise("relu6")],
    "ELU": [Parameters(0.7)],
    "GELU": [Gelu(), Gelu(approximate=True)],
    "HARD_SIGMOID": [Parameters(0.5, 0.6)],
    "IS_INF": [IsInfinite(), IsInfinite(negative=False), IsInfinite(positive=False)],
    "MOD": [Mod(), Mod(fmod=True)],
    "SELU": [Parameters(2.0, 3.0)],
    "SHRINK": [Parameters(1.5, 1.0)],
    "SWISH": [Parameters(1.3)],
    "THRESHOLDED_RELU": [Parameters(0.8)],
}
UNARY = {*FLOAT_FUNCTIONS, "ABS", "NEG", "SIGN", "SQUARE", "BITWISE_NOT", "LOGICAL_NOT"}
UNARY |= {"IS_NAN", "IS_INF"}
SPECIAL = np.array([0.0, -0.0, 1, -1, 0.5, 2.5, -3.5, 1e30, -1e30, np.inf, -np.inf, np.nan])


def drawn(rng: np.random.Generator, dtype: str, shape: tuple[int, ...]) -> Any:
    """Small numbers and the ends of the type."""
    kind = np.dtype(dtype).kind
    if kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if kind == "f":
        usual = rng.uniform(-4, 4, shape)
        return np.where(rng.random(shape) < 0.2, rng.choice(SPECIAL, shape), usual).astype(dtype)
    info = np.iinfo(dtype)
    small = rng.integers(0 if kind == "u" else -9, 10, shape).astype(dtype)
    ends = np.array([info.min, info.max, info.min + 1, 0], dtype)
    return np.where(rng.random(shape) < 0.3, rng.choice(ends, shape), small)


def agrees(run_layer: Any, platform: str, op: Op, values: list[Any]) -> None:
    """Shape and type of the output follow the definition's."""
    (wanted,) = definition(op.kind).reference(op, values)
    assert definition(op.kind).infer_shapes(op) == [wanted.shape]
    definition(op.kind).types(op)
    (found,) = run_layer(platform, op, *values)
    wrong = differences(found.reshape(wanted.shape), wanted)
    where = [v.reshape(-1)[wrong[:3] % v.size] for v in values]
    assert not len(wrong), (
        op.kind,
        op.attributes,
        where,
        found.flat[wrong[0]],
        wanted.flat[wrong[0]],
    )


def layer(kind: str, attributes: Any, values: list[Any], dtype: Any = None) -> Op:
    tensors: list[Any] = [Tensor(n, v.shape, v.dtype) for n, v in zip("abc", values, strict=False)]
    shape = np.broadcast_shapes(*(v.shape for v in values))
    to_bool = kind in POINTWISE and POINTWISE[kind].gives == "bool"
    gives = np.dtype(bool) if to_bool else values[-1].dtype
    output = Tensor("out", shape, np.dtype(dtype or gives))
    return Op(kind, "layer", tensors, [output], attributes)


def every_layer(kind: str, types: list[str], seed: int) -> Iterator[tuple[Op, list[Any]]]:
    """Layers with broadcasting, of each of the types that the kind takes, with their inputs."""
    rng = np.random.default_rng(seed)
    for dtype in (t for t in types if np.dtype(t).kind in POINTWISE[kind].takes):
        for attributes in ATTRIBUTES.get(kind, [None]):
            if dtype != "float32" and isinstance(attributes, Elementwise):
                continue
            values = [drawn(rng, dtype, (3, 1, 40))]
            if kind == "CLIP":
                values += [np.array(v).astype(dtype) for v in (2, 5)]
            elif kind not in UNARY:
                values.append(drawn(rng, dtype, (2, 1)))
            if kind == "SELECT_V2":
                values.insert(0, drawn(rng, "bool", (3, 1, 40)))
            yield layer(kind, attributes, values), values


KINDS = sorted({*POINTWISE} - {"CAST"})


@pytest.mark.slow
@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_in_every_type(run_layer: Any, kind: str, platform: str) -> None:
    for op, values in every_layer(kind, ["float32", "bool", *INTEGERS], 0):
        agrees(run_layer, platform, op, values)


@pytest.mark.costly
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind(run_layer: Any, kind: str) -> None:
    """float32 or bool, and one of the integers; one of the cores."""
    number = KINDS.index(kind)
    types = ["float32", "bool", INTEGERS[number % 8]]
    for op, values in every_layer(kind, types, number):
        agrees(run_layer, PLATFORMS[number % 2], op, values)


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("kind", ["ADD", "SUB", "MUL"])
def test_plain_integers_wrap(run_layer: Any, kind: str, platform: str) -> None:
    rng = np.random.default_rng(3)
    for dtype in ("int8", "uint16", "int64"):
        values = [drawn(rng, dtype, shape) for shape in ((3, 1, 40), (2, 1))]
        agrees(run_layer, platform, layer(kind, Elementwise(), values), values)


@pytest.mark.parametrize(("base", "exponent"), [
    ("float32", "int32"), ("int32", "float32"), ("int64", "int8"), ("float32", "uint8"),
])  # fmt: skip
def test_powers_of_other_types(run_layer: Any, base: str, exponent: str) -> None:
    values = [np.arange(-3, 7).astype(base), (np.arange(-3, 7) % 4).astype(exponent)]
    agrees(run_layer, "riscv32", layer("POW", None, values, base), values)


@pytest.mark.costly
@pytest.mark.parametrize("source", ["float32", "bool", "int8", "uint16", "int64"])
def test_casts(run_layer: Any, source: str) -> None:
    """Out of range: floats saturate, integers wrap."""
    rng = np.random.default_rng(1)
    values = [drawn(rng, source, (70,)) * np.array(77, source)]
    for target in ("float32", "bool", "int8", "uint8", "int32", "uint32", "int64", "uint64"):
        if target != source:
            agrees(run_layer, "cortex-m7", layer("CAST", None, values, target), values)


@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3)])
def test_scalars_and_nothing(run_layer: Any, shape: tuple[int, ...]) -> None:
    values = [np.full(shape, 3, np.int16), np.full((1,) * len(shape), 5, np.int16)]
    agrees(run_layer, "riscv32", layer("SQUARED_DIFFERENCE", None, values), values)
