"""Small networks, quantized by onnxruntime.quantization from weights drawn in numpy.

`benchmarks/onnx_quantized.py` and the tests make them; nothing is stored.
"""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

Shape = tuple[int, ...]


class FloatNetwork:
    """A float ONNX graph that grows node by node.

    Args:
        name: of the graph.
        shape: of its input.
        seed: of the weights.
    """

    def __init__(self, name: str, shape: Shape, seed: int) -> None:
        self.name, self.shape = name, shape
        self.rng = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def weights(self, *shape: int) -> str:
        """Weights whose sums keep the size of their inputs; each output has a size of its own."""
        fan_in = int(np.prod(shape[1:]))
        size = self.rng.uniform(0.4, 1.6, (shape[0], *(1,) * (len(shape) - 1)))
        values = self.rng.normal(0, fan_in**-0.5, shape) * size
        return self._constant(values)

    def _constant(self, values: Any) -> str:
        name = f"w{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(values, np.float32), name))
        return name

    def add(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """A node; its output's name."""
        name = f"{kind.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], name, **attributes))
        return name

    def conv(self, x: str, depth: int, outputs: int, kernel: Shape, **attributes: Any) -> str:
        """Conv with a bias, and Relu."""
        weights = self.weights(outputs, depth // attributes.get("group", 1), *kernel)
        bias = self._constant(self.rng.normal(0, 0.1, outputs))
        return self.add("Relu", self.add("Conv", x, weights, bias, **attributes))

    def gemm(self, x: str, depth: int, outputs: int) -> str:
        """Gemm with transposed weights and a bias."""
        bias = self._constant(self.rng.normal(0, 0.1, outputs))
        return self.add("Gemm", x, self.weights(outputs, depth), bias, transB=1)

    def model(self, output: str) -> onnx.ModelProto:
        """The model, opset 19."""
        graph = helper.make_graph(
            self.nodes,
            self.name,
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, self.shape)],
            [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)],
            self.constants,
        )
        opset = helper.make_opsetid("", 19)
        return onnx.shape_inference.infer_shapes(
            helper.make_model(graph, opset_imports=[opset], ir_version=9)
        )


def depthwise_cnn() -> onnx.ModelProto:
    """28x28 image: Conv, depthwise, 1x1, GlobalAveragePool, Gemm, Softmax."""
    net = FloatNetwork("depthwise_cnn", (1, 1, 28, 28), 1)
    x = net.conv("x", 1, 12, (3, 3), pads=[1, 1, 1, 1], strides=[2, 2])
    x = net.conv(x, 12, 12, (3, 3), pads=[1, 1, 1, 1], group=12)
    x = net.conv(x, 12, 24, (1, 1))
    x = net.add("Flatten", net.add("GlobalAveragePool", x))
    return net.model(net.add("Softmax", net.gemm(x, 24, 10)))


