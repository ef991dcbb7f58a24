"""The CODAI'22 paper's network: channel-wise convolutions, a GRU, 21 classes, 1,525 parameters.

    python examples/codai22.py [--to codai22.onnx] [--time 128] [--format onnx|qdq|tflite]
    covp run codai22.onnx -p nucleo-l4r5zi --shape x=1,128,6 --check layers

Input: any number of samples of 6 channels (an inertial sensor). The arrangement that has
1,525 parameters:

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
from covp.graph.zoo.builder import GraphBuilder
from covp.graph.zoo.tflite_writer import write_tflite

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

    def __init__(self, ranges: dict[str, tuple[float, float]]) -> None:
        self.ranges = ranges
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def constant(self, name: str, value: NDArray[Any]) -> str:
        self.constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def add(self, kind: str, inputs: list[str], output: str, **attributes: Any) -> str:
        self.nodes.append(helper.make_node(kind, inputs, [output], name=output, **attributes))
        return output

    def scale(self, name: str) -> NDArray[np.float32]:
        """Of an activation that becomes int8."""
        low, high = self.ranges[name]
        return np.asarray((high - low) / 255, np.float32)

    def rounded(self, name: str) -> str:
        """An activation through int8, if its range is known."""
        if name not in self.ranges:
            return name
        low = self.ranges[name][0]
        zero_point = np.int8(round(-128 - low / float(self.scale(name))))
        scale = self.constant(f"{name}_scale", self.scale(name))
        zero = self.constant(f"{name}_zero", np.asarray(zero_point))
        stored = self.add("QuantizeLinear", [name, scale, zero], f"{name}_q")
        return self.add("DequantizeLinear", [stored, scale, zero], f"{name}_dq")

    def parameters(self, layer: str, source: str, weights: Array, bias: Array) -> list[str]:
        """Weights and bias, as int8 with a scale for each output channel and int32 if wanted."""
        if not self.ranges:
            return [self.constant(layer, weights), self.constant(f"{layer}_bias", bias)]
        axes = tuple(range(1, weights.ndim))
        scale = np.abs(weights).max(axis=axes).astype(np.float32) / np.float32(127)
        stored = np.rint(weights / scale.reshape(-1, *[1] * (weights.ndim - 1))).astype(np.int8)
        products = scale * self.scale(source)
        whole = np.rint(bias / products).astype(np.int32)
        return [
            self._dequantized(layer, stored, scale),
            self._dequantized(f"{layer}_bias", whole, products),
        ]

    def _dequantized(self, name: str, stored: NDArray[Any], scale: Array) -> str:
        names = [
            self.constant(f"{name}_q", stored),
            self.constant(f"{name}_scale", scale),
            self.constant(f"{name}_zero", np.zeros(len(scale), stored.dtype)),
        ]
        return self.add("DequantizeLinear", names, f"{name}_dq", axis=0)


def build_onnx(quantized: bool = False) -> onnx.ModelProto:
    """The network for inputs x (1, time, 6), time open."""
    p = weights()
    n = _Nodes(_ranges(p) if quantized else {})
    source = n.add("Transpose", ["x"], "rows", perm=[2, 0, 1])
    for i in (1, 2):
        constants = n.parameters(f"filter{i}", source, p[f"filter{i}"], p[f"offset{i}"])
        n.add("Conv", [n.rounded(source), *constants], f"conv{i}", strides=[2])
        source = n.add("Relu", [f"conv{i}"], f"relu{i}")
    n.add("Transpose", [n.rounded(source)], "sequence", perm=[2, 1, 0])
    gates = [n.constant(name, p[name]) for name in "wrb"]
    n.nodes.append(
        helper.make_node(
            "GRU",
            ["sequence", *gates],
            ["", "state"],
            "gru",
            hidden_size=UNITS,
            linear_before_reset=1,
        )
    )
    n.add("Squeeze", ["state", n.constant("axis", np.array([0], np.int64))], "last")
    constants = n.parameters("dense", "last", p["dense"], p["bias"])
    n.add("Gemm", [n.rounded("last"), *constants], "logits", transB=1)
    n.add("Softmax", [n.rounded("logits")], "y", axis=-1)
    graph = helper.make_graph(
        n.nodes,
        "codai22",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, "time", CHANNELS])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, CLASSES])],
        n.constants,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)


def _ranges(p: dict[str, Array]) -> dict[str, tuple[float, float]]:
    """The ranges of the activations that become int8, on some inputs."""
    found = {"rows": (-1.0, 1.0), "last": (-1.0, 1.0)}
    value = np.concatenate([samples(256, seed) for seed in range(100, 132)])
    for i in (1, 2):
        windows = np.lib.stride_tricks.sliding_window_view(value, LENGTH, axis=1)[:, ::2]
        value = np.maximum(windows @ p[f"filter{i}"].reshape(-1) + p[f"offset{i}"], 0)
        found[f"relu{i}"] = 0.0, float(value.max())
    logits = _states(p, value) @ p["dense"].T + p["bias"]
    return {**found, "logits": (float(logits.min()), float(logits.max()))}


def _states(p: dict[str, Array], value: Array) -> Array:
    """The GRU's last states for inputs (batch, time, 6)."""
    state = np.zeros((len(value), UNITS), np.float32)
    of_w, of_r = np.split(p["b"][0], 2)
    for row in value.swapaxes(0, 1):
        xz, xr, xn = np.split(row @ p["w"][0].T + of_w, 3, axis=1)
        hz, hr, hn = np.split(state @ p["r"][0].T + of_r, 3, axis=1)
        z, r = 1 / (1 + np.exp(-xz - hz)), 1 / (1 + np.exp(-xr - hr))
        state = (1 - z) * np.tanh(xn + r * hn) + z * state
    return np.asarray(state, np.float32)


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
