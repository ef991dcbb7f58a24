"""The work for a network grows with its layers, and not with their square."""

from __future__ import annotations

import sys
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import covp


def chain(kind: str, count: int, folder: Path) -> Path:
    """A model file of so many operators, one after the other."""
    names = ["x", *(f"t{number}" for number in range(count - 1)), "y"]
    pairs = pairwise(names)
    nodes = [helper.make_node(kind, [before], [after]) for before, after in pairs]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 4]) for name in ("x", "y")]
    graph = helper.make_graph(nodes, kind.lower(), ends[:1], ends[1:])
    path = folder / f"{kind}{count}.onnx"
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path
    )
    return path


def lines_of(path: Path) -> int:
    """Lines of Python that are executed to compile a model file."""
    counted = 0

    def each(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal counted
        counted += event == "line"
        return each

    before = sys.gettrace()
    sys.settrace(each)
    try:
        covp.compile(covp.load_model(path), "riscv32")
    finally:
        sys.settrace(before)
    return counted


@pytest.mark.costly
@pytest.mark.parametrize("kind", ["Relu", "Sigmoid", "Neg"])
def test_compiling_takes_lines_in_proportion(kind: str, tmp_path: Path) -> None:
    lines_of(chain(kind, 3, tmp_path))  # imports, tables that are read once
    few, some, many = (lines_of(chain(kind, 100 * n, tmp_path)) for n in (1, 2, 4))
    assert many - some < 2.1 * (some - few)


@pytest.mark.slow
def test_a_chain_of_a_thousand_is_right(tmp_path: Path) -> None:
    program = covp.compile(covp.load_model(chain("Relu", 1000, tmp_path)), "riscv32")
    x = np.array([[-1.0, 0.0, 2.5, -3.0]], np.float32)
    with covp.Session("riscv32") as session:
        assert np.array_equal(session.load(program).run(x), np.maximum(x, 0))
