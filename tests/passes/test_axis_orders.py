"""Whatever stands between transposes: fewer elements are moved, and the values stay."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from covp.frontend.onnx import read_onnx
from covp.graph.attributes import Concatenation, Elementwise, Mean, Pad, StridedSlice, Transpose
from covp.graph.graph import Graph
from covp.graph.ops.gather import Gather
from covp.graph.ops.interpolate import Interpolate
from covp.graph.ops.placed import MirrorPad
from covp.graph.ops.rearrange import Reverse, SplitV, Tile
from covp.graph.reference import run_reference
from covp.passes import run_passes
from covp.passes.copy import copy_graph
from covp.passes.reshapes import merge_reshapes
from covp.passes.transposes import remove_transposes, reshape_for_transposes
from covp.zoo.builder import GraphBuilder

AXES = st.integers(0, 3)
ORDERS = st.sampled_from([(0, 3, 1, 2), (0, 2, 3, 1), (0, 1, 3, 2), (3, 1, 0, 2), (0, 2, 1, 3)])


def moved(graph: Graph) -> int:
    return sum(op.output.size for op in graph.ops if op.kind == "TRANSPOSE")


def step(draw, b, known):
    """Add a random operator that reads random tensors of rank 4; its output, where that has 4."""
    x = draw(st.sampled_from(known))
    axis, shape = draw(AXES), x.shape
    kind = draw(st.sampled_from(KINDS))
    rest = [(0, n, 1) for n in shape]
    if kind == "TRANSPOSE":
        return b.add(kind, x, attributes=Transpose(draw(ORDERS)))
    if kind == "ADD":
        same = [t for t in known if t.shape == shape]
        return b.add(kind, x, draw(st.sampled_from(same)), attributes=Elementwise())
    if kind == "MUL":
        extents = [n if draw(st.booleans()) else 1 for n in shape[draw(AXES) :]]
        factor = np.arange(np.prod(extents), dtype=np.float32).reshape(extents) - 2
        return b.add(kind, x, b.constant(factor), attributes=Elementwise())
    if kind == "CONCATENATION":
        return b.add(kind, x, x, attributes=Concatenation(axis))
    if kind == "SPLIT_V" and shape[axis] > 1:
        return b.add_all(kind, x, attributes=SplitV(axis, (1, shape[axis] - 1)), outputs=2)[1]
    if kind == "STRIDED_SLICE":
        rest[axis] = (shape[axis] - 1, None, -1)
        return b.add(kind, x, attributes=StridedSlice(tuple(rest)))
    if kind == "MEAN":
        return b.add(kind, x, attributes=Mean((axis,), True))
    if kind == "PAD":
        return b.add(kind, x, attributes=Pad(tuple((int(n == axis), n) for n in range(4)), 1.0))
    if kind == "MIRROR_PAD":
        pads = tuple((int(n == axis), 0) for n in range(4))
        return b.add(kind, x, attributes=MirrorPad(pads, "edge"))
    if kind == "GATHER":
        return b.add(kind, x, b.constant(np.array([0, -1], np.int32)), attributes=Gather(axis))
    if kind == "INTERPOLATE":
        tables = [np.array([[0, 0], [0, 1]]) % shape[axis], np.array([[1, 0.5], [2, 1]])]
        indices, weights = b.constant(tables[0].astype(np.int32)), tables[1].astype(np.float32)
        return b.add(kind, x, indices, b.constant(weights), attributes=Interpolate(axis))
    if kind == "REVERSE_V2":
        return b.add(kind, x, attributes=Reverse((axis,)))
    if kind == "TILE":
        return b.add(kind, x, attributes=Tile(tuple(1 + (n == axis) for n in range(4))))
    return b.add("TANH", x)


KINDS = (
    *("TRANSPOSE",) * 5,
    *("ADD", "MUL", "TANH", "CONCATENATION", "SPLIT_V", "STRIDED_SLICE", "MEAN", "PAD"),
    *("MIRROR_PAD", "GATHER", "INTERPOLATE", "REVERSE_V2", "TILE"),
)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.data())
def test_random_graphs_compute_the_same_with_less_to_move(data):
    b = GraphBuilder("random")
    known = [b.input((1, 3, 4, 2), np.float32)]
    for _ in range(data.draw(st.integers(2, 9))):
        made = step(data.draw, b, known)
        if (made.size < 4000 and min(made.shape) > 1) or (made.size < 500 and made.shape[-1] > 1):
            known.append(made)
    graph = b.graph(known[-1], made)
    changed = copy_graph(graph)
    remove_transposes(changed)
    assert moved(changed) <= moved(graph)
    reshape_for_transposes(changed)
    merge_reshapes(changed)
    x = np.random.default_rng(0).standard_normal((1, 3, 4, 2)).astype(np.float32)
    for got, wanted in zip(run_reference(changed, [x]), run_reference(graph, [x]), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5)  # means sum in other orders


def network(channels, line=False):
    """Conv, Relu, MaxPool, a residual block, factors of channels, Concat, Split, Pad, Gemm."""
    rng = np.random.default_rng(3)
    size = [9] if line else [8, 8]
    three, one = [3] * len(size), [1] * len(size)
    weights = {
        "w1": rng.standard_normal((4, channels, *three)),
        "w2": rng.standard_normal((4, 4, *three)),
        "s": rng.standard_normal((4, *one)),
        "w3": rng.standard_normal((6, 8, *one)),
        "g": rng.standard_normal((6 * (size[0] // 2 + 1) ** len(size), 5)),
        "three": np.array([2, 4]),
        "pads": np.array([0, 0, *([1] * len(size)), 0, 0, *([0] * len(size))]),
    }
    pads = {"pads": [1] * 2 * len(size)}
    node = helper.make_node
    nodes = [
        node("Conv", ["x", "w1"], ["a"], **pads),
        node("Relu", ["a"], ["b"]),
        node("MaxPool", ["b"], ["c"], kernel_shape=[2] * len(size), strides=[2] * len(size)),
        node("Conv", ["c", "w2"], ["d"], **pads),
        node("Mul", ["d", "s"], ["e"]),
        node("Add", ["e", "c"], ["f"]),
        node("Sigmoid", ["f"], ["f2"]),
        node("Mul", ["f", "f2"], ["f3"]),
        node("Concat", ["f3", "c"], ["h"], axis=1),
        node("Conv", ["h", "w3"], ["i"]),
        node("Pad", ["i", "pads"], ["j"], mode="edge"),
        node("Split", ["j", "three"], ["k", "l"], axis=1),
        node("Concat", ["l", "k"], ["m"], axis=1),
        node("Flatten", ["m"], ["n"]),
        node("Gemm", ["n", "g"], ["o"]),
        node("GlobalAveragePool", ["m"], ["p"]),
        node("Flatten", ["p"], ["q"]),
        node("Concat", ["o", "q"], ["y"], axis=1),
    ]
    constants = [
        onnx.numpy_helper.from_array(
            v.astype(np.int64 if v.dtype.kind == "i" else np.float32), name
        )
        for name, v in weights.items()
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, channels, *size])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "g", [x], [y], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


@pytest.mark.parametrize("line", [False, True], ids=["image", "signal"])
@pytest.mark.parametrize("channels", [1, 3])
def test_a_network_of_onnx_keeps_the_transpose_of_its_input_alone(channels, line):
    """None for one channel; RELU is a part of its convolution in one dimension, too."""
    import onnxruntime

    model = network(channels, line)
    graph = read_onnx(model)
    lowered = run_passes(graph)
    kinds = [op.kind for op in lowered.ops]
    assert kinds.count("TRANSPOSE") == (channels > 1), kinds
    assert "RELU" not in kinds
    x = np.random.default_rng(0).standard_normal(graph.inputs[0].shape).astype(np.float32)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    (wanted,) = session.run(None, {"x": x})
    np.testing.assert_allclose(run_reference(lowered, [x])[0], wanted, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("groups", [1, 2])
def test_factors_and_activations_become_part_of_a_transposed_convolution(groups):
    """ConvTranspose, BatchNormalization, Relu of a decoder: one operator."""
    rng = np.random.default_rng(1)
    names = ("w", "scale", "shift", "mean", "variance")
    shapes = ((4, 6 // groups, 3, 3), *((6,),) * 4)
    weights = [
        onnx.numpy_helper.from_array(rng.uniform(0.5, 1, shape).astype(np.float32), name)
        for name, shape in zip(names, shapes, strict=True)
    ]
    nodes = [
        helper.make_node("ConvTranspose", ["x", "w"], ["a"], strides=[2, 2], group=groups),
        helper.make_node("BatchNormalization", ["a", *names[1:]], ["b"]),
        helper.make_node("Relu", ["b"], ["y"]),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4, 3, 3])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "g", [x], [y], weights)
    read = read_onnx(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 15)], ir_version=8)
    )
    lowered = run_passes(read)
    kinds = [op.kind for op in lowered.ops]
    assert [kind for kind in kinds if kind != "TRANSPOSE"] == ["TRANSPOSE_CONV"], kinds
    value = rng.standard_normal((1, 4, 3, 3)).astype(np.float32)
    (wanted,) = run_reference(read, [value])
    np.testing.assert_allclose(run_reference(lowered, [value])[0], wanted, rtol=1e-4, atol=1e-5)
