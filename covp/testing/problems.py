"""Strategies of problems: arrays and numbers that fit each other, for kernels of your own.

    @given(problems.convolutions("int8", kernel=(3, 3)))
    def test_conv(kernel, problem):
        output = np.zeros(problem.output_shape, np.int8)
        kernel(problem.input, problem.weights, problem.bias, output, ...)
        assert np.array_equal(output, problem.expected())

Each takes parts of the geometry as a value or as a strategy, in place of its own. Layers of a graph
that `covp.compile` takes are `covp.testing.layers`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from hypothesis import strategies as st
from hypothesis.internal.conjecture.data import ConjectureData
from numpy.typing import NDArray

from covp.errors import UsageError
from covp.testing.arrays import Drawn, draw_array, draw_seed
from covp.testing.case import Windows, place_windows
from covp.testing.convolution_problems import (
    ConvolutionProblem,
    DepthwiseProblem,
    FullyConnectedProblem,
)
from covp.testing.elementwise_problems import PoolProblem
from covp.testing.elementwise_strategies import additions, products
from covp.testing.multipliers import draw_requantization, draw_zero_point
from covp.testing.problem import Pair, Sides
from covp.testing.recurrent_strategies import grus, lstms, svdfs
from covp.testing.requantization import Requantization

__all__ = [
    "additions",
    "convolutions",
    "depthwise_convolutions",
    "fully_connected",
    "grus",
    "lstms",
    "pools",
    "products",
    "svdfs",
]

Array = NDArray[Any]
T = TypeVar("T")
_SUM_SHIFT = 7
"""The most of int16 layers: `covp.graph.quantization.MOST_REDUCED_SHIFT`."""


class Given:
    """The geometry that a caller of a strategy has given.

    Args:
        known: the names that may be given.
        values: of some of them: values or strategies.

    Raises:
        UsageError: a name is unknown.
    """

    def __init__(self, known: str, values: dict[str, Any]) -> None:
        for name in values:
            if name not in known.split():
                raise UsageError(f"{name} cannot be given; {', '.join(known.split())} can")
        self.values = values

    def get(self, data: ConjectureData, name: str, draw: Callable[[], T]) -> T:
        """Return the value given, or one that ``draw`` draws from ``data`` for ``name``."""
        value = self.values.get(name)
        if value is None:
            return draw()
        drawn: T = data.draw(value) if isinstance(value, st.SearchStrategy) else value
        return drawn


def _kind(dtype: str) -> np.dtype[Any]:
    if dtype not in ("int8", "int16", "float32"):
        raise UsageError(f"problems of {dtype}: int8, int16 or float32 are needed")
    return np.dtype(dtype)


@dataclass(frozen=True)
class _Geometry:
    seen: Windows
    kernel: Pair
    stride: Pair
    dilation: Pair

    @property
    def padding(self) -> Sides:
        p = self.seen.padding
        return (p.top, p.bottom, p.left, p.right)


def _draw_geometry(
    data: ConjectureData, given: Given, max_size: int, max_kernel: int, dilated: bool
) -> _Geometry:
    integer = data.draw_integer
    size = given.get(data, "size", lambda: (integer(1, max_size), integer(1, max_size)))
    kernel = given.get(data, "kernel", lambda: (integer(1, max_kernel), integer(1, max_kernel)))
    stride = given.get(data, "stride", lambda: (integer(1, 3), integer(1, 3)))
    dilation = (1, 1)
    if dilated:
        wide = ((1, 1), (1, 1), (1, 1), (2, 1), (1, 2), (3, 2))
        dilation = given.get(data, "dilation", lambda: wide[integer(0, 5)])
    kind = given.get(data, "padding", lambda: ("valid", "same", "any")[integer(0, 2)])
    pads: Any = None if isinstance(kind, str) else kind
    if kind == "any":
        pads = tuple(integer(0, max_kernel - 1) for _ in range(4))
    seen = place_windows(size, kernel, stride, dilation, kind == "same", pads)
    return _Geometry(seen, kernel, stride, dilation)


def _draw_channels(data: ConjectureData, given: Given, most: int) -> tuple[Pair, int]:
    """Draw (input channels, outputs) and the number of groups."""
    pair = given.get(data, "channels", lambda: None)
    groups = given.get(data, "groups", lambda: 1 if pair else (1, 1, 1, 2, 3)[_up_to(data, 4)])
    if pair is None:
        each = max(most // groups, 1)
        pair = (groups * data.draw_integer(1, each), groups * data.draw_integer(1, each))
    if pair[0] % groups or pair[1] % groups:
        raise UsageError(f"{pair} channels and outputs are not multiples of {groups} groups")
    return pair, groups


def _up_to(data: ConjectureData, most: int) -> int:
    return data.draw_integer(0, most)


@dataclass(frozen=True)
class _Values:
    """The values of layers with weights, besides their geometry."""

    input: Array
    weights: Array
    bias: Array | None
    requantization: Requantization | None
    zero_point: int
    activation: tuple[float, float]


def _draw_values(
    data: ConjectureData,
    given: Given,
    kind: np.dtype[Any],
    shape: tuple[int, ...],
    filters: tuple[int, ...],
    outputs: int,
) -> _Values:
    has_bias = given.get(data, "bias", lambda: data.draw_integer(0, 3) > 0)
    several = given.get(data, "per_channel", lambda: data.draw_integer(0, 1) == 0)
    zero_point = 0
    if kind == np.int8:
        zero_point = given.get(data, "zero_point", lambda: draw_zero_point(data, kind))
    seeds = draw_seed(data), draw_seed(data), draw_seed(data)
    if kind.kind == "f":
        return _draw_floats(data, seeds, shape, filters, outputs if has_bias else None)
    info = np.iinfo(kind)
    x = draw_array(data, seeds[0], kind, shape, int(info.min), int(info.max))
    weights = draw_array(data, seeds[1], np.dtype(np.int8), filters, -127, 127)
    depth = weights.size // outputs
    typical = int((info.max * 5 // 8) * 50 * depth**0.5)
    bias = None
    if has_bias:
        wide = np.dtype(np.int32 if kind == np.int8 else np.int64)
        bias = draw_array(data, seeds[2], wide, (outputs,), -2 * typical, 2 * typical)
    most = (int(info.max) * 2 * 128 * depth + 2 * typical).bit_length()
    requantization = given.get(
        data,
        "requantization",
        lambda: draw_requantization(
            data,
            outputs if several else 1,
            kind,
            typical.bit_length() + 1,
            most if kind == np.int8 else 0,
            most_shift=30 if kind == np.int8 else _SUM_SHIFT,
        ),
    )
    return _Values(x, weights, bias, requantization, zero_point, (-np.inf, np.inf))


def _draw_floats(
    data: ConjectureData,
    seeds: tuple[int, int, int],
    shape: tuple[int, ...],
    filters: tuple[int, ...],
    outputs: int | None,
) -> _Values:
    kind = np.dtype(np.float32)
    ends = ((-np.inf, np.inf), (0.0, np.inf), (0.0, 6.0), (-1.0, 1.0))[_up_to(data, 3)]
    x = draw_array(data, seeds[0], kind, shape, -4, 4)
    weights = draw_array(data, seeds[1], kind, filters, -1, 1)
    bias = None if outputs is None else draw_array(data, seeds[2], kind, (outputs,), -4, 4)
    return _Values(x, weights, bias, None, 0, ends)


_WEIGHTED = "batch bias per_channel zero_point requantization"
_WINDOWS = "size kernel stride dilation padding"


def convolutions(
    dtype: str = "int8",
    *,
    max_size: int = 6,
    max_channels: int = 8,
    max_kernel: int = 3,
    **geometry: Any,
) -> st.SearchStrategy[ConvolutionProblem]:
    """Return a strategy of convolutions, with strides, dilation, padding, groups and bias.

    Args:
        dtype: "int8", "int16" or "float32".
        max_size: the largest height and width of an image that needs no more for a window.
        max_channels: the largest number of input channels and of outputs.
        max_kernel: the largest height and width of the kernel; strides go to 3.
        geometry: values or strategies of batch, size, channels (input, output), kernel, stride,
            dilation, padding ("valid", "same", "any" or (top, bottom, left, right)), groups, bias
            (bool), per_channel (bool), zero_point, requantization.

    Raises:
        UsageError: the dtype or a name is unknown, or (when drawing) groups do not divide channels.
    """
    kind, given = _kind(dtype), Given(f"{_WEIGHTED} {_WINDOWS} channels groups", geometry)

    def draw(data: ConjectureData) -> ConvolutionProblem:
        batch = given.get(data, "batch", lambda: data.draw_integer(1, 2))
        g = _draw_geometry(data, given, max_size, max_kernel, True)
        (channels, outputs), groups = _draw_channels(data, given, max_channels)
        shape = (batch, *g.seen.size, channels)
        filters = (outputs, *g.kernel, channels // groups)
        v = _draw_values(data, given, kind, shape, filters, outputs)
        return ConvolutionProblem(
            v.input, v.weights, v.bias, v.requantization,
            g.stride, g.dilation, g.padding, v.zero_point, v.activation,
        )  # fmt: skip

    return Drawn(draw, f"convolutions({dtype!r})")


def depthwise_convolutions(
    dtype: str = "int8",
    *,
    max_size: int = 6,
    max_channels: int = 8,
    max_kernel: int = 3,
    **geometry: Any,
) -> st.SearchStrategy[DepthwiseProblem]:
    """Return a strategy of depthwise convolutions, with one to three outputs a channel.

    Args:
        dtype, max_size, max_channels, max_kernel: see `convolutions`.
        geometry: as there, without groups; channels is (input, output).
    """
    kind, given = _kind(dtype), Given(f"{_WEIGHTED} {_WINDOWS} channels", geometry)

    def draw(data: ConjectureData) -> DepthwiseProblem:
        batch = given.get(data, "batch", lambda: data.draw_integer(1, 2))
        g = _draw_geometry(data, given, max_size, max_kernel, True)
        pair = given.get(data, "channels", lambda: None)
        if pair is None:
            each = (1, 1, 1, 2, 3)[_up_to(data, 4)]
            channels = data.draw_integer(1, max(max_channels // each, 1))
            pair = (channels, channels * each)
        if pair[1] % pair[0]:
            raise UsageError(f"{pair[1]} outputs are not a multiple of {pair[0]} channels")
        shape, filters = (batch, *g.seen.size, pair[0]), (1, *g.kernel, pair[1])
        v = _draw_values(data, given, kind, shape, filters, pair[1])
        return DepthwiseProblem(
            v.input, v.weights, v.bias, v.requantization,
            g.stride, g.dilation, g.padding, v.zero_point, v.activation,
        )  # fmt: skip

    return Drawn(draw, f"depthwise_convolutions({dtype!r})")


def fully_connected(
    dtype: str = "int8", *, max_depth: int = 40, max_outputs: int = 8, **geometry: Any
) -> st.SearchStrategy[FullyConnectedProblem]:
    """Return a strategy of fully connected layers.

    Args:
        dtype: "int8", "int16" or "float32".
        max_depth, max_outputs: the largest of both.
        geometry: values or strategies of batch, depth, outputs, bias (bool), per_channel (bool),
            zero_point, requantization.
    """
    kind, given = _kind(dtype), Given(f"{_WEIGHTED} depth outputs", geometry)

    def draw(data: ConjectureData) -> FullyConnectedProblem:
        batch = given.get(data, "batch", lambda: data.draw_integer(1, 3))
        depth = given.get(data, "depth", lambda: data.draw_integer(1, max_depth))
        outputs = given.get(data, "outputs", lambda: data.draw_integer(1, max_outputs))
        v = _draw_values(data, given, kind, (batch, depth), (outputs, depth), outputs)
        return FullyConnectedProblem(
            v.input, v.weights, v.bias, v.requantization, v.zero_point, v.activation
        )

    return Drawn(draw, f"fully_connected({dtype!r})")


def pools(
    kind: str = "",
    dtype: str = "int8",
    *,
    max_size: int = 6,
    max_channels: int = 8,
    max_filter: int = 3,
    **geometry: Any,
) -> st.SearchStrategy[PoolProblem]:
    """Return a strategy of pools whose windows all have a pixel of the image.

    Args:
        kind: "average" or "max"; both by default.
        dtype: "int8", "int16" or "float32".
        max_size, max_channels, max_filter: the largest extents.
        geometry: values or strategies of batch, size, channels, kernel, stride, padding.
    """
    stored = _kind(dtype)
    given = Given("batch size channels kernel stride padding", geometry)
    kinds = (kind,) if kind else ("average", "max")

    def draw(data: ConjectureData) -> PoolProblem:
        chosen: Any = kinds[_up_to(data, len(kinds) - 1)]
        batch = given.get(data, "batch", lambda: data.draw_integer(1, 2))
        g = _draw_geometry(data, given, max_size, max_filter, False)
        channels = given.get(data, "channels", lambda: data.draw_integer(1, max_channels))
        low, high = (-4.0, 4.0) if stored.kind == "f" else _ends(stored)
        clamp = ((low, high), (0, high), (0, high // 2))[_up_to(data, 2)]
        shape = (batch, *g.seen.size, channels)
        x = draw_array(data, draw_seed(data), stored, shape, low, high)
        return PoolProblem(chosen, x, g.kernel, g.stride, g.padding, *clamp)

    return Drawn(draw, f"pools({kind!r}, {dtype!r})")


def _ends(kind: np.dtype[Any]) -> tuple[int, int]:
    info = np.iinfo(kind)
    return int(info.min), int(info.max)
