"""Operators of plain numbers, and int8 functions, natively under the undefined-behaviour sanitizer.

Values are small ones and the ends of each type; the C is generated for four kinds of cores.
"""

from __future__ import annotations

import platform
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from covp.chip.cores import find_core
from covp.compilers.toolchain import UNDEFINED_BEHAVIOUR_FLAGS
from covp.graph.attributes import Mean
from covp.graph.graph import Graph, Op, Tensor
from covp.graph.ops import definition
from covp.graph.ops.along_axis import ArgMax, Cumulative
from covp.graph.ops.gather import Reduction, Scatter
from covp.graph.ops.generate import Generated
from covp.graph.ops.layout import ELEMENT_TYPES
from covp.graph.ops.normalization import LayerNormalization, LocalResponse, LpNormalization
from covp.graph.ops.placed import DynamicPad, DynamicSlice
from covp.graph.ops.pointwise import POINTWISE
from covp.graph.ops.quantized_unary import TABLES
from covp.graph.ops.reduction import REDUCTIONS
from covp.runtime.session import Session
from tests.codegen.test_pointwise import INTEGERS, drawn, every_layer
from tests.codegen.test_pointwise import layer as pointwise_layer
from tests.graph.test_quantized_pointwise import BINARY, binary, rows, unary

from .batch import run_batch
from .test_fuzz import is_right

CORES = [find_core(name) for name in ("cortex-m0plus", "cortex-m4f", "cortex-m7f", "rv32imc")]
on_host = pytest.mark.skipif(
    (sys.platform, platform.machine()) != ("linux", "x86_64"),
    reason="the host device needs Linux on x86-64",
)


@dataclass(frozen=True)
class Alone:
    """One operator with its inputs, as `run_batch` wants it."""

    op: Op
    values: list[Any]
    schedule: int = 0

    def graph(self) -> Graph:
        """The operator alone."""
        return Graph("layer", [t for t in self.op.inputs if t], self.op.outputs, [self.op])

    def inputs(self) -> list[Any]:
        """As given."""
        return self.values

    def __repr__(self) -> str:
        return f"{self.op.kind} {self.op.attributes} of {[v.dtype.name for v in self.values]}"


def pointwise(types: list[str]) -> list[Alone]:
    kinds = sorted({*POINTWISE} - {"CAST"})
    return [Alone(*found) for kind in kinds for found in every_layer(kind, types, 7)]


def casts(types: list[str]) -> list[Alone]:
    rng = np.random.default_rng(2)
    pairs = [(a, b) for a in types for b in types if a != b]
    values = [(drawn(rng, a, (50,)), b) for a, b in pairs]
    return [Alone(pointwise_layer("CAST", None, [x], b), [x]) for x, b in values]


def along_axes(types: list[str]) -> list[Alone]:
    rng = np.random.default_rng(3)
    found: list[Alone] = []
    rest: list[tuple[str, Any]] = [
        ("ARG_MAX", ArgMax(1)), ("ARG_MIN", ArgMax(2, last=True)),
        ("CUMSUM", Cumulative(1)), ("CUMPROD", Cumulative(2, exclusive=True, reverse=True)),
    ]  # fmt: skip
    for dtype in types:
        x = drawn(rng, dtype, (3, 4, 5))
        x = np.nan_to_num(x, nan=1.0, posinf=3, neginf=-3) if x.dtype.kind == "f" else x
        listed = [(k, Mean((0, 2), False)) for k, r in REDUCTIONS.items() if dtype in r.types]
        for kind, how in [*listed, *(rest if dtype != "bool" else [])]:
            result = np.dtype(np.int32) if kind.startswith("ARG") else x.dtype
            op = Op(kind, "layer", [Tensor("x", x.shape, x.dtype)], [Tensor("y", (), result)], how)
            op.output.shape = definition(kind).infer_shapes(op)[0]
            found.append(Alone(op, [x]))
    return found


