"""Random quantized ONNX graphs in QDQ form beside onnxruntime.

    python benchmarks/qdq_graphs.py [--graphs 1000] [--first 0] [--inputs 4]

Each graph has some layers between DequantizeLinear and QuantizeLinear: sums of products with biases
of any scale, clamps after everything, soft maxima of any depth, averages, reductions of every kind,
tables; optional inputs, zero points among them, are left out where that means the same. All integer
tensors of covp's reader are compared with those of onnxruntime, which executes the file as it is;
what differs is counted by the documented rule that allows it. Exit status 1 where no rule does.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

import covp
from covp.evaluation import Sample
from covp.evaluation.source.check import SourceCheck, compare
from covp.evaluation.source.worker import onnxruntime

Array = NDArray[Any]
REDUCTIONS = (
    "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean",
    "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare",
)  # fmt: skip
SHARED_SCALES = (1 / 256, 1 / 255, 1 / 128, 1 / 64, 0.02, 0.05, 0.1)


@dataclass(frozen=True)
class Value:
    """A quantized value: its integers' name, shape and the largest real magnitude it stands for."""

    name: str
    shape: tuple[int, ...]
    reach: float
    scale: float
    zero: int


class Network:
    """A graph that grows layer by layer.

    Args:
        seed: the same one gives the same graph.
    """

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.dtype = np.dtype(str(self.rng.choice(["int8", "uint8"])))
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.image = bool(self.rng.random() < 0.6)
        shape = (1, int(self.rng.integers(1, 7)), *self.rng.integers(3, 9, 2))
        if not self.image:
            shape = (int(self.rng.integers(1, 5)), int(self.rng.integers(1, 40)))
        self.shape = tuple(int(n) for n in shape)
        scale, zero = self.scale(2.0), self.zero()
        self.source = Value("x", self.shape, 128 * scale, scale, zero)

    def constant(self, value: Any) -> str:
        """A new constant's name."""
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def add(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """A node; its output's name."""
        name = f"{kind.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], name, **attributes))
        return name

    def pick(self, *options: Any) -> Any:
        """One of them."""
        return options[int(self.rng.integers(len(options)))]

    def zero(self) -> int:
        """A zero point of the activations' type."""
        info = np.iinfo(self.dtype)
        middle = 0 if self.dtype == np.int8 else 128
        return int(self.pick(info.min, middle, info.max, self.rng.integers(info.min, info.max + 1)))

    def scale(self, reach: float) -> float:
        """A step with which some 256 of them hold about the reach, or one that is usual."""
        if self.rng.random() < 0.25:
            return float(np.float32(self.pick(*SHARED_SCALES)))
        if self.rng.random() < 0.25:  # a power of two: exact ties
            return float(2.0 ** np.round(np.log2(max(reach, 1e-6) / 128)))
        return float(np.float32(max(reach, 1e-6) / 128 * self.rng.uniform(0.4, 2.0)))

    def real(self, value: Value) -> str:
        """DequantizeLinear."""
        scale, point = self.constant(np.float32(value.scale)), self.point(value.zero)
        return self.add("DequantizeLinear", value.name, scale, *point)

    def point(self, zero: int, dtype: Any = None, default: Any = None) -> list[str]:
        """A zero point, or nothing: one of 0 may be left out.

        Args:
            zero: its value.
            dtype: of the integers; None: of activations.
            default: the type that it has to be for that; None: any.
        """
        dtype = np.dtype(dtype or self.dtype)
        if zero == 0 and dtype == np.dtype(default or dtype) and self.rng.random() < 0.5:
            return [] if self.rng.random() < 0.5 else [""]
        return [self.constant(np.array(zero, dtype))]

    def quantize(self, name: str, scale: float, zero: int) -> str:
        """QuantizeLinear, whose type is uint8 where it has no zero point."""
        point = self.point(zero, default=np.uint8)
        return self.add("QuantizeLinear", name, self.constant(np.float32(scale)), *point)

    def quantized(self, name: str, shape: tuple[int, ...], reach: float) -> Value:
        """A clamp, or none, and QuantizeLinear."""
        kind = self.pick("", "", "Relu", "Clip", "Clip")
        if kind == "Clip":
            ends = np.sort(self.rng.uniform(-0.7, 0.7, 2) * reach).astype(np.float32)
            ends = self.pick(ends, np.array([0, 6], np.float32), ends)
            low, high = (self.constant(end) for end in ends)
            limits: list[str] = self.pick([low, high], [low, high], [low], ["", high], [])
            name = self.add("Clip", name, *limits)
        elif kind:
            name = self.add(kind, name)
        scale, zero = self.scale(reach), self.zero()
        return Value(self.quantize(name, scale, zero), shape, 128 * scale, scale, zero)

    def weights(self, shape: tuple[int, ...], axis: int) -> tuple[str, Array]:
        """A dequantized constant, and its scales."""
        dtype = np.dtype(self.pick("int8", "int8", str(self.dtype)))
        info = np.iinfo(dtype)
        stored = self.rng.integers(info.min, info.max + 1, shape).astype(dtype)
        count = self.pick(1, shape[axis])
        scale = np.float32(self.rng.uniform(0.2, 1.0, count) / 128)
        zero = np.full(count, self.pick(0, 0, 5) if dtype == np.int8 else 128).astype(dtype)
        if count == 1:
            scale, zero = scale.reshape(()), zero.reshape(())
        names = [self.constant(each) for each in (stored, scale)]
        if zero.any() or self.rng.random() < 0.5:
            names.append(self.constant(zero))
        return self.add("DequantizeLinear", *names, axis=axis), np.atleast_1d(scale)

    def bias(self, outputs: int, unit: Array, reach: float) -> list[str]:
        """None, one in the unit of the products, or one of any scale."""
        form = self.pick("none", "unit", "unit", "any", "any", "each")
        if form == "none":
            return []
        real = self.rng.normal(0, 0.3 * reach, outputs)
        scale = np.float32(unit)
        if form != "unit":
            count = outputs if form == "each" else 1
            scale = np.float32(10 ** self.rng.uniform(-3, 0, count) * reach / 4)
        stored = np.clip(np.rint(real / scale), -(2**30), 2**30).astype(np.int32)
        scale = scale.reshape(()) if scale.size == 1 else np.resize(scale, outputs)
        names = [self.constant(each) for each in (stored, scale)]
        if self.rng.random() < 0.5:
            names.append(self.constant(np.zeros(scale.shape, np.int32)))
        return [self.add("DequantizeLinear", *names, axis=0)]

    # -- layers --------------------------------------------------------------------------------

    def conv(self, x: Value) -> Value:
        """Conv, grouped or depthwise, with strides, dilations and pads."""
        channels, size = x.shape[1], x.shape[2:]
        kernel = [int(self.rng.integers(1, min(3, n) + 1)) for n in size]
        groups = self.pick(1, 1, channels)
        outputs = int(self.rng.integers(1, 4)) * (groups if groups > 1 else 2)
        weights, scales = self.weights((outputs, channels // groups, *kernel), 0)
        depth = channels // groups * int(np.prod(kernel))
        reach = x.reach * float(scales.max()) * 80 * depth**0.5
        stride, pads = (
            [int(n) for n in self.rng.integers(1, 3, 2)],
            self.pick([0] * 4, [1, 0, 1, 1]),
        )
        bias = self.bias(outputs, np.float32(x.scale) * scales, reach)
        made = self.add(
            "Conv", self.real(x), weights, *bias, group=groups, strides=stride, pads=pads
        )
        extents = [
            (n + pads[i] + pads[i + 2] - k) // s + 1
            for i, (n, k, s) in enumerate(zip(size, kernel, stride, strict=True))
        ]
        return self.quantized(made, (1, outputs, *extents), reach)

    def gemm(self, x: Value) -> Value:
        """Gemm, or MatMul with constant weights."""
        x = self.flat(x)
        depth, outputs = x.shape[1], int(self.rng.integers(1, 24))
        kind = self.pick("Gemm", "Gemm", "MatMul")
        swapped = kind == "Gemm" and bool(self.rng.random() < 0.5)
        axis = 0 if swapped else 1
        shape = (outputs, depth) if swapped else (depth, outputs)
        weights, scales = self.weights(shape, axis)
        alpha = float(self.pick(1.0, 1.0, 0.5, 0.3)) if kind == "Gemm" else 1.0
        reach = alpha * x.reach * float(scales.max()) * 80 * depth**0.5
        if kind == "MatMul":
            made = self.add("MatMul", self.real(x), weights)
        else:
            unit = np.float32(np.float32(alpha) * np.float32(x.scale)) * scales
            bias = self.bias(outputs, unit, reach)
            made = self.add("Gemm", self.real(x), weights, *bias, transB=int(swapped), alpha=alpha)
        return self.quantized(made, (x.shape[0], outputs), reach)

    def flat(self, x: Value) -> Value:
        """The value as a matrix."""
        if len(x.shape) == 2:
            return x
        shape = (x.shape[0], int(np.prod(x.shape[1:])))
        made = self.quantize(self.add("Flatten", self.real(x)), x.scale, x.zero)
        return Value(made, shape, x.reach, x.scale, x.zero)

    def binary(self, x: Value) -> Value:
        """Add or Mul of the value and a constant, or of the value and itself."""
        kind = self.pick("Add", "Mul")
        if self.rng.random() < 0.3:
            other, reach = self.real(x), x.reach
        else:
            shape = self.pick(x.shape, (1,) * len(x.shape), (1, *x.shape[1:]))
            info = np.iinfo(self.dtype)
            stored = self.rng.integers(info.min, info.max + 1, shape).astype(self.dtype)
            scale = self.scale(x.reach)
            names = [self.constant(each) for each in (stored, np.float32(scale))]
            names += self.point(self.zero())
            other, reach = self.add("DequantizeLinear", *names), 128 * scale
        made = self.add(kind, self.real(x), other)
        total = max(x.reach, reach) if kind == "Add" else x.reach * reach
        return self.quantized(made, x.shape, total)

    def pool(self, x: Value) -> Value:
        """AveragePool, GlobalAveragePool or MaxPool."""
        kind = self.pick("AveragePool", "AveragePool", "GlobalAveragePool", "MaxPool")
        if kind == "GlobalAveragePool":
            made = self.add(kind, self.real(x))
            return self.quantized(made, (*x.shape[:2], 1, 1), 0.4 * x.reach)
        kernel = [int(self.rng.integers(1, min(4, n) + 1)) for n in x.shape[2:]]
        strides = [int(n) for n in self.rng.integers(1, 3, 2)]
        pads = [1, 1, 1, 1] if min(kernel) > 1 and self.rng.random() < 0.5 else [0] * 4
        more = {} if kind == "MaxPool" else {"count_include_pad": self.pick(0, 1)}
        made = self.add(kind, self.real(x), kernel_shape=kernel, strides=strides, pads=pads, **more)
        extents = [
            (n + 2 * pads[0] - k) // s + 1
            for n, k, s in zip(x.shape[2:], kernel, strides, strict=True)
        ]
        return self.quantized(made, (*x.shape[:2], *extents), 0.7 * x.reach)

    def softmax(self, x: Value) -> Value:
        """Softmax along any axis of several elements."""
        rank = len(x.shape)
        axes = [n for n in range(-rank, rank) if x.shape[n] > 1] or [-1]
        axis = int(self.pick(*axes))
        made = self.add("Softmax", self.real(x), axis=axis)
        scale = float(np.float32(self.pick(1 / 256, 1 / 255, 1 / 128, 0.0039, 0.05)))
        zero = self.pick(int(np.iinfo(self.dtype).min), self.zero())
        return Value(self.quantize(made, scale, zero), x.shape, 1.0, scale, zero)

    def table(self, x: Value) -> Value:
        """A function of one value."""
        kind = self.pick("Sigmoid", "Tanh", "LeakyRelu", "HardSwish", "Relu", "Abs", "Neg")
        more = {"alpha": float(self.rng.uniform(0.01, 0.9))} if kind == "LeakyRelu" else {}
        made = self.add(kind, self.real(x), **more)
        return self.quantized(made, x.shape, min(x.reach, 1) if kind in "SigmoidTanh" else x.reach)

    def moved(self, x: Value) -> Value:
        """Transpose, Concat, or a requantization."""
        kind = self.pick("Transpose", "Concat", "")
        if kind == "Transpose":
            order = [0, *(int(n) for n in 1 + self.rng.permutation(len(x.shape) - 1))]
            made = self.add(kind, self.real(x), perm=order)
            return self.quantized(made, tuple(x.shape[i] for i in order), x.reach)
        if kind == "Concat":
            made = self.add(kind, self.real(x), self.real(x), axis=1)
            return self.quantized(made, (x.shape[0], 2 * x.shape[1], *x.shape[2:]), x.reach)
        return self.quantized(self.real(x), x.shape, x.reach)

    def reduction(self, x: Value) -> Value:
        """Any reduction over some axes, or over all of them, which are left out then."""
        kind = self.pick(*REDUCTIONS, "ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin")
        rank = len(x.shape)
        axes = np.sort(self.rng.permutation(rank)[: self.pick(1, 1, 1, 2, rank)])
        named: list[str] = []
        if len(axes) < rank or self.rng.random() < 0.5:
            shown = axes - rank if self.rng.random() < 0.5 else axes
            named = [self.constant(shown.astype(np.int64))]
        # one less axis is another network: images have four
        made = self.add(kind, self.real(x), *named, keepdims=1)
        count = int(np.prod([x.shape[axis] for axis in axes]))
        if kind == "ReduceProd" and (count > 4 or x.reach > 1e7):
            return self.table(x)  # the order of products decides which of them overflow
        reach = {"ReduceMean": 0.5, "ReduceSum": 0.5 * count, "ReduceL1": 0.5 * count}
        reach |= {"ReduceL2": count**0.5, "ReduceSumSquare": count * x.reach}
        shape = tuple(1 if n in axes else extent for n, extent in enumerate(x.shape))
        return self.quantized(made, shape, reach.get(kind, 1.0) * x.reach)

    def model(self) -> onnx.ModelProto:
        """The graph, opset 20, quantized from its input to its output."""
        x = self.source
        for _ in range(int(self.rng.integers(1, 5))):
            flat = len(x.shape) == 2
            layers = [self.gemm, self.binary, self.softmax, self.table, self.moved, self.reduction]
            if not flat and min(x.shape[2:]) > 0:
                layers += [self.conv, self.conv, self.pool, self.pool]
            x = self.pick(*layers)(x)
        number = helper.np_dtype_to_tensor_dtype(self.dtype)
        graph = helper.make_graph(
            self.nodes,
            "random",
            [helper.make_tensor_value_info("x", number, self.shape)],
            [helper.make_tensor_value_info(x.name, number, None)],
            self.constants,
        )
        opset = helper.make_opsetid("", 20)
        return helper.make_model(graph, opset_imports=[opset], ir_version=9)


def random_model(seed: int) -> onnx.ModelProto:
    """A graph of one to four layers."""
    return Network(seed).model()


def random_inputs(model: onnx.ModelProto, seed: int, count: int) -> list[Array]:
    """Bytes over the whole range, and such near each other."""
    value = model.graph.input[0]
    dtype = np.dtype(helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type))
    shape = [d.dim_value for d in value.type.tensor_type.shape.dim]
    rng, info = np.random.default_rng(seed), np.iinfo(dtype)
    whole = [rng.integers(info.min, info.max + 1, shape).astype(dtype) for _ in range(count)]
    near = rng.integers(info.min, info.max + 1)
    whole[-1] = np.clip(near + rng.integers(-8, 9, shape), info.min, info.max).astype(dtype)
    return whole


def main() -> int:
    """Print what differs, by rule."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graphs", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--inputs", type=int, default=4)
    options = parser.parse_args()
    start, compared, found = time.process_time(), 0, Counter[str]()
    version = f"onnxruntime {importlib.metadata.version('onnxruntime')}"
    for seed in range(options.first, options.first + options.graphs):
        result = judged(seed, options.inputs)
        compared += result.bytes
        for one in result.operators:
            found[f"{one.op}: {one.rule.name if one.rule else 'NO RULE'}"] += one.differ
            if one.rule is None:
                print(f"graph {seed}: {one}")
    print(f"{options.graphs:,} graphs, {compared:,} bytes of all tensors beside {version}")
    for name, count in found.most_common():
        print(f"{count:8,} bytes differ, {name}")
    print(f"{time.process_time() - start:.0f} s of processor time")
    return 1 if any("NO RULE" in name for name in found) else 0


def judged(seed: int, inputs: int) -> SourceCheck:
    """A random graph's reference beside onnxruntime, in this process."""
    model = random_model(seed)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        onnx.save(model, path)
        graph = covp.load_model(path)
        samples = [Sample.of(graph, [x]) for x in random_inputs(model, seed, inputs)]
        wanted = {"model": str(path), "inputs": ["x"], "names": [t.name for t in graph.tensors()]}
        names, _, run = onnxruntime(wanted)
        answers = [dict(zip(names, run(sample.inputs), strict=True)) for sample in samples]
        return compare(graph, samples, samples[0].outputs, answers, "onnxruntime")


if __name__ == "__main__":
    sys.exit(main())
