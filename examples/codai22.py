"""The CODAI'22 paper's network: channel-wise convolutions, a GRU, 21 classes, 1,525 parameters.

    python examples/codai22.py [--to codai22.onnx] [--time 128] [--format onnx|qdq|tflite]
    covp run codai22.onnx -p nucleo-l4r5zi --shape x=1,128,6 --check

Input: any number of samples of 6 channels (an inertial sensor). The arrangement that has 1,525
parameters:

    2 convolutions in time, length 7, stride 2, one filter for all 6 channels  2 * (7 + 1) =    16
    GRU, 6 inputs, 16 units, two biases a gate (reset after the product)
                                                       3 * (6 * 16 + 16 * 16 + 2 * 16) = 1,152
    dense layer with softmax, 16 to 21                                     16 * 21 + 21 =   357

ONNX has a GRU, and the number of samples stays open until `--shape`. "qdq" is the same with int8
convolutions and dense layer (QuantizeLinear, DequantizeLinear) around the float GRU. TFLite has no
GRU: there it is unrolled into some hundred operators for a fixed number of samples.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from covp.graph.attributes import Conv2D, Elementwise, FullyConnected, Padding, Softmax, Split
from covp.graph.graph import Graph, Tensor
from covp.zoo.builder import GraphBuilder
from covp.zoo.tflite_writer import write_tflite

Array = NDArray[np.float32]
CHANNELS, UNITS, CLASSES, LENGTH = 6, 16, 21, 7


def weights(seed: int = 2022) -> dict[str, Array]:
    """The parameters, in ONNX's layouts; a fixed seed."""
    rng = np.random.default_rng(seed)

    def normal(scale: float, *shape: int) -> Array:
        return rng.normal(0, scale, shape).astype(np.float32)

    return {
        **{f"filter{n}": np.abs(normal(0.5, 1, 1, LENGTH)) for n in (1, 2)},
        **{f"offset{n}": normal(0.1, 1) for n in (1, 2)},
        "w": normal(0.3, 1, 3 * UNITS, CHANNELS),
        "r": normal(0.25, 1, 3 * UNITS, UNITS),
        "b": normal(0.1, 1, 6 * UNITS),
        "dense": normal(1.0, CLASSES, UNITS),
        "bias": normal(0.3, CLASSES),
    }


def samples(time: int, seed: int = 1) -> Array:
    """An input, (1, time, 6)."""
    steps = np.random.default_rng(seed).normal(0, 0.5, (1, time, CHANNELS))
    return np.asarray(np.sin(np.cumsum(steps, axis=1)), np.float32)


class _Nodes:
    """Nodes of an ONNX graph, with QuantizeLinear and DequantizeLinear where int8 is wanted."""

    def __init__(self, ranges: dict[str, float]) -> None:
        self.ranges = ranges
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def constant(self, name: str, value: NDArray[Any]) -> str:
        self.constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def add(self, kind: str, inputs: list[str], output: str, **attributes: Any) -> str:
        self.nodes.append(helper.make_node(kind, inputs, [output], name=output, **attributes))
        return output

    def rounded(self, name: str) -> str:
        """An activation through int8, symmetric, if its range is known."""
        if name not in self.ranges:
            return name
        scale = self.constant(f"{name}_scale", np.float32(self.ranges[name] / 127))
        zero = self.constant(f"{name}_zero", np.int8(0))
        stored = self.add("QuantizeLinear", [name, scale, zero], f"{name}_q")
        return self.add("DequantizeLinear", [stored, scale, zero], f"{name}_dq")

    def weights(self, name: str, value: Array) -> str:
        """Weights in int8, a scale for each output channel, if any activation is."""
        if not self.ranges:
            return self.constant(name, value)
        axes = tuple(range(1, value.ndim))
        scale = np.abs(value).max(axis=axes).astype(np.float32) / np.float32(127)
        shape = (-1, *[1] * (value.ndim - 1))
        stored = self.constant(f"{name}_q", np.rint(value / scale.reshape(shape)).astype(np.int8))
        names = [
            self.constant(f"{name}_scale", scale),
            self.constant(f"{name}_zero", np.zeros(len(scale), np.int8)),
        ]
        return self.add("DequantizeLinear", [stored, *names], f"{name}_dq", axis=0)


