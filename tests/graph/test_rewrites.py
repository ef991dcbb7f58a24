"""Rewrites are validated on random tensors: wrong ones are planted in passes and in the fusion."""

from __future__ import annotations

import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import covp
import covp.graph.passes
from covp.errors import ModelError
from covp.graph.attributes import Elementwise, Transpose
from covp.graph.graph import Graph, Op, Tensor, copy_graph
from covp.graph.ops.gather import Gather
from covp.graph.passes import run_passes
from covp.graph.rewrites import MOST_WORK, wrong_rewrite
from covp.testing.tensors import int8, plain


def changed(kind, change):
    """A pass that changes the first operator of a kind, and keeps its name."""

    def plant(graph):
        for op in graph.ops:
            if op.kind == kind:
                change(op)
                return

    return plant


def other_constant(position):
    def change(op):
        tensor = op.inputs[position]
        data = tensor.data.copy()
        data.reshape(-1)[0] += 200_000
        op.inputs[position] = replace(tensor, data=data)

    return change


PLANTED = [
    ("kws", "FULLY_CONNECTED", other_constant(2)),
    ("kws", "CONV_2D", other_constant(2)),
    ("resnet", "ADD", lambda op: setattr(op, "kind", "SUB")),
    ("resnet", "AVERAGE_POOL_2D", lambda op: setattr(op, "kind", "MAX_POOL_2D")),
    ("toycar_float", "FULLY_CONNECTED", other_constant(2)),
]  # fmt: skip


@pytest.mark.parametrize(("model", "kind", "change"), PLANTED)
def test_a_wrong_pass_names_itself_and_the_operator(model, kind, change, monkeypatch):
    graph = covp.load_model(model)
    name = next(op.name for op in graph.ops if op.kind == kind)
    run_passes(graph)
    wrong = changed(kind, change)
    wrong.__name__ = "planted"
    monkeypatch.setattr(covp.graph.passes, "PASSES", (*covp.graph.passes.PASSES[:3], wrong))
    with pytest.raises(ModelError, match=rf"pass planted changed .*: \w+ {name} by .*, not "):
        run_passes(graph)


def difference(order=1):
    """x - 2 y or 2 x - y, of int8."""
    x, y, z = (
        int8(name, (1, 4), np.float32(scale), 0)
        for name, scale in zip("xyz", (1, 2, 4), strict=True)
    )
    inputs: list[Tensor | None] = [x, y] if order == 1 else [y, x]
    return Graph("g", [x, y], [z], [Op("SUB", "sub", inputs, [z], Elementwise())])


def test_tensors_are_compared_by_name():
    assert wrong_rewrite(difference(), difference()) is None
    found = wrong_rewrite(difference(), difference(-1))
    assert found is not None and (found.layer, found.tensor) == ("sub", "z")


def test_indices_are_within_their_axis():
    """Values without a scale are 0 and 1: an index that there is not decides nothing."""

    def graph(axis):
        x, indices, y = plain("x", (2, 2)), plain("i", (2,), "int32"), plain("y", (2, 2))
        return Graph(
            "g", [x, indices], [y], [Op("GATHER", "g", [x, indices], [y], Gather(axis, 0))]
        )

    assert wrong_rewrite(graph(0), graph(0)) is None
    assert wrong_rewrite(graph(0), graph(1)) is not None


def test_a_rewrite_may_use_what_one_tensor_tells_of_another():
    """y = tanh(x), z = y + y: that one y is computed anew is right."""

    def graph(*kinds):
        x, y, z, anew = (plain(name, (1, 4)) for name in ("x", "y", "z", "anew"))
        made = [
            Op(kind, kind, [x], [tensor]) for kind, tensor in zip(kinds, (y, anew), strict=False)
        ]
        add = Op("ADD", "add", [y, anew if len(kinds) > 1 else y], [z], Elementwise())
        return Graph("g", [x], [y, z], [*made, add])

    assert wrong_rewrite(graph("TANH"), graph("TANH", "TANH")) is None
    found = wrong_rewrite(graph("TANH"), graph("TANH", "SQRT"))
    assert found is not None and found.tensor == "z"


def test_a_rewrite_that_cannot_be_executed_is_no_right_one():
    """Before it can; after it the permutation is of another rank."""

    def graph(permutation):
        x, y = plain("x", (2, 2)), plain("y", (2, 2))
        return Graph("g", [x], [y], [Op("TRANSPOSE", "t", [x], [y], Transpose(permutation))])

    with pytest.raises(ModelError, match="TRANSPOSE t is rewritten and fails: axes"):
        wrong_rewrite(graph((1, 0)), graph((0, 2, 1)))


def test_a_network_beyond_the_bound_is_validated_in_part(monkeypatch):
    graph = covp.load_model("resnet")
    after = copy_graph(graph)
    changed("CONV_2D", other_constant(2))(after)
    assert wrong_rewrite(graph, after) is not None and MOST_WORK > 1000
    monkeypatch.setattr("covp.graph.rewrites.MOST_WORK", 1000)
    assert wrong_rewrite(graph, after) is None


pytest.importorskip("onnx")
sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from qdq_graphs import random_model  # noqa: E402

from covp.graph.onnx import fuse_qdq, read_onnx  # noqa: E402


@pytest.mark.parametrize("kind", ["Conv", "Gemm", "Mul", "Softmax", "AveragePool"])
def test_a_wrong_fusion_names_its_operator(kind, monkeypatch):
    """The result's zero point is that of another value."""
    right, planted = fuse_qdq._PATTERNS[kind], []

    def wrong(graph, node, result):
        zero = graph.constant(result.zero_point)
        other = graph.add_constant("other", zero ^ zero.dtype.type(64))
        made = right(graph, node, replace(result, zero_point=other))
        planted.extend([] if made is None else [node.name])
        return made

    for seed in range(200):
        model = random_model(seed)
        if kind not in {node.op_type for node in model.graph.node}:
            continue
        read_onnx(model)
        with monkeypatch.context() as patched, suppress(ModelError):
            patched.setitem(fuse_qdq._PATTERNS, kind, wrong)
            read_onnx(model)
        if planted:
            break
    monkeypatch.setitem(fuse_qdq._PATTERNS, kind, wrong)
    with pytest.raises(ModelError, match=r"the fusion of a QDQ pattern changed .* by \d+ steps"):
        read_onnx(model)
