"""`Arithmetic`: one rule an operator, decided in few places."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import covp
from covp.graph.arithmetic import INT8, Arithmetic, ArithmeticPattern, Scaling, whose
from covp.graph.graph import Graph, Op, Rounding, Tensor
from covp.graph.ops import OPS
from covp.testing.tensors import int8, plain

DECIDES = re.compile(
    r"^(?!\s*assert ).*(\.(rule|library) (==|!=|in|not in) |\.rounding\.(offset|unfused|by_columns)"
    r"|factors is (not )?None|isinstance\([^)]*Requantizer)",
    re.M,
)
"""A line that chooses by the rule of rounding."""
HALF_EVEN = Rounding("onnxruntime")


def tensor(name: str, dtype: str = "int8", scale: float | None = 0.5) -> Tensor:
    found = int8(name, (1, 4), scale or 1.0, 0)
    found.dtype = np.dtype(dtype)
    if scale is None:
        found.quantization = None
    return found


def layer(kind: str, *inputs: Tensor, rounding: Rounding = HALF_EVEN) -> Op:
    return Op(kind, "layer", list(inputs), [tensor("y", inputs[0].dtype.name)], rounding=rounding)


def test_few_files_decide_the_rule() -> None:
    root = Path(covp.__file__).parent
    texts = {path: path.read_text(encoding="utf-8") for path in root.rglob("*.py")}
    found = {str(path.relative_to(root)) for path, text in texts.items() if DECIDES.search(text)}
    assert len(found) <= 5, f"choose in covp/graph/arithmetic.py instead: {sorted(found)}"


@pytest.mark.parametrize(
    "line",
    [
        'if op.rounding.library == "onnxruntime":',
        'if arithmetic.rule in ("tflm", "wraps"):',
        "if problem.factors is not None:",
        "wide = isinstance(self.requantizer, ReducedRequantizer)",
    ],
)
def test_a_decision_is_seen(line: str) -> None:
    assert DECIDES.search(line)


@pytest.mark.parametrize(
    ("op", "rule"),
    [
        (layer("ADD", tensor("a"), rounding=Rounding()), "tflm"),
        (layer("ADD", tensor("a")), "half even"),
        (layer("CONV_2D", tensor("a", "int16"), tensor("w"), rounding=Rounding()), "reduced"),
        (
            layer(
                "CONV_2D",
                *(tensor("a", "int16"), tensor("w"), tensor("b", "int32")),
                rounding=Rounding(),
            ),
            "tflm",
        ),
        (layer("ADD", tensor("a", "int16"), rounding=Rounding()), "tflm"),
        (layer("ADD", tensor("a", "int16"), tensor("b", "int16"), rounding=Rounding()), "tflm"),
        (Op("ADD", "layer", [plain("x", (4,))], [plain("y", (4,))]), "float"),
        (Op("ADD", "layer", [tensor("x", scale=None)], [tensor("y", scale=None)]), "wraps"),
    ],
)
def test_the_rule_of_an_operator(op: Op, rule: str) -> None:
    assert Arithmetic.of(op).rule == rule


def test_narrow_patterns_come_first() -> None:
    weights = tensor("w")
    weights.bits = 4
    found = list(Arithmetic.of(layer("CONV_2D", tensor("a"), weights)).patterns())
    assert found == [
        ArithmeticPattern("int8", weights="int4"),
        ArithmeticPattern("int8", rule="half even"),
        ArithmeticPattern("int8"),
    ]


def test_sums_are_finished_by_the_rule() -> None:
    """A factor of a half: ties away from zero, and to even."""
    multiplier, shift = np.array([1 << 30], np.int32), np.array([0], np.int32)
    scaling = Scaling(multiplier, shift, 3, (-4, 127), np.array([0.5], np.float32))
    sums = np.array([-20, -3, -1, 1, 2, 3, 5])[:, None]
    assert INT8.finish(sums, scaling).ravel().tolist() == [-4, 2, 3, 4, 4, 5, 6]
    half_even = Arithmetic("int8", "int8", None, "half even")
    assert half_even.finish(sums, scaling).ravel().tolist() == [-4, 1, 3, 3, 4, 5, 5]


@pytest.mark.parametrize("kind", sorted(OPS))
def test_every_quantized_operator_says_whose_results_it_has(kind: str) -> None:
    op = layer(kind, tensor("x"), rounding=Rounding())
    lstm = kind == "UNIDIRECTIONAL_SEQUENCE_LSTM"
    assert Arithmetic.of(op).text == ("LiteRT's" if lstm else "TFLite Micro's")


def test_a_network_says_whose_results_it_has() -> None:
    moved = layer("RESHAPE", tensor("x"), rounding=Rounding())
    added, function = layer("ADD", tensor("x")), layer("HARD_SWISH", tensor("x"))
    lstm = layer("UNIDIRECTIONAL_SEQUENCE_LSTM", tensor("x"), rounding=Rounding())
    real = Op("ADD", "layer", [plain("x", (4,))], [plain("y", (4,))])
    assert whose(Graph("g", [], [], [real])) == ""
    assert whose(Graph("g", [], [], [real, moved, lstm])) == "TFLite Micro's and LiteRT's"
    assert whose(Graph("g", [], [], [moved, added, function])) == "onnxruntime's"
