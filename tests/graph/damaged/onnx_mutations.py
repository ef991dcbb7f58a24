"""Damaged ONNX models: fields set to extremes, elements lost, doubled, moved; bytes changed."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

_RNG = np.random.default_rng(5)
INTEGERS = [0, 1, -1, 2, 3, 7, 64, 4096, 2**20, 2**31 - 1, -(2**31), 2**40, 2**62, -(2**63)]
FLOATS = [0.0, -1.0, float("nan"), float("inf"), float("-inf"), 1e-45, 3e38]


def _floats(*shape: int) -> np.ndarray:
    return _RNG.standard_normal(shape).astype(np.float32)


def _graph(nodes, inputs, outputs, constants, name="g"):
    def values(given):
        return [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in given]

    weights = [numpy_helper.from_array(np.asarray(v), n) for n, v in constants.items()]
    return helper.make_graph(nodes, name, values(inputs), values(outputs), weights)


def _dense() -> onnx.GraphProto:
    nodes = [
        helper.make_node("Reshape", ["x", "s"], ["a"], name="flat"),
        helper.make_node("Gemm", ["a", "w", "b"], ["c"], transB=1, alpha=0.5),
        helper.make_node("Clip", ["c", "low"], ["d"]),
        helper.make_node("Concat", ["c", "d"], ["e"], axis=1),
        helper.make_node("Slice", ["e", "from", "to", "axes"], ["f"]),
        helper.make_node("Gather", ["f", "rows"], ["g"], axis=1),
        helper.make_node("Pad", ["g", "pads"], ["h"]),
        helper.make_node("Mul", ["h", "h"], ["y"]),
    ]
    constants = {"s": np.array([1, 6]), "w": _floats(4, 6), "b": _floats(4), "low": np.float32(0)}
    constants |= {"from": np.array([1]), "to": np.array([6]), "axes": np.array([1])}
    constants |= {"rows": np.array([0, 3]), "pads": np.array([0, 1, 0, 1])}
    return _graph(nodes, [("x", [2, 3])], [("y", [1, 4])], constants)


def _attention() -> onnx.GraphProto:
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"]),
        helper.make_node("Split", ["h"], ["q", "k", "v"], axis=2, num_outputs=3),
        helper.make_node("Attention", ["q", "k", "v"], ["y"], q_num_heads=2, kv_num_heads=2),
    ]
    return _graph(nodes, [("x", [1, 3, 4])], [("y", [1, 3, 4])], {"w": _floats(4, 12)})


def _recurrent() -> onnx.GraphProto:
    nodes = [
        helper.make_node("Transpose", ["x"], ["t"], perm=[1, 0, 2]),
        helper.make_node("GRU", ["t", "w", "r"], ["", "y"], hidden_size=3),
    ]
    constants = {"w": _floats(1, 9, 2), "r": _floats(1, 9, 3)}
    return _graph(nodes, [("x", [1, 4, 2])], [("y", [1, 1, 3])], constants)


def _loop() -> onnx.GraphProto:
    body = helper.make_graph(
        [
            helper.make_node("Add", ["h", "w"], ["next"]),
            helper.make_node("Identity", ["on"], ["still"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("on", TensorProto.BOOL, []),
            helper.make_tensor_value_info("h", TensorProto.FLOAT, [2, 3]),
        ],
        [
            helper.make_tensor_value_info("still", TensorProto.BOOL, []),
            helper.make_tensor_value_info("next", TensorProto.FLOAT, [2, 3]),
        ],
    )
    nodes = [
        helper.make_node("Loop", ["m", "", "x"], ["z"], body=body),
        helper.make_node("Twice", ["z"], ["y"], domain="local"),
    ]
    constants = {"w": _floats(2, 3), "m": np.array(3, np.int64)}
    return _graph(nodes, [("x", [2, 3])], [("y", [2, 3])], constants)


def _images() -> onnx.GraphProto:
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["a"], pads=[1, 1, 1, 1], strides=[2, 1]),
        helper.make_node("BatchNormalization", ["a", "b", "b", "b", "v"], ["n"]),
        helper.make_node("Relu", ["n"], ["r"]),
        helper.make_node("MaxPool", ["r"], ["p"], kernel_shape=[2, 2], ceil_mode=1),
        helper.make_node("ConvTranspose", ["p", "t"], ["u"], output_padding=[0, 0]),
        helper.make_node("Resize", ["u", "", "scales"], ["z"], mode="linear"),
        helper.make_node("AveragePool", ["z"], ["q"], kernel_shape=[2, 2], auto_pad="SAME_UPPER"),
        helper.make_node("ReduceMean", ["q", "axes"], ["m"], keepdims=0),
        helper.make_node("Softmax", ["m"], ["s"]),
        helper.make_node("TopK", ["s", "two"], ["y", ""]),
    ]
    constants = {"w": _floats(4, 2, 3, 3), "b": _floats(4), "v": np.abs(_floats(4))}
    constants |= {"t": _floats(4, 3, 2, 2), "scales": np.array([1, 1, 2, 1.5], np.float32)}
    constants |= {"axes": np.array([2, 3]), "two": np.array([2])}
    return _graph(nodes, [("x", [1, 2, 6, 5])], [("y", [1, 2])], constants)


def _quantized() -> onnx.GraphProto:
    """QDQ around a convolution and a dense layer."""
    nodes = []

    def around(name: str, scale: str) -> str:
        nodes.append(helper.make_node("QuantizeLinear", [name, scale, "zero"], [f"{name}q"]))
        nodes.append(
            helper.make_node("DequantizeLinear", [f"{name}q", scale, "zero"], [f"{name}d"])
        )
        return f"{name}d"

    nodes.append(helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["wd"], axis=0))
    nodes.append(helper.make_node("DequantizeLinear", ["f", "s0", "zero"], ["fd"]))
    nodes.append(helper.make_node("Conv", [around("x", "s0"), "wd"], ["c"], group=1))
    nodes.append(helper.make_node("Relu", [around("c", "s1")], ["r"]))
    nodes.append(helper.make_node("MaxPool", [around("r", "s1")], ["p"], kernel_shape=[2, 2]))
    nodes.append(helper.make_node("Flatten", [around("p", "s1")], ["g"]))
    nodes.append(helper.make_node("Gemm", [around("g", "s1"), "fd"], ["h"]))
    nodes.append(helper.make_node("Identity", [around("h", "s2")], ["y"]))
    constants = {
        "w": _RNG.integers(-127, 128, (4, 2, 3, 3)).astype(np.int8),
        "ws": np.full(4, 0.01, np.float32),
        "wz": np.zeros(4, np.int8),
        "f": _RNG.integers(-127, 128, (24, 3)).astype(np.int8),
        "zero": np.int8(3),
    }
    constants |= {f"s{i}": np.float32(0.02 * (i + 1)) for i in range(3)}
    return _graph(nodes, [("x", [1, 2, 6, 5])], [("y", [1, 3])], constants)


def models() -> list[onnx.ModelProto]:
    """What is damaged."""
    imports = [helper.make_opsetid("", 23), helper.make_opsetid("local", 1)]
    twice = helper.make_function(
        "local", "Twice", ["a"], ["b"], [helper.make_node("Add", ["a", "a"], ["b"])], imports[:1]
    )
    made = [
        helper.make_model(graph, opset_imports=imports, ir_version=10, functions=[twice])
        for graph in (_dense(), _attention(), _recurrent(), _loop(), _images(), _quantized())
    ]
    old = onnx.ModelProto()
    old.CopyFrom(made[0])
    old.opset_import[0].version = 12
    del old.functions[:]
    del old.opset_import[1:]
    return [*made, old]


def damaged(seed: int, bases: list[onnx.ModelProto]) -> bytes:
    """A file with one to three changes."""
    rng = random.Random(seed)
    model = onnx.ModelProto()
    model.CopyFrom(rng.choice(bases))
    if rng.random() < 0.2:
        data = bytearray(model.SerializeToString())
        for _ in range(rng.randrange(1, 4)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        return bytes(data[: rng.randrange(1, len(data))] if rng.random() < 0.2 else data)
    for _ in range(rng.randrange(1, 4)):
        _change(rng, model.graph if rng.random() < 0.9 else model)
    return bytes(model.SerializeToString())


def _change(rng: random.Random, message: Any) -> None:
    """One field of one message somewhere within."""
    fields = [field for field, _ in message.ListFields()]
    if not fields:
        return
    inner = [field for field in fields if field.name in ("node", "attribute", "initializer")]
    field = rng.choice(inner if inner and rng.random() < 0.5 else fields)
    value = getattr(message, field.name)
    if isinstance(value, bool | int | float | str | bytes):
        _set(rng, message, field.name, value)
    elif not hasattr(value, "append"):
        _change(rng, value)
    elif hasattr(value, "add") and value and rng.random() < 0.8:
        _change(rng, rng.choice(list(value)))
    else:
        _reorder(rng, value)


def _set(rng: random.Random, message: Any, name: str, value: Any) -> None:
    if isinstance(value, float):
        setattr(message, name, rng.choice(FLOATS))
    elif isinstance(value, int):
        for number in rng.sample(INTEGERS, len(INTEGERS)):
            try:
                setattr(message, name, number)
                return
            except ValueError:  # not in this field's range
                continue
    elif isinstance(value, bytes):
        setattr(message, name, value[: rng.randrange(len(value) + 1)])
    else:
        others = ["", "x", "y", "h", "w", "Add", "Loop", "MatMul", "Reshape", "n\n/*", value * 2]
        setattr(message, name, rng.choice(others))


def _reorder(rng: random.Random, values: Any) -> None:
    """An element of a repeated field lost, doubled, moved or changed."""
    if not values:
        return
    position = rng.randrange(len(values))
    kind = rng.randrange(3)
    if kind == 0:
        del values[position]
    elif kind == 1:
        values.append(values[position])
    elif hasattr(values, "add"):
        values.append(values[position])
        del values[position]
    elif isinstance(values[position], str):
        values[position] = rng.choice(["", "x", "y", "h", "a", "nothing"])
    elif isinstance(values[position], float):
        values[position] = rng.choice(FLOATS)
    elif isinstance(values[position], int):
        values[position] = rng.choice(INTEGERS[:9])
