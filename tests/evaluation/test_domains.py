"""Random inputs are ones that the operators take: onnxruntime executes the model on them, where it
checks lengths, indices and axes, and the reference and a core compute the same.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper

import covp
from covp.evaluation.sample import Sample
from covp.graph.equality import differences
from covp.graph.onnx import read_onnx

FLOAT, INT64, INT32 = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64, onnx.TensorProto.INT32
Inputs = dict[str, tuple[int, list[int]]]


def recurrent(kind: str) -> tuple[list[onnx.NodeProto], Inputs, dict[str, Any]]:
    """6 steps of 3 sequences whose lengths are an input."""
    rows, rng = {"RNN": 4, "GRU": 12, "LSTM": 16}[kind], np.random.default_rng(2)
    weights = {
        "w": rng.normal(0, 0.5, (2, rows, 5)).astype(np.float32),
        "r": rng.normal(0, 0.5, (2, rows, 4)).astype(np.float32),
    }
    names = ["x", "w", "r", "", "lengths"]
    node = helper.make_node(kind, names, ["", "y"], hidden_size=4, direction="bidirectional")
    return [node], {"x": (FLOAT, [6, 3, 5]), "lengths": (INT32, [3])}, weights


def one(kind: str, indices: list[int], *rest: str, **attributes: Any) -> Any:
    """An operator of a (4, 3, 5) tensor and int64 indices."""
    inputs: Inputs = {"x": (FLOAT, [4, 3, 5]), "at": (INT64, indices)}
    inputs |= {name: (FLOAT, [2, 3, 5]) for name in rest}
    return [helper.make_node(kind, ["x", "at", *rest], ["y"], **attributes)], inputs, {}


CASES: dict[str, Any] = {
    **{kind: recurrent(kind) for kind in ("GRU", "LSTM", "RNN")},
    "Gather": one("Gather", [7], axis=1),
    "GatherElements": one("GatherElements", [4, 3, 9], axis=2),
    "GatherND": one("GatherND", [6, 2]),
    "ScatterElements": one("ScatterElements", [2, 3, 5], "u", axis=0, reduction="max"),
    "ScatterND": one("ScatterND", [2, 1], "u", reduction="add"),
    "CumSum": one("CumSum", []),
    "ReverseSequence": one("ReverseSequence", [3], time_axis=0, batch_axis=1),
    "indices of another type and shape": (
        [
            helper.make_node("Cast", ["at"], ["long"], to=INT64),
            helper.make_node("Reshape", ["long", "two"], ["square"]),
            helper.make_node("Gather", ["x", "square"], ["y"], axis=0),
        ],
        {"x": (FLOAT, [4, 3]), "at": (INT32, [6])},
        {"two": np.array([2, 3])},
    ),
    "OneHot": (
        [helper.make_node("OneHot", ["at", "depth", "values"], ["y"])],
        {"at": (INT64, [9])},
        {"depth": np.array([5]), "values": np.array([0, 1], np.float32)},
    ),
}


def model(nodes: list[onnx.NodeProto], inputs: Inputs, constants: dict[str, Any]) -> Any:
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(name, *what) for name, what in inputs.items()],
        [helper.make_tensor_value_info("y", FLOAT, None)],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


@pytest.mark.process
@pytest.mark.costly
@pytest.mark.parametrize("name", CASES)
def test_samples_are_taken_by_onnxruntime_and_computed_exactly(name: str) -> None:
    proto = model(*CASES[name])
    session, graph = onnxruntime.InferenceSession(proto.SerializeToString()), read_onnx(proto)
    samples = [s for seed in (0, 1) for s in Sample.random(graph, seed).and_probes(graph)]
    with covp.Session("riscv32") as device:
        module = device.load(covp.compile(graph, "riscv32"))
        for sample in samples:
            named = {t.name: x for t, x in zip(graph.inputs, sample.inputs, strict=True)}
            (wanted,) = session.run(None, named)
            np.testing.assert_allclose(sample.outputs[0], wanted, rtol=1e-5, atol=1e-5)
            assert not differences(module.run(*sample.inputs), sample.outputs[0]).size


def test_integers_of_a_domain_are_all_drawn() -> None:
    graph = read_onnx(model(*CASES["LSTM"]))
    lengths = {int(n) for seed in range(40) for n in Sample.random(graph, seed).inputs[1]}
    assert lengths == set(range(1, 7))