def build_onnx(quantized: bool = False) -> onnx.ModelProto:
    """The network for inputs x (1, time, 6), time open."""
    p = weights()
    n = _Nodes(_ranges(p) if quantized else {})
    value = n.rounded(n.add("Transpose", ["x"], "rows", perm=[2, 0, 1]))
    for i in (1, 2):
        kernel = n.weights(f"filter{i}", p[f"filter{i}"])
        inputs = [value, kernel, n.constant(f"offset{i}", p[f"offset{i}"])]
        value = n.add("Relu", [n.add("Conv", inputs, f"conv{i}", strides=[2])], f"relu{i}")
        value = n.rounded(value)
    value = n.add("Transpose", [value], "sequence", perm=[2, 1, 0])
    gates = [n.constant(name, p[name]) for name in "wrb"]
    n.nodes.append(
        helper.make_node(
            "GRU", [value, *gates], ["", "state"], "gru", hidden_size=UNITS, linear_before_reset=1
        )
    )
    n.add("Squeeze", ["state", n.constant("axis", np.array([0], np.int64))], "last")
    dense = [n.rounded("last"), n.weights("dense", p["dense"]), n.constant("bias", p["bias"])]
    logits = n.rounded(n.add("Gemm", dense, "logits", transB=1))
    n.add("Softmax", [logits], "y", axis=-1)
    graph = helper.make_graph(
        n.nodes,
        "codai22",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, "time", CHANNELS])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, CLASSES])],
        n.constants,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)


def _ranges(p: dict[str, Array]) -> dict[str, float]:
    """Largest magnitudes of the activations that become int8, on some inputs."""
    found = {"rows": 1.0, "last": 1.0}
    value = np.concatenate([samples(256, seed) for seed in range(4)])
    for i in (1, 2):
        windows = np.lib.stride_tricks.sliding_window_view(value, LENGTH, axis=1)[:, ::2]
        value = np.maximum(windows @ p[f"filter{i}"].reshape(-1) + p[f"offset{i}"], 0)
        found[f"relu{i}"] = float(value.max())
    # |state| < 1, and a dense layer cannot reach more than this
    found["logits"] = float((np.abs(p["dense"]).sum(axis=1) + np.abs(p["bias"])).max() / 2)
    return found


def build_graph(time: int = 128) -> Graph:
    """The network for a fixed number of samples, its GRU unrolled; for TFLite."""
    p, b = weights(), GraphBuilder("codai22_unrolled")
    value = b.input((1, time, CHANNELS), np.float32)
    value = b.add("RESHAPE", value, shape=(1, time, CHANNELS, 1))
    for i in (1, 2):
        filters = b.constant(p[f"filter{i}"].reshape(1, LENGTH, 1, 1))
        how = Conv2D((2, 1), Padding(), activation="relu")
        value = b.add("CONV_2D", value, filters, b.constant(p[f"offset{i}"]), attributes=how)
    steps = value.shape[1]
    value = b.add("RESHAPE", value, shape=(steps, CHANNELS))
    of_w, of_r = np.split(p["b"][0], 2)
    dense = FullyConnected()
    gates = b.add(
        "FULLY_CONNECTED", value, b.constant(p["w"][0]), b.constant(of_w), attributes=dense
    )
    rows = b.add_all("SPLIT", gates, attributes=Split(0), outputs=steps) if steps > 1 else [gates]
    recurrent, bias = b.constant(p["r"][0]), b.constant(of_r)
    state = b.constant(np.zeros((1, UNITS), np.float32))
    for row in rows:
        product = b.add("FULLY_CONNECTED", state, recurrent, bias, attributes=dense)
        state = _step(b, row, product, state)
    logits = b.add(
        "FULLY_CONNECTED", state, b.constant(p["dense"]), b.constant(p["bias"]), attributes=dense
    )
    return b.graph(b.add("SOFTMAX", logits, attributes=Softmax()))


def _step(b: GraphBuilder, row: Tensor, product: Tensor, state: Tensor) -> Tensor:
    """The state after one step: n + z * (h - n)."""

    def pair(kind: str, x: Tensor, y: Tensor) -> Tensor:
        return b.add(kind, x, y, attributes=Elementwise())

    xz, xr, xn = b.add_all("SPLIT", row, attributes=Split(1), outputs=3)
    hz, hr, hn = b.add_all("SPLIT", product, attributes=Split(1), outputs=3)
    z = b.add("LOGISTIC", pair("ADD", xz, hz))
    r = b.add("LOGISTIC", pair("ADD", xr, hr))
    new = b.add("TANH", pair("ADD", xn, pair("MUL", r, hn)))
    return pair("ADD", new, pair("MUL", z, pair("SUB", state, new)))


def main() -> None:
    """Write the network to a file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--to", type=Path, default=Path("codai22.onnx"))
    parser.add_argument("--time", type=int, default=128, help="samples, for TFLite")
    parser.add_argument("--format", choices=("onnx", "qdq", "tflite"), default="onnx")
    given = parser.parse_args()
    if given.format == "tflite":
        data = write_tflite(build_graph(given.time))
    else:
        data = build_onnx(quantized=given.format == "qdq").SerializeToString()
    given.to.write_bytes(data)
    print(f"{given.to}: {sum(w.size for w in weights().values()):,} parameters")


if __name__ == "__main__":
    main()
