"""int16 activations and int4 weights at extremes, under the undefined-behaviour sanitizer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from covp.codegen.layer import KernelRequest, schedules
from covp.graph.attributes import LeakyRelu, Mean
from covp.graph.graph import Graph
from covp.graph.ops.matmul import BatchMatMul
from covp.graph.zoo.builder import single_op_graph
from covp.testing import (
    ConvCase,
    ElementwiseCase,
    OperatorCase,
    PoolCase,
    SoftmaxCase,
    layers,
    tensors,
)

from .test_plain_operators import CORES, Alone, on_host, under_the_sanitizer

CONTENTS: tuple[Any, ...] = ("random", "lowest", "highest", "extreme")


class Layer(Alone):
    """An operator whose other inputs are constants."""

    def graph(self) -> Graph:
        """The operator alone."""
        return Graph("layer", [self.op.input(0)], self.op.outputs, [self.op])


def convolutions(bits: int | None) -> list[Alone]:
    """Some shapes of each kind with all of their schedules that differ in tile or unroll."""
    found: list[Alone] = []
    shapes: list[dict[str, Any]] = [
        {"size": (5, 6), "channels": (3, 5), "kernel": (3, 3), "same": True},
        {"size": (4, 4), "channels": (8, 8), "kernel": (1, 1)},
        {"size": (7, 7), "channels": (4, 4), "kernel": (5, 5), "stride": (2, 2)},
    ]
    for kind in layers.CONVOLUTIONS:
        for shape in [{"channels": (37, 7)}, {"channels": (1501, 3)}] if kind[0] == "F" else shapes:
            for largest in (False, True):
                case = ConvCase(kind, bias=True, seed=len(found), largest=largest, **shape)
                case = replace(case, dtype="int16") if bits is None else case
                found += _with_schedules(case, bits)
    return found


def _with_schedules(case: ConvCase, bits: int | None) -> list[Alone]:
    op = case.op()
    if bits is not None:
        rng = np.random.default_rng(case.seed)
        op.input(1).data = rng.integers(-8, 8, op.input(1).shape).astype(np.int8)
        op.input(1).bits = bits
    inputs = case.inputs() if bits is None else [tensors.filled(op.input(0), 1, "extreme")]
    counts = [len(schedules(KernelRequest(op, core, "layer"))) for core in CORES]
    return [Layer(op, inputs, 11 * n) for n in range(min(max(counts) // 11 + 1, 2))]


def functions() -> list[Alone]:
    cases: list[Any] = [
        ElementwiseCase(kind, (40,), (0, 0, 0), scales, "relu6", seed, 0, "int16", content=content)
        for kind in layers.ELEMENTWISE
        for scales in ((0.05, 0.05, 0.1), (0.9, 0.01, 0.002))
        for seed, content in enumerate(CONTENTS)
    ]
    cases += [
        PoolCase(kind, (5, 5), 3, (3, 3), (1, 1), True, dtype="int16", content=content)
        for kind in layers.POOLS
        for content in CONTENTS
    ]
    cases += [SoftmaxCase(3, 9, scale, dtype="int16") for scale in (0.01, 30.0, 900.0)]
    for kind in ("LOGISTIC", "TANH", "RELU", "RELU6", "LEAKY_RELU", "ABS"):
        how = LeakyRelu(-0.7) if kind == "LEAKY_RELU" else None
        out = 2.0**-15 if kind in ("LOGISTIC", "TANH") else 0.003
        cases += [OperatorCase(kind, (50,), how, "int16", s, 0, None, out) for s in (2.0**-11, 2.0)]
    for dtype in ("int8", "int16", "int32"):
        cases.append(OperatorCase("QUANTIZE", (50,), None, "int16", 0.5, 0, dtype, 1e-6))
    cases.append(OperatorCase("MEAN", (2, 70, 3), Mean((1,), False), "int16", 0.1, 0, None, 0.001))
    makers = [Layer if isinstance(case, OperatorCase) else Alone for case in cases]
    return [make(case.op(), case.inputs()) for make, case in zip(makers, cases, strict=True)]


def products() -> list[Alone]:
    x, y = (tensors.int16(n, s, 0.01) for n, s in (("x", (2, 5, 33)), ("y", (33, 6))))
    op = single_op_graph("BATCH_MATMUL", x, y, attributes=BatchMatMul(), scale=20.0).ops[0]
    return [Alone(op, [tensors.filled(t, 1, content) for t in (x, y)]) for content in CONTENTS]


@pytest.mark.slow
@on_host
def test_int16_has_no_undefined_behaviour() -> None:
    under_the_sanitizer([*convolutions(None), *functions(), *products()])


@pytest.mark.costly
@on_host
def test_int4_has_no_undefined_behaviour() -> None:
    under_the_sanitizer(convolutions(4))
