"""Whatever stands between transposes: fewer elements are moved, and the values stay."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from covp.graph.attributes import Concatenation, Elementwise, Mean, Pad, StridedSlice, Transpose
from covp.graph.graph import Graph, copy_graph
from covp.graph.onnx import read_onnx
from covp.graph.ops.gather import Gather
from covp.graph.ops.interpolate import Interpolate
from covp.graph.ops.placed import MirrorPad
from covp.graph.ops.rearrange import Reverse, SplitV, Tile
from covp.graph.passes import axis_orders, run_passes
from covp.graph.passes.cleanup import merge_reshapes
from covp.graph.passes.transposes import remove_transposes, reshape_for_transposes
from covp.graph.reference import run_reference
from covp.graph.zoo.builder import GraphBuilder
from tests.graph import every_kind, test_index_maps

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


def mixed_step(draw, b, known):
    """Add a TRANSPOSE, RESHAPE, MEAN, ADD or TANH of a tensor of any rank, mostly the last one."""
    x = draw(st.sampled_from([*known, *[known[-1]] * 9]))
    shape = list(x.shape)
    kind = draw(st.sampled_from(["TRANSPOSE"] * 4 + ["RESHAPE"] * 4 + ["MEAN", "ADD", "TANH"]))
    axis = draw(st.integers(0, len(shape) - 1))
    if kind == "TRANSPOSE":
        return b.add(kind, x, attributes=Transpose(tuple(draw(st.permutations(range(len(shape)))))))
    if kind == "MEAN" and len(shape) > 1:
        return b.add(kind, x, attributes=Mean((axis,), draw(st.booleans())))
    if kind == "ADD":
        same = [t for t in known if t.shape == x.shape]
        return b.add(kind, x, draw(st.sampled_from(same)), attributes=Elementwise())
    if kind == "RESHAPE":
        form = draw(st.sampled_from(["unit", "unit", "split", "merge", "drop"]))
        if form == "unit" and len(shape) < 6:
            shape.insert(axis, 1)
        elif form == "split" and shape[axis] % 2 == 0 and len(shape) < 6:
            shape[axis : axis + 1] = [2, shape[axis] // 2]
        elif form == "merge" and axis + 1 < len(shape):
            shape[axis : axis + 2] = [shape[axis] * shape[axis + 1]]
        elif len(shape) > 1:
            shape = [n for n in shape if n > 1] or [1]
        return b.add(kind, x, shape=tuple(shape))
    return b.add("TANH", x)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_transposes_and_reshapes_of_mixed_rank(data):
    """Each order is one of as many axes as the tensor has that it is of."""
    b = GraphBuilder("mixed")
    known = [b.input((2, 1, 3, 4), np.float32)]
    for _ in range(data.draw(st.integers(3, 12))):
        known.append(mixed_step(data.draw, b, known))
    graph = b.graph(*known[-2:])
    changed = copy_graph(graph)
    remove_transposes(changed)
    assert moved(changed) <= moved(graph)
    x = np.random.default_rng(0).standard_normal((2, 1, 3, 4)).astype(np.float32)
    wanted = run_reference(graph, [x])
    for other in (changed, run_passes(graph)):
        for got, theirs in zip(run_reference(other, [x]), wanted, strict=True):
            np.testing.assert_allclose(got, theirs, rtol=1e-5, atol=1e-5)


@pytest.mark.costly
def test_layers_of_every_kind():
    """An operator on permuted inputs gives the permuted output, integers to the bit."""
    rng, taken = np.random.default_rng(0), set()
    for op in every_kind.layers():
        positions = axis_orders.data_positions(op)
        rank = max((len(op.input(p).shape) for p in positions), default=0)
        orders = list(permutations(range(rank)))[1:]
        for number in rng.permutation(len(orders))[:4]:
            if (change := axis_orders.permute(op, orders[number])) is not None:
                permuted_is_plain(op, positions, orders[number], change)
                taken.add(op.kind)
    assert len(taken) >= 110


def permuted_is_plain(op, positions, order, change):
    inner, inputs, values = list(op.inputs), test_index_maps.drawn(op, 7), []
    for position, value in enumerate(inputs):
        if position in positions and (value.size > 1 or value.ndim == len(order)):
            whole = value.reshape((1,) * (len(order) - value.ndim) + value.shape)
            value = np.ascontiguousarray(whole.transpose(np.argsort(order)))
            inner[position] = replace(op.inputs[position], shape=value.shape, data=None)
        values.append(value)
    outputs = [
        replace(t, shape=tuple(t.shape[axis] for axis in np.argsort(change.order)))
        for t in op.outputs
    ]
    changed = replace(op, inputs=inner, outputs=outputs, attributes=change.attributes)
    plain = test_index_maps.run(op, inputs)
    for found, wanted in zip(test_index_maps.run(changed, values), plain, strict=True):
        outer = found.transpose(change.order)
        if wanted.dtype.kind == "f":
            np.testing.assert_allclose(outer, wanted, rtol=1e-4, atol=1e-5)
        else:
            np.testing.assert_array_equal(outer, wanted, f"{op.kind} {order}", strict=True)


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


@pytest.mark.parametrize("batch_first", [False, True])
def test_self_attention_as_the_torchscript_exporter_writes_it(batch_first):
    """nn.TransformerEncoder's: queries, keys and values are taken apart by way of five axes."""
    import onnxruntime

    rng, length, width, heads = np.random.default_rng(7), 5, 8, 2
    constants = {
        "w": rng.standard_normal((width, 3 * width)).astype(np.float32),
        "b": rng.standard_normal(3 * width).astype(np.float32),
        "o": rng.standard_normal((width, width)).astype(np.float32),
        "scale": np.float32(0.5),
        "apart": np.array([length, 1, 3, width]),
        "heads": np.array([length, heads, width // heads]),
        "images": np.array([1, heads, length, width // heads]),
        "rows": np.array([length, width]),
        "whole": np.array([length, 1, width]),
        "first": np.array([0]),
        "fourth": np.array([3]),
        **{name: np.int64(i) for i, name in enumerate("qkv")},
    }
    node = helper.make_node
    nodes = [
        node("Transpose", ["x"], ["t"], perm=[1, 0, 2])
        if batch_first
        else node("Identity", ["x"], ["t"]),
        node("MatMul", ["t", "w"], ["p"]),
        node("Add", ["p", "b"], ["p1"]),
        node("Reshape", ["p1", "apart"], ["p2"]),
        node("Unsqueeze", ["p2", "first"], ["p3"]),
        node("Transpose", ["p3"], ["p4"], perm=[3, 1, 2, 0, 4]),
        node("Squeeze", ["p4", "fourth"], ["p5"]),
    ]
    for name in "qkv":
        nodes += [
            node("Gather", ["p5", name], [f"{name}1"], axis=0),
            node("Reshape", [f"{name}1", "heads"], [f"{name}2"]),
            node("Transpose", [f"{name}2"], [f"{name}3"], perm=[1, 0, 2]),
            node("Reshape", [f"{name}3", "images"], [f"{name}4"]),
        ]
    nodes += [
        node("Transpose", ["k4"], ["k5"], perm=[0, 1, 3, 2]),
        node("MatMul", ["q4", "k5"], ["s"]),
        node("Mul", ["s", "scale"], ["s1"]),
        node("Softmax", ["s1"], ["s2"]),
        node("MatMul", ["s2", "v4"], ["a"]),
        node("Transpose", ["a"], ["a1"], perm=[2, 0, 1, 3]),
        node("Reshape", ["a1", "rows"], ["a2"]),
        node("Gemm", ["a2", "o"], ["a3"]),
        node("Reshape", ["a3", "whole"], ["a4"]),
        node("Add", ["t", "a4"], ["y1"]),
        node("Transpose", ["y1"], ["y"], perm=[1, 0, 2]),
    ]
    shape = [1, length, width] if batch_first else [length, 1, width]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [onnx.numpy_helper.from_array(np.asarray(v), name) for name, v in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    x = rng.standard_normal(shape).astype(np.float32)
    (wanted,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})
    (found,) = run_reference(run_passes(read_onnx(model)), [x])
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


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