def residual_cnn() -> onnx.ModelProto:
    """Two residual blocks, a maximum pool, Flatten of an image."""
    net = FloatNetwork("residual_cnn", (1, 3, 16, 16), 2)
    x = net.conv("x", 3, 8, (3, 3), pads=[1, 1, 1, 1])
    for _ in range(2):
        y = net.conv(x, 8, 8, (3, 3), pads=[1, 1, 1, 1])
        y = net.add("Conv", y, net.weights(8, 8, 3, 3), pads=[1, 1, 1, 1])
        x = net.add("Relu", net.add("Add", x, y))
    x = net.add("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    x = net.conv(x, 8, 16, (3, 3), strides=[2, 2], pads=[0, 0, 1, 1])
    return net.model(net.gemm(net.add("Flatten", x), 256, 10))


def perceptron() -> onnx.ModelProto:
    """Gemm and MatMul with Sigmoid, LeakyRelu, Tanh and Mul."""
    net = FloatNetwork("perceptron", (1, 96), 3)
    x = net.add("Relu", net.gemm("x", 96, 64))
    gate = net.add("Sigmoid", net.gemm(x, 64, 48))
    value = net.add("Tanh", net.add("MatMul", x, net.weights(64, 48)))
    x = net.add("LeakyRelu", net.add("Mul", gate, value), alpha=0.1)
    return net.model(net.gemm(x, 48, 12))


def pooling_cnn() -> onnx.ModelProto:
    """Average pools with and without padding, branches that are concatenated."""
    net = FloatNetwork("pooling_cnn", (1, 2, 20, 20), 4)
    x = net.conv("x", 2, 8, (5, 5), pads=[2, 2, 2, 2])
    x = net.add("AveragePool", x, kernel_shape=[2, 2], strides=[2, 2])
    a = net.conv(x, 8, 6, (1, 1))
    b = net.conv(x, 8, 10, (3, 3), pads=[1, 1, 1, 1], dilations=[1, 1])
    c = net.add("AveragePool", x, kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    x = net.add("Concat", a, b, c, axis=1)
    x = net.conv(x, 24, 16, (3, 3), strides=[2, 2])
    x = net.add("Flatten", net.add("GlobalAveragePool", x))
    return net.model(net.gemm(x, 16, 5))


def sequence_cnn() -> onnx.ModelProto:
    """Convolutions in one dimension: stride, groups, dilation."""
    net = FloatNetwork("sequence_cnn", (1, 6, 64), 5)
    x = net.conv("x", 6, 12, (7,), strides=[2], pads=[3, 3])
    x = net.conv(x, 12, 12, (5,), group=12, pads=[2, 2])
    x = net.conv(x, 12, 16, (3,), dilations=[2], pads=[2, 2])
    x = net.conv(x, 16, 16, (3,), group=4, pads=[1, 1])
    x = net.add("Flatten", net.add("GlobalAveragePool", x))
    return net.model(net.gemm(x, 16, 8))


NETWORKS: dict[str, tuple[Callable[[], onnx.ModelProto], bool]] = {
    "depthwise_cnn": (depthwise_cnn, False),
    "residual_cnn": (residual_cnn, False),
    "perceptron": (perceptron, False),
    "pooling_cnn": (pooling_cnn, False),
    "sequence_cnn": (sequence_cnn, True),
}
"""Name to the float model, and whether its activations and weights become uint8."""


class _Samples:
    """What onnxruntime.quantization draws ranges from."""

    def __init__(self, shape: Shape) -> None:
        rng = np.random.default_rng(0)
        self.inputs = iter([{"x": rng.uniform(-1, 1, shape).astype(np.float32)} for _ in range(16)])

    def get_next(self) -> dict[str, Any] | None:
        """The next input."""
        return next(self.inputs, None)


def quantized(name: str, form: str = "QDQ") -> onnx.ModelProto:
    """One of `NETWORKS`, per channel where it is int8.

    Args:
        name: of the network.
        form: "QDQ" or "QOperator".
    """
    from onnxruntime import quantization as q

    make, unsigned = NETWORKS[name]
    model = make()
    shape = tuple(d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim)
    kind = q.QuantType.QUInt8 if unsigned else q.QuantType.QInt8
    level = logging.getLogger().level
    logging.getLogger().setLevel(logging.ERROR)  # it advises to preprocess
    try:
        with tempfile.TemporaryDirectory() as folder:
            paths = Path(folder, "float.onnx"), Path(folder, "quantized.onnx")
            onnx.save(model, paths[0])
            q.quantize_static(
                *paths,
                _Samples(shape),
                quant_format=q.QuantFormat[form],
                per_channel=not unsigned,
                activation_type=kind,
                weight_type=kind,
            )
            return onnx.load(paths[1])
    finally:
        logging.getLogger().setLevel(level)


def inputs(model: onnx.ModelProto, count: int) -> Iterator[np.ndarray[Any, Any]]:
    """Values for the one input of a model."""
    rng = np.random.default_rng(7)
    dims = model.graph.input[0].type.tensor_type.shape.dim
    for _ in range(count):
        yield rng.uniform(-1.2, 1.2, [d.dim_value or 1 for d in dims]).astype(np.float32)
