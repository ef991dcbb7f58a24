"""Random networks that slide along time: stacks of layers with residuals and branches."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from covp.graph.attributes import (
    Concatenation,
    Conv2D,
    DepthwiseConv2D,
    Elementwise,
    FullyConnected,
    LeakyRelu,
    Mean,
    Padding,
    Pair,
    Pool2D,
    Split,
    StridedSlice,
    Transpose,
)
from covp.graph.graph import Graph, Tensor
from covp.graph.zoo.builder import GraphBuilder


class Stack:
    """A network on windows of 6 to 24 rows along axis 1 or 2.

    Args:
        draw: of Hypothesis.
        hop: no product of strides is more than divides it.
        dtype: of activations and weights.
    """

    def __init__(self, draw: st.DrawFn, hop: int, dtype: str = "int8") -> None:
        self.draw, self.hop, self.dtype = draw, hop, np.dtype(dtype)
        self.rng = np.random.default_rng(self._int(0, 2**32 - 1))
        self.builder = GraphBuilder("stack")
        self.axis = self._int(1, 2)
        self.step = 1
        shape = [1, self._int(1, 4), self._int(1, 4), self._int(1, 4)]
        shape[self.axis] = self._int(max(6, hop + 1), 24)
        scale = 0.05 if dtype == "int8" else None
        x = self.builder.input(tuple(shape), self.dtype, scale, -4)
        for _ in range(self._int(1, 5)):
            x = self._of(
                [self.convolution, self.depthwise, self.pool, self.function, self.residual,
                 self.joined, self.branches, self.parts]
            )(x)  # fmt: skip
        self.graph: Graph = self.builder.graph(
            self._of([self.keep, self.mean, self.flat, self.last])(x)
        )

    def _int(self, low: int, high: int) -> int:
        return int(self.draw(st.integers(low, high)))

    def _of(self, choices: list[Any]) -> Any:
        return self.draw(st.sampled_from(choices))

    def _weights(self, shape: tuple[int, ...]) -> Tensor:
        if self.dtype == np.int8:
            data = self.rng.integers(-127, 128, shape).astype(np.int8)
            return self.builder.constant(data, 0.01)
        return self.builder.constant(self.rng.normal(0, 0.5, shape).astype(np.float32))

    def _add(self, kind: str, *inputs: Tensor, **how: Any) -> Tensor:
        """With a scale for real values of about one where inputs are multiplied by weights."""
        scale = 0.04 if self.dtype == np.int8 and len(inputs) > 1 else None
        return self.builder.add(kind, *inputs, scale=scale, zero_point=3 if scale else 0, **how)

    def _window(self, x: Tensor) -> tuple[Pair, Pair, Pair]:
        """Sides, strides and dilations: time first drawn, then the other axis."""
        extent = x.shape[self.axis]
        stride = self._of([n for n in (1, 2) if self.hop % (self.step * n) == 0])
        dilation = self._int(1, 3) if stride == 1 else 1
        side = self._int(1, max(1, min(4, (extent - 1) // dilation)))
        other = self._int(1, x.shape[3 - self.axis])
        pairs = (side, other), (stride, 1), (dilation, 1)
        self.step *= stride
        first, second, third = ((p if self.axis == 1 else p[::-1]) for p in pairs)
        return first, second, third

    def convolution(self, x: Tensor, same_rows: bool = False) -> Tensor:
        sides, strides, dilations = self._window(x)
        if same_rows:
            sides, strides, dilations = (1, 1), (1, 1), (1, 1)
        weights = self._weights((self._int(1, 5), *sides, x.shape[3]))
        attributes = Conv2D(strides, Padding(), dilations, self._of(["none", "relu"]))
        return self._add("CONV_2D", x, weights, attributes=attributes)

    def depthwise(self, x: Tensor) -> Tensor:
        sides, strides, dilations = self._window(x)
        weights = self._weights((1, *sides, x.shape[3]))
        attributes = DepthwiseConv2D(strides, Padding(), dilations)
        return self._add("DEPTHWISE_CONV_2D", x, weights, attributes=attributes)

    def pool(self, x: Tensor) -> Tensor:
        sides, strides, _ = self._window(x)
        kind = self._of(["AVERAGE_POOL_2D", "MAX_POOL_2D"])
        return self._add(kind, x, attributes=Pool2D(sides, strides, Padding()))

    def function(self, x: Tensor) -> Tensor:
        return self._add("LEAKY_RELU", x, attributes=LeakyRelu(0.25))

    def residual(self, x: Tensor) -> Tensor:
        """A convolution over time beside the rows at one place in its window."""
        side = self._int(1, min(3, x.shape[self.axis]))
        sides = (side, 1) if self.axis == 1 else (1, side)
        weights = self._weights((x.shape[3], *sides, x.shape[3]))
        y = self._add("CONV_2D", x, weights, attributes=Conv2D((1, 1), Padding()))
        begin = self._int(0, side - 1)
        bounds = [(0, extent, 1) for extent in x.shape]
        bounds[self.axis] = (begin, begin + y.shape[self.axis], 1)
        z = self.builder.add("STRIDED_SLICE", x, attributes=StridedSlice(tuple(bounds)))
        return self._add("ADD", y, z, attributes=Elementwise())

    def joined(self, x: Tensor) -> Tensor:
        """Two rows become one."""
        extent = x.shape[1]
        if self.axis != 1 or extent % 2 or extent < 4 or self.hop % (2 * self.step):
            return x
        self.step *= 2
        return self.builder.add("RESHAPE", x, shape=(1, extent // 2, x.shape[2], 2 * x.shape[3]))

    def branches(self, x: Tensor) -> Tensor:
        step = self.step
        parts = [self.convolution(x, same_rows=True) for _ in range(2)]
        self.step = step
        same = [p for p in parts if p.shape[1:3] == parts[0].shape[1:3]]
        return self.builder.add("CONCATENATION", *same, attributes=Concatenation(3))

    def parts(self, x: Tensor) -> Tensor:
        """A convolution of each channel alone, so that several outputs of an operator are kept."""
        channels = self.builder.add_all("SPLIT", x, attributes=Split(3), outputs=x.shape[3])
        side = self._int(1, min(3, x.shape[self.axis]))
        attributes = Conv2D((1, 1), Padding())
        sides = (side, 1) if self.axis == 1 else (1, side)
        ys = [
            self._add("CONV_2D", y, self._weights((1, *sides, 1)), attributes=attributes)
            for y in channels
        ]
        return self.builder.add("CONCATENATION", *ys, attributes=Concatenation(3))

    def keep(self, x: Tensor) -> Tensor:
        """The output has time itself, perhaps on another axis."""
        if self._int(0, 1):
            return self.builder.add("TRANSPOSE", x, attributes=Transpose((0, 2, 1, 3)))
        return x

    def mean(self, x: Tensor) -> Tensor:
        axes = self._of([(1, 2), (1,), (2,), (3,)])
        return self._add("MEAN", x, attributes=Mean(axes, bool(self._int(0, 1))))

    def flat(self, x: Tensor) -> Tensor:
        """All of the window, or each row, through a dense layer."""
        if self._int(0, 1):
            flat = self.builder.add("RESHAPE", x, shape=(1, x.size))
            return self._add("FULLY_CONNECTED", flat, self._weights((3, x.size)),
                             attributes=FullyConnected())  # fmt: skip
        return self._add("FULLY_CONNECTED", x, self._weights((3, x.shape[3])),
                         attributes=FullyConnected(keep_num_dims=True))  # fmt: skip

    def last(self, x: Tensor) -> Tensor:
        bounds: list[tuple[int, int | None, int]] = [(0, extent, 1) for extent in x.shape]
        bounds[self.axis] = (-1, None, 1)
        shrink = self._of([(), (self.axis,)])
        slices = StridedSlice(tuple(bounds), shrink)
        return self.builder.add("STRIDED_SLICE", x, attributes=slices)


@st.composite
def stacks(draw: st.DrawFn, dtype: str = "int8") -> Stack:
    return Stack(draw, draw(st.sampled_from([1, 1, 2, 4])), dtype)
