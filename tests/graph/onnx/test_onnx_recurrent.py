"""ONNX's RNN, GRU and LSTM: the onnx package's own tests and onnxruntime as oracles."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

import covp
from covp.errors import ModelError
from covp.graph.onnx import read_onnx
from covp.graph.reference import run_reference

from .node_tests import PLATFORMS, node_tests, passes

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
NAMES = ["X", "W", "R", "B", "sequence_lens", "initial_h", "initial_c", "P"]
FUNCTIONS = {"RNN": 1, "GRU": 2, "LSTM": 3}
ACTIVATIONS = {
    "Sigmoid": (), "Tanh": (), "Relu": (), "Softsign": (), "Softplus": (),
    "LeakyRelu": (0.03,), "ThresholdedRelu": (0.1,), "Elu": (0.7,),
    "Affine": (0.6, 0.05), "ScaledTanh": (0.9, 0.8), "HardSigmoid": (0.3, 0.4),
}  # fmt: skip


def suite():
    """The onnx package's own tests of the three."""
    found = [test for kind in GATES for test in node_tests()[kind] if "expanded" not in test.name]
    assert len(found) == 18
    return found


@pytest.mark.costly
def test_half_of_the_suite():
    """On the two platforms in turns."""
    for number, test in enumerate(suite()[::2]):
        passes(test, PLATFORMS[number % 2])


@pytest.mark.slow
@pytest.mark.parametrize("platform", PLATFORMS)
def test_suite(platform):
    for test in suite():
        passes(test, platform)


@st.composite
def networks(draw):
    """A node's attributes, its inputs' values and the outputs it has."""
    kind = draw(st.sampled_from(list(GATES)))
    direction = draw(st.sampled_from(["forward", "reverse", "bidirectional"]))
    d = 2 if direction == "bidirectional" else 1
    time, batch, size, hidden = (draw(st.integers(1, n)) for n in (5, 3, 6, 6))
    rng = np.random.default_rng(draw(st.integers(0, 999)))
    rows = GATES[kind] * hidden

    def normal(*shape):
        return rng.normal(0, 0.6, shape).astype(np.float32)

    values = {
        "X": normal(time, batch, size),
        "W": normal(d, rows, size),
        "R": normal(d, rows, hidden),
    }
    if draw(st.booleans()):
        values["B"] = normal(d, 2 * rows)
    if draw(st.booleans()):
        values["sequence_lens"] = rng.integers(0, time + 1, batch).astype(np.int32)
    if draw(st.booleans()):
        values["initial_h"] = normal(d, batch, hidden)
    attributes = {"hidden_size": hidden, "direction": direction}
    if kind == "GRU":
        attributes["linear_before_reset"] = draw(st.integers(0, 1))
    if kind == "LSTM":
        if draw(st.booleans()):
            values["initial_c"] = normal(d, batch, hidden)
        if draw(st.booleans()):
            values["P"] = normal(d, 3 * hidden)
        attributes["input_forget"] = draw(st.integers(0, 1))
    if draw(st.booleans()):
        attributes["clip"] = 0.8
    if draw(st.booleans()):
        each = st.lists(
            st.sampled_from(list(ACTIVATIONS)), min_size=FUNCTIONS[kind], max_size=FUNCTIONS[kind]
        )
        names = [name for _ in range(d) for name in draw(each)]
        attributes["activations"] = names
        for i, parameter in enumerate(("activation_alpha", "activation_beta")):
            given = [ACTIVATIONS[n][i] for n in names if len(ACTIVATIONS[n]) > i]
            if given:
                attributes[parameter] = given
    wanted = draw(
        st.sampled_from([["Y", "Y_h"], ["Y"], ["", "Y_h"]] + [["Y", "", "Y_c"]] * (kind == "LSTM"))
    )
    return kind, attributes, values, wanted, draw(st.booleans())


def model(kind, attributes, values, wanted, constant, layout=0):
    """The weights are constants or inputs."""
    names = NAMES[: 8 if kind == "LSTM" else 6]
    while names[-1] not in values:
        names.pop()
    weights = {n: v for n, v in values.items() if constant and n in ("W", "R", "B", "P")}
    node = helper.make_node(
        kind, [n * (n in values) for n in names], wanted, **attributes, layout=layout
    )
    types = {n: TensorProto.INT32 if n == "sequence_lens" else TensorProto.FLOAT for n in values}
    graph = helper.make_graph(
        [node],
        "g",
        [
            helper.make_tensor_value_info(n, types[n], v.shape)
            for n, v in values.items()
            if n not in weights
        ],
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in wanted if n],
        [onnx.numpy_helper.from_array(v, n) for n, v in weights.items()],
    )
    opset = helper.make_opsetid("", 22)
    return helper.make_model(graph, opset_imports=[opset], ir_version=10)


