"""Synthetic models of the MLPerf Tiny topologies: seeded weights, calibrated int8 scales.

For machines that have neither the official files nor a network. Layers and shapes, and so MACs and
memory, are the official ones; what the models compute means nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.graph.attributes import (
    Activation,
    Conv2D,
    DepthwiseConv2D,
    Elementwise,
    FullyConnected,
    Padding,
    Pair,
    Pool2D,
    Softmax,
)
from covp.graph.graph import Graph, Op, Quantization, Tensor
from covp.graph.ops import definition
from covp.graph.reference import run_all

_FLOAT: np.dtype[Any] = np.dtype(np.float32)
_SEED = 20231011
_SAMPLES = 4


class _Builder:
    """Builds a float graph layer by layer; `quantized` turns it into an int8 one."""

    def __init__(self, name: str, shape: tuple[int, ...]) -> None:
        self.rng = np.random.default_rng([_SEED, *name.encode()])
        self.source = Tensor("input", shape, _FLOAT)
        self.ops: list[Op] = []
        self.name = name

    def _add(self, kind: str, inputs: list[Tensor | None], attributes: Any, shape: Any) -> Tensor:
        index = len(self.ops)
        output = Tensor(f"{kind.lower()}_{index}_output", shape or (1,), _FLOAT)
        op = Op(kind, f"{kind.lower()}_{index}", inputs, [output], attributes, index)
        if shape is None:
            output.shape = definition(kind).infer_shapes(op)[0]
        self.ops.append(op)
        return output

    def _constant(self, shape: tuple[int, ...], fan_in: int, suffix: str) -> Tensor:
        data = self.rng.normal(0, np.sqrt(2 / fan_in), shape).astype(np.float32)
        return Tensor(f"layer_{len(self.ops)}_{suffix}", shape, _FLOAT, None, data)

    def conv(
        self,
        x: Tensor,
        filters: int,
        kernel: Pair,
        stride: Pair = (1, 1),
        activation: Activation = "relu",
    ) -> Tensor:
        shape = (filters, *kernel, x.shape[3])
        weights = self._constant(shape, kernel[0] * kernel[1] * x.shape[3], "weights")
        bias = self._constant((filters,), 200, "bias")
        attributes = Conv2D(stride, _same(x, kernel, stride), (1, 1), activation)
        return self._add("CONV_2D", [x, weights, bias], attributes, None)

    def depthwise(
        self,
        x: Tensor,
        kernel: Pair,
        stride: Pair = (1, 1),
        same: bool = True,
        activation: Activation = "relu",
    ) -> Tensor:
        weights = self._constant((1, *kernel, x.shape[3]), kernel[0] * kernel[1], "weights")
        bias = self._constant((x.shape[3],), 200, "bias")
        padding = _same(x, kernel, stride) if same else Padding()
        attributes = DepthwiseConv2D(stride, padding, (1, 1), 1, activation)
        return self._add("DEPTHWISE_CONV_2D", [x, weights, bias], attributes, None)

    def dense(self, x: Tensor, outputs: int, activation: Activation = "none") -> Tensor:
        weights = self._constant((outputs, x.shape[-1]), x.shape[-1], "weights")
        bias = self._constant((outputs,), 200, "bias")
        return self._add("FULLY_CONNECTED", [x, weights, bias], FullyConnected(activation), None)

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        return self._add("ADD", [x, y], Elementwise("relu"), None)

    def classify(self, x: Tensor, classes: int, pool: bool = True) -> Tensor:
        if pool:
            window = (x.shape[1], x.shape[2])
            x = self._add("AVERAGE_POOL_2D", [x], Pool2D(window, window, Padding()), None)
        flat = (1, x.size)
        target = Tensor("shape", (2,), np.dtype(np.int32), None, np.array(flat, np.int32))
        x = self._add("RESHAPE", [x, target], None, flat)
        return self._add("SOFTMAX", [self.dense(x, classes)], Softmax(), None)

    def quantized(self, output: Tensor) -> Graph:
        """int8 with per-channel weights; ranges are taken from a few random inputs."""
        graph = Graph(self.name, [self.source], [output], self.ops)
        ranges = self._ranges(graph)
        tensors: dict[int, Tensor] = {}

        def convert(tensor: Tensor, op: Op) -> Tensor:
            if id(tensor) not in tensors:
                tensors[id(tensor)] = _activation(tensor, op, ranges, tensors)
            return tensors[id(tensor)]

        ops = []
        for op in self.ops:
            first = convert(op.input(0), op)
            rest = [
                t if t is None or t.dtype != _FLOAT else None if t.constant else convert(t, op)
                for t in op.inputs[1:]
            ]
            if op.kind in _WEIGHTED:
                weights = _weights(op.input(1), per_channel=op.kind != "FULLY_CONNECTED")
                rest = [weights, _bias(op.input(2), first, weights)]
            result = convert(op.output, op)
            ops.append(Op(op.kind, op.name, [first, *rest], [result], op.attributes, op.index))
        return Graph(self.name, [tensors[id(self.source)]], [tensors[id(output)]], ops)

    def _ranges(self, graph: Graph) -> dict[str, tuple[float, float]]:
        ranges: dict[str, tuple[float, float]] = {}
        for _ in range(_SAMPLES):
            x = self.rng.normal(0, 1, self.source.shape).astype(np.float32)
            for name, value in run_all(graph, [x]).items():
                low, high = ranges.get(name, (0.0, 0.0))
                ranges[name] = min(low, float(value.min())), max(high, float(value.max()))
        return ranges


_WEIGHTED = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED")


def _same(x: Tensor, kernel: Pair, stride: Pair) -> Padding:
    total = [
        max((-(-x.shape[i + 1] // stride[i]) - 1) * stride[i] + kernel[i] - x.shape[i + 1], 0)
        for i in (0, 1)
    ]
    top, left = total[0] // 2, total[1] // 2
    return Padding(top, total[0] - top, left, total[1] - left)


def _int8(name: str, shape: tuple[int, ...], scale: Any, zero: Any, data: Any = None) -> Tensor:
    scales = np.atleast_1d(np.asarray(scale, np.float32))
    zeros = np.broadcast_to(np.asarray(zero, np.int32), scales.shape)
    return Tensor(name, shape, np.dtype(np.int8), Quantization(scales, zeros), data)


def _activation(
    tensor: Tensor, op: Op, ranges: dict[str, tuple[float, float]], tensors: dict[int, Tensor]
) -> Tensor:
    if op.kind == "SOFTMAX" and tensor is op.output:
        return _int8(tensor.name, tensor.shape, 1 / 256, -128)
    if op.kind in ("AVERAGE_POOL_2D", "RESHAPE") and tensor is op.output:
        source = tensors[id(op.input(0))]
        return Tensor(tensor.name, tensor.shape, source.dtype, source.quantization)
    low, high = ranges[tensor.name]
    scale = max(high - low, 1e-6) / 255
    return _int8(tensor.name, tensor.shape, scale, round(-128 - low / scale))


def _weights(tensor: Tensor, per_channel: bool) -> Tensor:
    assert tensor.data is not None
    axis = 3 if tensor.shape[0] == 1 and len(tensor.shape) == 4 else 0
    others = tuple(i for i in range(len(tensor.shape)) if i != axis)
    largest = np.abs(tensor.data).max(axis=others if per_channel else None, keepdims=True)
    scale = (largest / 127).astype(np.float32)
    data = np.clip(np.rint(tensor.data / scale), -127, 127).astype(np.int8)
    result = _int8(tensor.name, tensor.shape, scale.reshape(-1), 0, data)
    if per_channel and result.quantization is not None:
        parameters = result.quantization
        result.quantization = Quantization(parameters.scale, parameters.zero_point, axis)
    return result


def _bias(tensor: Tensor, source: Tensor, weights: Tensor) -> Tensor:
    assert tensor.data is not None and weights.quantization is not None
    scale = (np.float32(source.scale) * weights.quantization.scale).astype(np.float32)
    data: NDArray[np.int32] = np.rint(tensor.data / scale).astype(np.int32)
    quantization = Quantization(scale, np.zeros(scale.shape, np.int32))
    return Tensor(tensor.name, tensor.shape, np.dtype(np.int32), quantization, data)


def _resnet() -> Graph:
    b = _Builder("resnet", (1, 32, 32, 3))
    x = b.conv(b.source, 16, (3, 3))
    y = b.conv(b.conv(x, 16, (3, 3)), 16, (3, 3), activation="none")
    x = b.add(x, y)
    for filters in (32, 64):
        y = b.conv(b.conv(x, filters, (3, 3), (2, 2)), filters, (3, 3), activation="none")
        x = b.add(y, b.conv(x, filters, (1, 1), (2, 2), "none"))
    return b.quantized(b.classify(x, 10))


def _kws() -> Graph:
    b = _Builder("kws", (1, 49, 10, 1))
    x = b.conv(b.source, 64, (10, 4), (2, 2))
    for _ in range(4):
        x = b.conv(b.depthwise(x, (3, 3)), 64, (1, 1))
    return b.quantized(b.classify(x, 12))


def _vww() -> Graph:
    b = _Builder("vww", (1, 96, 96, 3))
    x = b.conv(b.source, 8, (3, 3), (2, 2))
    blocks = [(16, 1), (32, 2), (32, 1), (64, 2), (64, 1), (128, 2), *[(128, 1)] * 5]
    for filters, stride in [*blocks, (256, 2), (256, 1)]:
        x = b.conv(b.depthwise(x, (3, 3), (stride, stride)), filters, (1, 1))
    return b.quantized(b.classify(x, 2))


def _toycar() -> Graph:
    b = _Builder("toycar", (1, 640))
    x = b.source
    for width in (128, 128, 128, 128, 8, 128, 128, 128, 128):
        x = b.dense(x, width, "relu")
    return b.quantized(b.dense(x, 640))


def _sww() -> Graph:
    b = _Builder("sww", (1, 30, 1, 40))
    x = b.source
    for taps, filters in ((3, 128), (5, 128), (10, 128), (15, 32)):
        x = b.depthwise(x, (taps, 1), same=False, activation="none")
        x = b.conv(x, filters, (1, 1))
    return b.quantized(b.classify(x, 3, pool=False))


TOPOLOGIES: dict[str, Callable[[], Graph]] = {
    "resnet": _resnet,
    "kws": _kws,
    "vww": _vww,
    "toycar": _toycar,
    "sww": _sww,
}
"""Zoo name to builder."""
