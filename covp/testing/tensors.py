"""Tensors written in one line; strategies of shapes, tensors and their values."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import ArrayLike, DTypeLike, NDArray

from covp.graph.graph import Quantization, Tensor
from covp.testing import contents
from covp.testing.arrays import FLOATS
from covp.testing.contents import Content
from covp.testing.quantizations import affine, per_tensor

Shape = tuple[int, ...]

_WIDEST = 2**20
"""Integers wider than 16 bits are drawn between minus and plus this."""


def int8(
    name: str,
    shape: Shape,
    scale: ArrayLike = 1.0,
    zero_point: int = 0,
    data: NDArray[Any] | None = None,
    axis: int = 0,
) -> Tensor:
    """Return a quantized int8 tensor.

    Args:
        name: unique in its graph.
        shape: all dimensions positive.
        scale: one, or one for each index along ``axis``.
        zero_point: from -128 to 127, the same for all scales.
        data: int8 of this shape where it is a constant.
        axis: the dimension that several scales run along.
    """
    return Tensor(name, shape, np.dtype(np.int8), affine(scale, zero_point, axis), data)


def int16(name: str, shape: Shape, scale: float = 1.0, zero_point: int = 0) -> Tensor:
    """Return a quantized int16 tensor.

    Args:
        name: unique in its graph.
        shape: all dimensions positive.
        scale: of the whole tensor.
        zero_point: 0 for all but a few operators.
    """
    return Tensor(name, shape, np.dtype(np.int16), affine(scale, zero_point))


def plain(
    name: str, shape: Shape, dtype: DTypeLike = np.float32, data: NDArray[Any] | None = None
) -> Tensor:
    """Return a tensor of a name, shape and dtype without quantization; with ``data`` a constant."""
    return Tensor(name, shape, np.dtype(dtype), None, data)


def filled(
    tensor: Tensor, seed: int | np.random.Generator = 0, content: Content = "random"
) -> NDArray[Any]:
    """Draw values for a tensor, of its shape and dtype.

    Args:
        tensor: integer or floating point.
        seed: the same one gives the same values; or the generator to draw them from.
        content: see `Content`. Floating point tensors range from -4 to 4, integers over their
            dtype, those of more than 16 bits from -2**20 to 2**20.
    """
    rng = np.random.default_rng(seed)
    low, high = _range(tensor.dtype)
    if content == "lowest":
        return np.full(tensor.shape, low, tensor.dtype)
    if content == "highest":
        return np.full(tensor.shape, high, tensor.dtype)
    if content == "extreme":
        return rng.choice(np.array([low, high]), tensor.shape).astype(tensor.dtype)
    if content != "random":
        make: Any = contents.floats if tensor.dtype.kind == "f" else contents.integers
        drawn = int(rng.integers(1 << 16))
        flat = make(tensor.size, tensor.dtype, int(low), int(high), content, drawn)
        return np.asarray(flat.reshape(tensor.shape))
    if tensor.dtype.kind == "f":
        return rng.uniform(low, high, tensor.shape).astype(tensor.dtype)
    return rng.integers(int(low), int(high) + 1, tensor.shape).astype(tensor.dtype)


def _range(dtype: np.dtype[Any]) -> tuple[float, float]:
    if dtype.kind == "f":
        return -FLOATS, FLOATS
    if dtype.kind == "b":
        return 0, 1
    limits = np.iinfo(dtype)
    return max(int(limits.min), -_WIDEST), min(int(limits.max), _WIDEST)


def shapes(min_rank: int = 1, max_rank: int = 4, max_extent: int = 5) -> st.SearchStrategy[Shape]:
    """Return a strategy of shapes of positive extents.

    Args:
        min_rank, max_rank: dimensions, both included.
        max_extent: the largest extent of each.
    """
    extents = st.integers(1, max_extent)
    return st.lists(extents, min_size=min_rank, max_size=max_rank).map(tuple)


@st.composite
def broadcast_shapes(draw: st.DrawFn, max_extent: int = 5) -> tuple[Shape, Shape]:
    """Return two shapes of ranks 1 to 4 that numpy broadcasts, either the larger one."""
    whole = draw(shapes(max_extent=max_extent))
    other = tuple(draw(st.sampled_from([extent, 1])) for extent in whole)
    other = other[draw(st.integers(0, len(other) - 1)) :]
    return (other, whole) if draw(st.booleans()) else (whole, other)


@st.composite
def tensors(
    draw: st.DrawFn,
    dtype: DTypeLike = "int8",
    shape: st.SearchStrategy[Shape] | None = None,
    quantization: st.SearchStrategy[Quantization] | None = None,
    name: str = "x",
) -> Tensor:
    """Return tensors whose value comes at run time.

    Args:
        dtype: of all of them.
        shape: `shapes` by default.
        quantization: `per_tensor` by default for int8, uint8 and int16, none for others.
        name: of all of them.
    """
    kind = np.dtype(dtype)
    if quantization is None and kind in (np.int8, np.uint8, np.int16):
        quantization = per_tensor(kind)
    extents = draw(shapes() if shape is None else shape)
    return Tensor(name, extents, kind, None if quantization is None else draw(quantization))


def values(tensor: Tensor) -> st.SearchStrategy[NDArray[Any]]:
    """Return a strategy of a tensor's arrays: mostly random, sometimes only extreme values.

    They have a seed; those of `arrays` shrink element by element.
    """
    contents: tuple[Content, ...] = ("random", "random", "extreme", "lowest", "highest", "outlier")
    seeds = st.integers(0, 2**16)
    return st.builds(filled, st.just(tensor), seeds, st.sampled_from(contents))