def transposed(name, value):
    """A tensor of layout 0 in layout 1."""
    if name == "Y":
        return value.transpose(2, 0, 1, 3)
    return value.swapaxes(0, 1) if name in ("X", "initial_h", "initial_c", "Y_h", "Y_c") else value


def fed(proto, values):
    return [np.ascontiguousarray(values[tensor.name]) for tensor in proto.graph.input]


@settings(max_examples=60, deadline=None)
@given(networks())
def test_reference_is_onnxruntime(network):
    kind, attributes, values, wanted, constant = network
    proto = model(*network)
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    names = [n for n in wanted if n]
    results = session.run(names, {t.name: values[t.name] for t in proto.graph.input})
    for layout in (0, 1):
        if layout:
            # which onnxruntime does not have
            values = {n: transposed(n, v) for n, v in values.items()}
            results = [transposed(n, v) for n, v in zip(names, results, strict=True)]
            proto = model(kind, attributes, values, wanted, constant, layout=1)
        found = run_reference(read_onnx(proto), fed(proto, values))
        for ours, theirs in zip(found, results, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=2e-6)


@pytest.mark.parametrize("platform", ["riscv32", "cortex-m4", "riscv32f", "cortex-m0plus"])
@settings(max_examples=8, deadline=None)
@given(networks(), st.integers(0, 1))
def test_kernel_is_the_reference(sessions, platform, network, layout):
    kind, attributes, values, wanted, constant = network
    if layout:
        values = {n: transposed(n, v) for n, v in values.items()}
    proto = model(kind, attributes, values, wanted, constant, layout)
    graph = read_onnx(proto)
    inputs = fed(proto, values)
    expected = run_reference(graph, inputs)
    # gates without bounds multiply what rounding changes in each step of time
    nudged = {n: np.nextafter(v, np.float32(9)) if n in "XWRB" else v for n, v in values.items()}
    changed = model(kind, attributes, nudged, wanted, constant, layout)
    results = run_reference(read_onnx(changed), fed(changed, nudged))
    assume(all(np.allclose(a, b, 3e-6, 3e-6) for a, b in zip(expected, results, strict=True)))
    module = sessions(platform).load(covp.compile(graph, platform))
    found = module.run(*inputs)
    for ours, theirs in zip(found if isinstance(found, list) else [found], expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)
    module.unload()


@pytest.fixture(scope="module")
def sessions():
    opened: dict[str, Any] = {}
    yield lambda name: opened.setdefault(name, opened.get(name) or covp.Session(name))
    for session in opened.values():
        session.close()


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"activations": ["Tanhh"]}, "did you mean tanh"),
        ({"activations": ["Tanh", "Relu"]}, "2 activations; 1 are needed"),
        ({"clip": -1.0}, "clip is -1.0"),
        ({"direction": "back"}, "direction 'back'"),
        ({"hidden_size": 3}, r"W has shape \(1, 2, 4\), which should be \(1, 3, 4\)"),
    ],
)
def test_rejected(change, text):
    shapes = {"X": (3, 1, 4), "W": (1, 2, 4), "R": (1, 2, 2)}
    values = {name: np.zeros(shape, np.float32) for name, shape in shapes.items()}
    with pytest.raises(ModelError, match=text):
        read_onnx(model("RNN", {"hidden_size": 2} | change, values, ["Y"], True))


@pytest.mark.filterwarnings("error")
def test_states_beyond_float32_are_infinite_without_a_warning(one_node: Any) -> None:
    x = np.full((3, 1, 2), 1e30, np.float32)
    w, r = np.full((1, 2, 2), 1e20, np.float32), np.ones((1, 2, 2), np.float32)
    how = {"hidden_size": 2, "activations": ["Relu"], "constants": (1, 2)}
    model = one_node("RNN", [x, w, r], opset=22, **how)
    assert np.isposinf(run_reference(read_onnx(model), [x])[0]).all()
