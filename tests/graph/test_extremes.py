"""TFLite's operators of floats on NaN, infinities, subnormal and the largest numbers: the reference
and cores against LiteRT. What differs, and why, stands at each exception (docs/accuracy.md).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from covp.graph.attributes import Elementwise, LeakyRelu, Mean, Padding, Pool2D, Softmax
from covp.graph.graph import Graph
from covp.graph.ops.unary import Gelu
from covp.graph.tflite import read_tflite
from covp.graph.zoo.builder import GraphBuilder
from covp.graph.zoo.tflite_writer import write_tflite
from tests.extremes import FLUSHED, LEFT, PAIRS, RIGHT, VALUES, Array, assert_equal, results

PLATFORMS = ["riscv32", "cortex-m4"]
MOST = np.finfo(np.float32).max
NEAR = {
    **dict.fromkeys(("ATAN2", "DIV", "L2_NORMALIZATION"), FLUSHED),
    "LOGISTIC": FLUSHED,  # 0 below -88
    "LOG_SOFTMAX": 1e-7,  # a difference of logarithms
}
"""What results may differ by; of other operators nothing but the last digits."""
Kinds = dict[str, dict[str, Any]]
ONE: Kinds = {
    **{kind: {} for kind in (
        "ABS", "COS", "EXP", "FLOOR", "HARD_SWISH", "LOG", "LOGISTIC", "NEG", "RELU", "RELU6",
        "RELU_0_TO_1", "RELU_N1_TO_1", "RSQRT", "SIGN", "SIN", "SQRT", "SQUARE", "TANH",
    )},
    "GELU": {"attributes": Gelu()},
    "LEAKY_RELU": {"attributes": LeakyRelu(0.1)},
}  # fmt: skip
TWO: Kinds = {
    **{kind: {} for kind in ("ATAN2", "FLOOR_MOD", "POW", "PRELU", "SQUARED_DIFFERENCE")},
    **{kind: {"dtype": bool} for kind in (
        "EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL", "NOT_EQUAL",
    )},
    **{kind: {"attributes": Elementwise()} for kind in ("DIV", "SUB")},
    "ADD": {"attributes": Elementwise("relu6")},
    "MUL": {"attributes": Elementwise("relu_n1_to_1")},
}  # fmt: skip
ALONG_ROWS = {"attributes": Mean((1,), False)}
ROWS: Kinds = {
    **dict.fromkeys(("MEAN", "SUM", "REDUCE_PROD"), ALONG_ROWS),
    "SOFTMAX": {"attributes": Softmax(1.0)},
    "LOG_SOFTMAX": {},
    "L2_NORMALIZATION": {},
}
WINDOW = {"attributes": Pool2D((1, 2), (1, 2), Padding())}
POOLS: Kinds = {"AVERAGE_POOL_2D": WINDOW, "MAX_POOL_2D": WINDOW}


def network(kinds: Kinds, values: list[Array]) -> Graph:
    builder = GraphBuilder("extremes")
    inputs = [builder.input(value.shape, "float32") for value in values]
    return builder.graph(*(builder.add(kind, *inputs, **how) for kind, how in kinds.items()))


@pytest.mark.process
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize(
    ("kinds", "values"),
    [
        (ONE, [VALUES[None]]),
        (TWO, [LEFT.reshape(1, 1, 1, -1), RIGHT.reshape(1, 1, 1, -1)]),
        (ROWS, [PAIRS]),
        (POOLS, [PAIRS.reshape(-1, 1, 2, 1)]),
    ],
    ids=["one", "two", "rows", "pools"],
)
def test_extremes(litert: Any, kinds: Kinds, values: list[Array], platform: str) -> None:
    data = write_tflite(network(kinds, values))
    wanted = litert(data, values)
    for outputs in results(read_tflite(data), values, platform):
        for kind, ours, theirs in zip(kinds, outputs, wanted, strict=True):
            if kind in (*POOLS, "DIV", "SUB"):
                # LiteRT's clamp of no activation ends at the largest number
                ours, theirs = (np.clip(x, -MOST, MOST) for x in (ours, theirs))
            if kind == "HARD_SWISH":
                # LiteRT multiplies by 6 before it divides by 6, which overflows
                ours, theirs = (np.where(values[0] > MOST / 6, 0, x) for x in (ours, theirs))
            assert_equal(ours, theirs, kind, NEAR.get(kind, 0))


@pytest.mark.process
@pytest.mark.parametrize("platform", PLATFORMS)
def test_the_largest_of_numbers_and_nan(litert: Any, platform: str) -> None:
    """A NaN does not count. LiteRT begins with the ends of float32, which is what it leaves."""
    kinds: Kinds = {"REDUCE_MAX": ALONG_ROWS, "REDUCE_MIN": ALONG_ROWS}
    data = write_tflite(network(kinds, [PAIRS]))
    wanted = litert(data, [PAIRS])
    for outputs in results(read_tflite(data), [PAIRS], platform):
        for ours, theirs in zip(outputs, wanted, strict=True):
            assert_equal(np.clip(ours, -MOST, MOST), np.clip(theirs, -MOST, MOST))


@pytest.mark.process
@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16"])
def test_ties_of_quantize(litert: Any, dtype: str, platform: str) -> None:
    """Every tie of a scale and both numbers next to it; 0.49999997 is less than half a step."""
    steps = (np.arange(-300, 300) + 0.5).astype(np.float32)
    for scale, zero_point in ((1.0, 0), (0.5, 3), (0.1, -128), (3.7, 0)):
        ties = steps * np.float32(scale)
        near = [np.nextafter(ties, np.float32(end)) for end in (-np.inf, np.inf)]
        x = np.concatenate([ties, *near, VALUES[np.abs(VALUES) < 1e9]])[None]
        builder = GraphBuilder("quantize")
        point = {"int8": zero_point, "uint8": abs(zero_point), "int16": 0}[dtype]
        source = builder.input(x.shape, "float32")
        graph = builder.graph(
            builder.add("QUANTIZE", source, dtype=dtype, scale=scale, zero_point=point)
        )
        data = write_tflite(graph)
        (wanted,) = litert(data, [x])
        for (ours,) in results(read_tflite(data), [x], platform):
            np.testing.assert_array_equal(ours, wanted)
