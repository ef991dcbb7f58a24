"""A convolutional network as PyTorch exports it: what is left of its transposes and factors."""

from __future__ import annotations

import math

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import covp
from covp.graph.onnx import read_onnx
from covp.graph.passes import run_passes
from covp.graph.reference import run_reference


class Network:
    """Nodes with random weights; each call gives the name of its result."""

    def __init__(self, channels: int, size: int, head: str) -> None:
        self.rng = np.random.default_rng(0)
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, np.ndarray] = {}
        self.shape = (1, channels, size, size)
        x = self.unit("x", channels, 8, kernel=3, kind="Relu")
        x = skip = self.node("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
        x = self.unit(x, 8, 8, kernel=3, kind="Clip", groups=8)
        x = self.node("Add", x, skip)
        x = self.node("Concat", x, self.unit(x, 8, 4, kernel=1, kind="HardSwish"), axis=1)
        if head == "flatten":
            x = self.node("Flatten", self.node("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2]))
            x = self.dense(x, 12 * (size // 4) ** 2, 10)
        else:
            x = self.node("Flatten", self.node("GlobalAveragePool", x))
            x = self.dense(x, 12, 10)
        self.output = self.node("Softmax", x, axis=1)

    def constant(self, *shape: int, low: float | None = None) -> str:
        name = f"w{len(self.constants)}"
        drawn = self.rng.standard_normal(shape) / math.sqrt(max(math.prod(shape[1:]), 1))
        value = drawn if low is None else self.rng.uniform(low, low + 1, shape)
        self.constants[name] = value.astype(np.float32)
        return name

    def node(self, kind: str, *inputs: str, **attributes: object) -> str:
        name = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], f"/{name}/{kind}", **attributes))
        return name

    def unit(
        self, x: str, inputs: int, outputs: int, kernel: int, kind: str, groups: int = 1
    ) -> str:
        weights = self.constant(outputs, inputs // groups, kernel, kernel)
        side = kernel // 2
        x = self.node("Conv", x, weights, pads=[side] * 4, group=groups)
        figures = [self.constant(outputs, low=low) for low in (0.5, -0.5, -0.5, 0.5)]
        x = self.node("BatchNormalization", x, *figures)
        limits: tuple[str, ...] = ()
        if kind == "Clip":
            limits = (self.constant(), self.constant())
            self.constants |= {
                n: np.asarray(v, np.float32) for n, v in zip(limits, (0, 6), strict=True)
            }
        return self.node(kind, x, *limits)

    def dense(self, x: str, inputs: int, outputs: int) -> str:
        return self.node(
            "Gemm", x, self.constant(outputs, inputs), self.constant(outputs), transB=1
        )

    def model(self) -> onnx.ModelProto:
        graph = helper.make_graph(
            self.nodes,
            "main_graph",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, self.shape)],
            [helper.make_tensor_value_info(self.output, TensorProto.FLOAT, [1, 10])],
            [numpy_helper.from_array(np.asarray(v), n) for n, v in self.constants.items()],
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.costly
@pytest.mark.parametrize(("channels", "head"), [(3, "flatten"), (1, "flatten"), (3, "average")])
def test_a_network_of_images(channels: int, head: str) -> None:
    model = Network(channels, 16, head).model()
    graph = read_onnx(model)
    lowered = run_passes(graph)
    kinds = [op.kind for op in lowered.ops]
    # the image's own, where it has more than one channel; no factor of a normalization is left
    assert kinds.count("TRANSPOSE") == int(channels > 1)
    assert "MUL" not in kinds and kinds.count("ADD") == 1
    x = np.random.default_rng(1).standard_normal((1, channels, 16, 16)).astype(np.float32)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    (wanted,) = session.run(None, {"x": x})
    for values in (run_reference(graph, [x]), run_reference(lowered, [x])):
        np.testing.assert_allclose(values[0], wanted, rtol=1e-4, atol=1e-6)
    with covp.Session("mps2-an386") as device:
        found = device.load(covp.compile(graph, "mps2-an386")).run(x)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-6)