def by_index(types: list[str]) -> list[Alone]:
    """Scatters and ranges; pads and slices with numbers of run time that are no axis."""
    rng = np.random.default_rng(6)
    far = np.iinfo(np.int32).max
    reductions: list[Reduction] = ["none", "add", "mul", "max", "min"]
    found: list[Alone] = []

    def add(kind: str, values: list[Any], how: Any) -> None:
        x = values[0]
        tensors: list[Tensor | None]
        tensors = [Tensor(f"x{n}", v.shape, v.dtype) for n, v in enumerate(values)]
        op = Op(kind, "layer", tensors, [Tensor("y", (), x.dtype)], how)
        (op.output.shape,) = definition(kind).infer_shapes(op)
        found.append(Alone(op, values))

    for dtype in types:
        x, updates = drawn(rng, dtype, (5, 4)), drawn(rng, dtype, (3, 4))
        elements = rng.integers(-5, 5, (3, 4)).astype(np.int32)
        for reduction in reductions if dtype != "bool" else reductions[:1]:
            add("SCATTER_ELEMENTS", [x, elements, updates], Scatter(0, reduction))
            add("SCATTER_ND", [x, elements[:, :1], updates], Scatter(0, reduction))
    for dtype in ("int16", "int32", "int64"):
        first, step = (np.array(getattr(np.iinfo(dtype), end), dtype) for end in ("max", "min"))
        add("RANGE", [first, step, step], Generated((5,)))  # the kernel reads no limit
    x, fill = drawn(rng, "int8", (5, 4)), drawn(rng, "int8", (1,))
    for axis in (-3, -1, 2, far, -far):
        numbers = [np.array([n], np.int32) for n in (1, axis, 2)]
        pads = np.array([2, 1], np.int32)
        add("DYNAMIC_PAD", [x, pads, fill, numbers[1]], DynamicPad((6, 7)))
        add("DYNAMIC_SLICE", [x, *numbers], DynamicSlice((2, 2)))
    return found


def normalizations() -> list[Alone]:
    x = np.random.default_rng(4).uniform(-4, 4, (6, 9)).astype(np.float32)
    listed: dict[str, Any] = {
        "HARDMAX": None,
        "L2_NORMALIZATION": None,
        "LAYER_NORMALIZATION": LayerNormalization(1),
        "LOCAL_RESPONSE_NORMALIZATION": LocalResponse(2, 1, 1.0, 0.5, 0.75),
        "LOG_SOFTMAX": None,
        "LP_NORMALIZATION": LpNormalization(1),
    }
    tensors = [Tensor(name, x.shape, x.dtype) for name in "xy"]
    return [Alone(Op(k, "layer", [tensors[0]], tensors[1:], a), [x]) for k, a in listed.items()]


def quantized() -> list[Alone]:
    rng = np.random.default_rng(5)
    made = [unary(kind, rng) for kind in TABLES] + [binary(kind, rng) for kind in BINARY * 3]
    made += [rows(kind, rng) for kind in ("L2_NORMALIZATION", "LOG_SOFTMAX") for _ in range(6)]
    return [Alone(graph.ops[0], inputs) for graph, inputs in made]


def under_the_sanitizer(cases: list[Any]) -> None:
    with Session("host", device="host", timeout=60) as session:
        for first in range(0, len(cases), 60):
            some = cases[first : first + 60]
            failures = run_batch(session, some, CORES, UNDEFINED_BEHAVIOUR_FLAGS, is_right)
            assert not failures, "\n".join(failures)


@pytest.mark.costly
@on_host
def test_plain_operators_have_no_undefined_behaviour() -> None:
    types = ["float32", "bool", "int8", "int64"]
    under_the_sanitizer(
        [*pointwise(types[2:]), *along_axes(types[2:]), *by_index(["int32", "uint16"])]
    )


@pytest.mark.costly
@on_host
def test_floats_and_bytes_have_no_undefined_behaviour() -> None:
    under_the_sanitizer([*normalizations(), *quantized(), *casts(["float32", "int8", "uint64"])])


@pytest.mark.slow
@on_host
def test_all_types_have_no_undefined_behaviour() -> None:
    types = ["float32", "bool", *INTEGERS]
    under_the_sanitizer(
        [*pointwise(types), *along_axes(types), *casts(types), *by_index(list(ELEMENT_TYPES))]
    )
