"""`random_graph`: operators in sequence and branching, deep and wide, from a seed.

Each operator takes a tensor that is there already, mostly a recent one, so that chains, diamonds,
tensors that live long and ones that die at once come up; scales keep most of them from saturating.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from covp.errors import CovpError
from covp.graph.attributes import (
    Activation,
    Concatenation,
    Conv2D,
    DepthwiseConv2D,
    Elementwise,
    FullyConnected,
    LeakyRelu,
    Mean,
    Pad,
    Padding,
    Pair,
    Pool2D,
    ResizeNearest,
    Softmax,
    Split,
    StridedSlice,
    Transpose,
)
from covp.graph.graph import Graph, Tensor
from covp.graph.zoo.builder import GraphBuilder

LARGEST = 1500
"""Elements of a tensor."""
_MACS = 60_000
_ACTIVATIONS: tuple[Activation, ...] = ("none", "none", "relu", "relu6", "relu_n1_to_1")


def random_graph(seed: int, as_litert: bool = False) -> Graph:
    """A graph named g and the seed.

    Args:
        seed: the same one gives the same graph.
        as_litert: only operators that LiteRT computes exactly as TFLM does, no floats, no extreme
            scales and biases.
    """
    return _Grower(seed, as_litert).graph()


class _Grower:
    def __init__(self, seed: int, as_litert: bool) -> None:
        self.rng = np.random.default_rng(seed)
        self.builder = GraphBuilder(f"g{seed}")
        self.as_litert = as_litert
        self.pool: list[Tensor] = []
        self.used: set[int] = set()
        self.inexact: set[int] = set()  # floats whose last bits depend on the order of sums
        # share of extreme numbers; LiteRT aborts on some
        self.extreme = 0.0 if as_litert else float(self.rng.choice([0, 0, 0.1, 0.5]))
        self.newest = float(self.rng.choice([0.97, 0.7, 0.2]))  # share of chaining

    def graph(self) -> Graph:
        for _ in range(self._int(1, 3)):
            shape = tuple(self._int(1, 9) for _ in range(self._of([4, 4, 4, 4, 3, 2, 1])))
            if len(shape) == 4:
                shape = (self._of([1, 1, 1, 2]), *shape[1:])
            dtype = np.int8 if self.as_litert or self._chance(0.85) else np.float32
            scale = self._scale() if dtype == np.int8 else None
            self.pool.append(self.builder.input(shape, dtype, scale, self._zero()))
        length = self._of([1, 3, 5, 8, 12, 40])
        while len(self.builder.ops) < length:
            self._grow()
        return self.builder.graph(*self._outputs())

    def _outputs(self) -> list[Tensor]:
        made = [tensor for op in self.builder.ops for tensor in op.outputs]
        last = [tensor for tensor in made if id(tensor) not in self.used]
        if len(last) > 1 and self._chance(0.15):
            last.pop(self._int(0, len(last) - 1))  # its branch is dead
        if self._chance(0.3):
            last.append(self._of(made))  # lives to the end, though others use it
        return list({id(tensor): tensor for tensor in last}.values())

    def _grow(self) -> None:
        """Add an operator; nothing where the one that was drawn does not fit."""
        x = self.pool[-1] if self._chance(self.newest) else self._of(self.pool)
        kinds = _FLOAT if x.dtype == np.float32 else _LITERT if self.as_litert else _INT8
        if not x.shape:
            kinds = _SCALAR
        elif x.size > LARGEST // 2 and self._chance(0.7):
            kinds = _SHRINKING
        count = len(self.builder.ops)
        try:
            results = self._of(kinds)(self, x)
        except (CovpError, ValueError):  # a window that does not fit its image
            results = []
        is_odd = any(t.size > LARGEST or min(t.shape, default=1) < 1 for t in results)
        if not results or is_odd:
            del self.builder.ops[count:]
            return
        for op in self.builder.ops[count:]:
            self.used |= {id(t) for t in op.inputs if t is not None}
            if op.output.dtype == np.float32 and (
                op.kind not in _EXACT or any(id(t) in self.inexact for t in op.inputs)
            ):
                self.inexact |= {id(t) for t in op.outputs}
        self.pool += results

    # numbers

    def _int(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high + 1))

    def _of(self, choices: Any) -> Any:
        return choices[int(self.rng.integers(len(choices)))]

    def _chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def _scale(self) -> float:
        return float(np.float32(2.0 ** self.rng.uniform(-8, -1)))

    def _zero(self) -> int:
        return self._int(-128, 127) if self._chance(0.5) else int(self._of([-128, 0, -1, 127]))

    def _scaled_to(self, deviation: float) -> float:
        """A scale for real values of this standard deviation; now and then far from it."""
        exponent = self.rng.uniform(-1, 2)
        if self._chance(self.extreme):
            exponent = self.rng.uniform(-24, 24)
        return float(np.float32(max(deviation, 1e-12) / 50 * 2.0**exponent))

    def _around(self, x: Tensor) -> float:
        return 0.0 if x.quantization is None else float(x.scale) * 60

    def _weights(self, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        if dtype == np.float32:
            return self.rng.normal(0, 0.5, shape).astype(np.float32)
        limit = self._of([127, 127, 127, 20, 1])
        data = self.rng.integers(-limit, limit + 1, shape).astype(np.int8)
        if self._chance(self.extreme):
            data = np.where(data < 0, -127, 127).astype(np.int8)
        if self._chance(0.2):
            data[self.rng.random(shape) < 0.8] = 0
        return data

    def _add(self, kind: str, *inputs: Tensor | None, **how: Any) -> list[Tensor]:
        if inputs[0] is not None and inputs[0].dtype == np.float32:
            how = {k: v for k, v in how.items() if k not in ("scale", "zero_point")}
        return self.builder.add_all(kind, *inputs, **how)

    # operators

    def _weighted(
        self, kind: str, x: Tensor, shape: tuple[int, ...], axis: int, terms: int, attributes: Any
    ) -> list[Tensor]:
        """One with weights of this shape, their scales along ``axis``."""
        outputs, bias = shape[axis], None
        if x.dtype == np.float32:
            weights = self.builder.constant(self._weights(shape, np.float32))
            bias = self.builder.constant(self.rng.normal(0, 1, outputs).astype(np.float32))
            return self._add(kind, x, weights, bias, attributes=attributes)
        count = outputs if kind != "FULLY_CONNECTED" and self._chance(0.7) else 1
        scales = np.float32(2.0 ** self.rng.uniform(-9, -6, count))
        data = self._weights(shape, np.int8)
        weights = self.builder.constant(data, scales, axis=axis)
        products = np.float32(x.scale) * scales
        deviation = math.sqrt(terms) * 60 * float(np.abs(data).mean() + 1)
        if self.as_litert or self._chance(0.9):
            bias = self.builder.constant(self._bias(outputs, deviation), products)
        scale = self._scaled_to(deviation * float(products.max()))
        return self._add(
            kind, x, weights, bias, attributes=attributes, scale=scale, zero_point=self._zero()
        )

    def _bias(self, count: int, deviation: float) -> NDArray[np.int32]:
        if not self._chance(self.extreme):
            return np.asarray(self.rng.normal(0, deviation, count), np.int32)
        return self.rng.integers(-(2**31), 2**31, count).astype(np.int32)

    def _window(self, x: Tensor, largest: int) -> tuple[Pair, Pair, Pair]:
        """Sides, strides and dilations of a window."""
        sides = self._int(1, min(largest, x.shape[1])), self._int(1, min(largest, x.shape[2]))
        strides = self._of([(1, 1), (1, 1), (2, 2), (self._int(1, 3), self._int(1, 3))])
        dilation = self._of([(1, 1), (1, 1), (1, 1), (self._int(1, 2), self._int(1, 3))])
        return sides, strides, dilation if strides == (1, 1) else (1, 1)

    def _padding(self, x: Tensor, sides: Pair, strides: Pair, dilation: Pair) -> Padding:
        """SAME or VALID."""
        if self._chance(0.4):
            return Padding()
        edges = []
        for extent, side, stride, step in zip(x.shape[1:3], sides, strides, dilation, strict=True):
            total = (-(-extent // stride) - 1) * stride + (side - 1) * step + 1 - extent
            edges += [max(total, 0) // 2, max(total, 0) - max(total, 0) // 2]
        return Padding(*edges)

    def conv(self, x: Tensor) -> list[Tensor]:
        if len(x.shape) != 4:
            return []
        sides, strides, dilation = self._window(x, 4)
        attributes = Conv2D(
            strides, self._padding(x, sides, strides, dilation), dilation, self._of(_ACTIVATIONS)
        )
        terms = sides[0] * sides[1] * x.shape[3]
        outputs = self._int(1, max(1, min(16, _MACS // (terms * x.shape[1] * x.shape[2]))))
        return self._weighted("CONV_2D", x, (outputs, *sides, x.shape[3]), 0, terms, attributes)

    def depthwise(self, x: Tensor) -> list[Tensor]:
        if len(x.shape) != 4:
            return []
        sides, strides, dilation = self._window(x, 5)
        strides = (strides[0], strides[0])  # the only ones that LiteRT takes
        times = self._of([1, 1, 1, 2, 3])
        padding = self._padding(x, sides, strides, dilation)
        attributes = DepthwiseConv2D(strides, padding, dilation, times, self._of(_ACTIVATIONS))
        shape = (1, *sides, x.shape[3] * times)
        return self._weighted("DEPTHWISE_CONV_2D", x, shape, 3, sides[0] * sides[1], attributes)

    def full(self, x: Tensor) -> list[Tensor]:
        if len(x.shape) > 1 and self._chance(0.5):
            columns, keep = x.shape[-1], True
        else:
            columns, keep = x.size // x.shape[0] if len(x.shape) > 1 else x.size, False
        outputs = self._int(1, max(1, min(30, _MACS // x.size)))
        attributes = FullyConnected(self._of(_ACTIVATIONS), keep)
        return self._weighted("FULLY_CONNECTED", x, (outputs, columns), 0, columns, attributes)

    def elementwise(self, x: Tensor) -> list[Tensor]:
        kind, y = self._of(["ADD", "ADD", "SUB", "MUL"]), x
        partners = [t for t in self.pool if t.dtype == x.dtype and _broadcast(x.shape, t.shape)]
        form = self._int(0, 3)
        if form == 0:
            shape = tuple(self._of([extent, 1]) for extent in x.shape)[self._int(0, 1) :] or (1,)
            y = self._constant(shape, x.dtype)
        elif form < 3:
            y = self._of(partners)
        first, second = (x, y) if self._chance(0.5) or self.as_litert else (y, x)
        if first.data is not None:
            first, second = second, first
        real = self._around(x) * self._around(y) if kind == "MUL" else self._around(x)
        return self._add(
            kind,
            first,
            second,
            attributes=Elementwise(self._of(_ACTIVATIONS)),
            scale=self._scaled_to(max(real, self._around(y) if kind != "MUL" else 0)),
            zero_point=self._zero(),
        )

    def _constant(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Tensor:
        if dtype == np.float32:
            return self.builder.constant(self.rng.normal(0, 1, shape).astype(np.float32))
        data = self.rng.integers(-128, 128, shape).astype(np.int8)
        return self.builder.constant(data, self._scale(), self._zero())

    def pool_(self, x: Tensor) -> list[Tensor]:
        if len(x.shape) != 4:
            return []
        sides, strides, _ = self._window(x, 6)
        padding = self._padding(x, sides, strides, (1, 1))
        attributes = Pool2D(sides, strides, padding, self._of(_ACTIVATIONS))
        return self._add(self._of(["AVERAGE_POOL_2D", "MAX_POOL_2D"]), x, attributes=attributes)

    def function(self, x: Tensor) -> list[Tensor]:
        kind = self._of(["RELU", "RELU6", "LEAKY_RELU"])
        attributes = LeakyRelu(float(np.float32(self.rng.uniform(-1, 1))))
        how: dict[str, Any] = {"attributes": attributes} if kind == "LEAKY_RELU" else {}
        if self._chance(0.5):
            how |= {"scale": self._scaled_to(self._around(x)), "zero_point": self._zero()}
        return self._add(kind, x, **how)

    def table(self, x: Tensor) -> list[Tensor]:
        if self._chance(0.5):
            return self._add("LOGISTIC", x, scale=1 / 256, zero_point=-128)
        return self._add("TANH", x, scale=1 / 128, zero_point=0)

    def softmax(self, x: Tensor) -> list[Tensor]:
        return self._add("SOFTMAX", x, attributes=Softmax(1.0), scale=1 / 256, zero_point=-128)

    def reduce(self, x: Tensor) -> list[Tensor]:
        axes = tuple(i for i in range(len(x.shape)) if self._chance(0.5)) or (len(x.shape) - 1,)
        attributes = Mean(axes, self._chance(0.5))
        if self._chance(0.3):
            return self._add("REDUCE_MAX", x, attributes=attributes)
        scale = self._scaled_to(self._around(x) / 4)
        return self._add("MEAN", x, attributes=attributes, scale=scale, zero_point=self._zero())

    def pad(self, x: Tensor) -> list[Tensor]:
        edges = tuple((self._int(0, 2), self._int(0, 2)) for _ in x.shape)
        if x.dtype == np.float32:
            return self._add("PAD", x, attributes=Pad(edges, 0.0))
        if self._chance(0.3):
            return self._add("PADV2", x, attributes=Pad(edges, float(self._int(-128, 127))))
        return self._add("PAD", x, attributes=Pad(edges, float(x.zero_point)))

    def transpose(self, x: Tensor) -> list[Tensor]:
        order = tuple(map(int, self.rng.permutation(len(x.shape))))
        return self._add("TRANSPOSE", x, attributes=Transpose(order))

    def reshape(self, x: Tensor) -> list[Tensor]:
        rest = x.size
        extents: list[int] = []
        while rest > 1 and len(extents) < 3:
            extents.append(self._of([d for d in range(1, rest + 1) if rest % d == 0]))
            rest //= extents[-1]
        shape = [*extents, rest]
        if self._chance(0.5):
            shape = [1] * (4 - len(shape)) + shape
        return self._add("RESHAPE", x, shape=tuple(shape))

    def concatenation(self, x: Tensor) -> list[Tensor]:
        axis = self._int(0, len(x.shape) - 1)
        parts = [t for t in self.pool if _joins(x, t, axis)]
        if self.as_litert:
            parts = [t for t in parts if (t.scale, t.zero_point) == (x.scale, x.zero_point)]
        chosen = [x, *(self._of(parts) for _ in range(self._int(1, 3)))]
        how: dict[str, Any] = {}
        if not self.as_litert and self._chance(0.5):
            how = {"scale": self._scaled_to(self._around(x)), "zero_point": self._zero()}
        self.rng.shuffle(chosen)
        return self._add("CONCATENATION", *chosen, attributes=Concatenation(axis), **how)

    def split(self, x: Tensor) -> list[Tensor]:
        axis = self._int(0, len(x.shape) - 1)
        parts = [n for n in (2, 3, 4) if x.shape[axis] % n == 0]
        if not parts:
            return []
        return self._add("SPLIT", x, attributes=Split(axis), outputs=self._of(parts))

    def slices(self, x: Tensor) -> list[Tensor]:
        ranges: list[tuple[int, int | None, int]] = []
        for extent in x.shape:
            begin, step = self._int(0, extent - 1), self._of([1, 1, 2, -1])
            end = None if step < 0 else self._int(begin + 1, extent)
            ranges.append((begin, end, step) if self._chance(0.5) else (0, extent, 1))
        return self._add("STRIDED_SLICE", x, attributes=StridedSlice(tuple(ranges)))

    def resize(self, x: Tensor) -> list[Tensor]:
        if len(x.shape) != 4:
            return []
        size = self._int(1, 10), self._int(1, 10)
        rule = self._of([(False, False), (True, False), (False, True)])
        return self._add("RESIZE_NEAREST_NEIGHBOR", x, attributes=ResizeNearest(size, *rule))

    def requantize(self, x: Tensor) -> list[Tensor]:
        scale = self._scaled_to(self._around(x))
        return self._add("QUANTIZE", x, scale=scale, zero_point=self._zero())

    def dequantize(self, x: Tensor) -> list[Tensor]:
        return self._add("DEQUANTIZE", x, dtype=np.float32)

    def quantize(self, x: Tensor) -> list[Tensor]:
        if id(x) in self.inexact:
            return []
        scale = self._scaled_to(1.0)
        return self.builder.add_all(
            "QUANTIZE", x, dtype=np.int8, scale=scale, zero_point=self._zero()
        )


def _broadcast(shape: tuple[int, ...], other: tuple[int, ...]) -> bool:
    try:
        return math.prod(np.broadcast_shapes(shape, other)) <= LARGEST
    except ValueError:
        return False


def _joins(x: Tensor, other: Tensor, axis: int) -> bool:
    if x.dtype != other.dtype or len(x.shape) != len(other.shape):
        return False
    return all(i == axis or x.shape[i] == other.shape[i] for i in range(len(x.shape)))


Step = Callable[[_Grower, Tensor], list[Tensor]]
_G = _Grower
_MOVES: list[Step] = [
    _G.pad, _G.transpose, _G.reshape, _G.concatenation, _G.split, _G.slices, _G.resize
]  # fmt: skip
_LITERT: list[Step] = [
    *[_G.conv, _G.depthwise, _G.elementwise] * 3, _G.pool_, _G.pool_, _G.function, _G.softmax,
    _G.reduce, _G.requantize, *_MOVES,
]  # fmt: skip
_INT8: list[Step] = [*_LITERT, _G.full, _G.full, _G.full, _G.table, _G.dequantize]
_FLOAT: list[Step] = [
    _G.conv, _G.depthwise, _G.full, _G.elementwise, _G.pool_, _G.function, _G.table, _G.softmax,
    _G.reduce, _G.quantize, _G.quantize, _G.quantize, *_MOVES,
]  # fmt: skip
_SCALAR: list[Step] = [_G.elementwise, _G.reshape, _G.function]
_SHRINKING: list[Step] = [_G.pool_, _G.slices, _G.split, _G.reduce, _G.conv]
_EXACT = frozenset(
    {"DEQUANTIZE", "RELU", "RELU6", "MAX_POOL_2D", "REDUCE_MAX", "PAD", "TRANSPOSE", "RESHAPE",
     "CONCATENATION", "SPLIT", "STRIDED_SLICE", "RESIZE_NEAREST_NEIGHBOR"}
)  # fmt: skip
"""Kinds whose floats are the same in every order of computation."""
