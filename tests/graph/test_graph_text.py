"""Graphs, operators and tensors as text: one line each, and never the data of constants."""

from __future__ import annotations

import re

import numpy as np
import pytest

from covp.graph.attributes import Conv2D, Padding
from covp.graph.graph import Graph, Op, Quantization, Tensor
from covp.graph.models import load_model
from covp.graph.passes import run_passes

MODELS = ("kws", "toycar", "vww", "resnet")


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("passes", [False, True])
def test_every_operator_is_on_one_line(name: str, passes: bool) -> None:
    graph = load_model(name)
    graph = run_passes(graph) if passes else graph
    first, *lines = str(graph).splitlines()
    constants = {id(t): t.data.nbytes for t in graph.tensors() if t.data is not None}
    assert first.startswith(f"{name}: ")
    assert f"{len(graph.ops)} operators, {sum(constants.values()):,} bytes" in first
    assert len(lines) == len(graph.ops)
    for op, line in zip(graph.ops, lines, strict=True):
        assert line.strip().startswith(f"{op.kind} {op.name}: ")
        before, after = line.split(" -> ", 1)
        for side, tensors in ((before, op.inputs), (after, op.outputs)):
            shapes = re.findall(r"\b(\w+)\[([\d,]*)\]", side)
            wanted = [(t.dtype.name, ",".join(map(str, t.shape))) for t in tensors if t]
            assert shapes == wanted, line
            assert all(t.name[:18] in side and t.name[-27:] in side for t in tensors if t)


@pytest.mark.parametrize("name", MODELS)
def test_a_repr_is_short(name: str) -> None:
    graph = load_model(name)
    assert len(repr(graph)) < 300 and f"{len(graph.ops)} operators" in repr(graph)
    assert all(len(repr(op)) < 600 and "\n" not in repr(op) for op in graph.ops)
    assert all(len(repr(t)) < 300 and "\n" not in repr(t) for t in graph.tensors())


def test_only_attributes_that_say_something_are_shown() -> None:
    x = Tensor("x", (1, 4, 4, 1), np.dtype(np.int8))
    y = Tensor("y", (1, 4, 4, 1), np.dtype(np.int8))

    def shown(attributes: object) -> str:
        return str(Op("CONV_2D", "c", [x, None], [y], attributes)).partition(" -> ")[2]

    assert shown(None) == "y int8[1,4,4,1]"
    assert shown(Conv2D((1, 1), Padding())) == "y int8[1,4,4,1] {stride=(1, 1)}"
    padded = shown(Conv2D((2, 1), Padding(top=1), (1, 1), "relu"))
    assert padded.endswith("{stride=(2, 1), padding=Padding(top=1), activation='relu'}")
    assert shown({"a": np.zeros(10_000)}).count("0") < 80
    assert "none" in str(Op("CONV_2D", "c", [x, None], [y]))


def test_a_tensor_shows_its_quantization_and_no_data() -> None:
    scale, zero = np.array([0.25], np.float32), np.array([-3], np.int32)
    data = np.full((2, 2), 77, np.int8)
    tensor = Tensor("w", (2, 2), np.dtype(np.int8), Quantization(scale, zero), data)
    assert repr(tensor) == "<Tensor w int8[2,2] constant, scale 0.25 zero -3>"
    several = Quantization(np.ones(64, np.float32), np.zeros(64, np.int32), 3)
    assert repr(several) == "<Quantization 64 scales along axis 3>"
    assert repr(Tensor("h", (), np.dtype(np.float32))) == "<Tensor h float32[]>"


def test_a_name_stays_on_its_line() -> None:
    x = Tensor("x\n\x1b[2J", (1,), np.dtype(np.int8))
    graph = Graph("g", [x], [x], [Op("ABS", "a\nb", [x], [x], {"k": "l\nm"})])
    assert len(str(graph).splitlines()) == 2 and str(graph).replace("\n", "").isprintable()
