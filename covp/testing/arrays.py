"""Arrays of numpy as Hypothesis strategies: fast to draw, with extremes, and they shrink.

An array is drawn as a seed and its elements. The seed chooses one of the `contents`, which are made
by numpy; the elements that Hypothesis records are then those of the array, as forced choices. So
seed 0 with the same elements is the same array, which is where Hypothesis begins to shrink: from
there each element is a choice of its own, and the simplest is zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np
from hypothesis import strategies as st
from hypothesis.internal.conjecture.data import ConjectureData
from numpy.typing import DTypeLike, NDArray

from covp.errors import UsageError
from covp.testing import contents
from covp.testing.contents import Content

Array = NDArray[Any]
Shape = tuple[int, ...]
T = TypeVar("T")

FLOATS = 4.0
"""float32 values are drawn between minus and plus this, where nothing else is said."""
_ELEMENTS, _BYTES, _PLACED_BYTES = 24, 1024, 2048
"""The most elements of several bytes, and the most bytes of an array, that shrink one by one."""
_DIRECT = 16
"""The number of arrays in 256 without a content: Hypothesis draws their elements."""
_CONTENTS: tuple[Content, ...] = (
    *("outlier", "outlier", "highest", "lowest", "alternating", "alternating", "small"),
    *("sparse", "sparse", "extreme", "extreme", "random", "random", "random", "random", "random"),
)
"""Contents, each as often as it is to be drawn, the simplest first."""


class Drawn(st.SearchStrategy[T]):
    """A strategy that is a function of Hypothesis' choices.

    Several strategies that are put together cost about twice as much for each example.

    Args:
        draw: makes the value; `ConjectureData.draw_integer` and its like are the choices.
        text: what the strategy is called in messages.
    """

    def __init__(self, draw: Callable[[ConjectureData], T], text: str) -> None:
        super().__init__()
        self._draw, self._text = draw, text

    def do_draw(self, data: ConjectureData) -> T:
        """Return the value of one example."""
        return self._draw(data)

    def __repr__(self) -> str:
        return self._text


def arrays(
    dtype: DTypeLike = "int8",
    shape: int | Shape | st.SearchStrategy[Any] = 16,
    *,
    low: float | None = None,
    high: float | None = None,
    nan: bool = False,
    infinity: bool = False,
) -> st.SearchStrategy[Array]:
    """Return a strategy of arrays that have extreme values more often than chance has them.

    Random numbers; the ends of the range, everywhere, in turn, at random or once among zeros; small
    numbers; zeros between numbers. A failing array shrinks to zeros where its values do not matter,
    and to small numbers: up to 1024 bytes (of floating point numbers 24) each element on its own.

    Args:
        dtype: integers, float16 or float32.
        shape: an extent, a shape, or a strategy of either.
        low, high: both included; the whole type by default, for floating point numbers -4 and 4.
        nan, infinity: floating point arrays may have some.

    Raises:
        UsageError: the dtype or the range is invalid.
    """
    kind = np.dtype(dtype)
    ends = _range(kind, low, high)

    def draw(data: ConjectureData) -> Array:
        drawn = data.draw(shape) if isinstance(shape, st.SearchStrategy) else shape
        extents = (drawn,) if isinstance(drawn, int) else tuple(drawn)
        seed = draw_seed(data)
        return draw_array(data, seed, kind, extents, *ends, nan=nan, infinity=infinity, exact=True)

    return Drawn(draw, f"arrays({kind.name!r}, {shape})")


def _range(kind: np.dtype[Any], low: float | None, high: float | None) -> tuple[float, float]:
    if kind.kind == "f" and kind.itemsize <= 4:
        ends = (-FLOATS if low is None else low, FLOATS if high is None else high)
    elif kind.kind in "iu":
        info = np.iinfo(kind)
        wide = (max(int(info.min), -(1 << 61)), min(int(info.max), 1 << 61))
        ends = (wide[0] if low is None else low, wide[1] if high is None else high)
        if not wide[0] <= ends[0] <= ends[1] <= wide[1]:
            raise UsageError(f"a range from {low} to {high} is not within {kind.name}")
    else:
        raise UsageError(f"arrays of {kind.name}: integers, float16 or float32 are needed")
    if not ends[0] <= ends[1]:
        raise UsageError(f"a range from {low} to {high}: low must not be above high")
    return ends


def draw_seed(data: ConjectureData) -> int:
    """Draw the seed of an array; draw those of several arrays before all elements.

    Of bytes, as Hypothesis prefers small integers to others.
    """
    return int.from_bytes(data.draw_bytes(3, 3), "big")


def draw_array(
    data: ConjectureData,
    seed: int,
    dtype: np.dtype[Any],
    shape: Shape,
    low: float,
    high: float,
    *,
    nan: bool = False,
    infinity: bool = False,
    exact: bool = False,
) -> Array:
    """See `arrays`; of a seed from `draw_seed`, with an extent for each axis.

    Without ``exact``, wide integers shrink byte by byte: fewer choices, but not to the least.
    """
    count, flat = math.prod(shape), None
    if seed >> 16 >= _DIRECT:
        content = _CONTENTS[((seed >> 16) - _DIRECT) * len(_CONTENTS) // (256 - _DIRECT)]
        make: Any = contents.floats if dtype.kind == "f" else contents.integers
        flat = make(count, dtype, low, high, content, seed & 0xFFFF)
        if (nan or infinity) and count:
            _add_special(flat, seed & 0xFFFF, nan, infinity)
    if (exact or dtype.kind == "f") and dtype.itemsize > 1 and count <= _ELEMENTS:
        flat = _draw_elements(data, flat, dtype, low, high, nan, infinity, count)
    elif len(shape) > 1 and dtype.kind != "f" and _places_fit(shape, dtype):
        flat = _draw_places(data, flat, dtype, shape, int(low), int(high))
    elif dtype.kind == "f" or count * dtype.itemsize > _BYTES:
        flat = _draw_window(data, flat, np.full(count, min(max(0, low), high), dtype))
    else:
        flat = _draw_bytes(data, flat, dtype, count, int(low), int(high))
    return flat.reshape(shape)


def _add_special(flat: Array, seed: int, nan: bool, infinity: bool) -> None:
    """Put one or more NaNs, infinities and negative zeros into every other array."""
    special = [-0.0, *[np.nan] * nan, *[np.inf, -np.inf] * infinity]
    for k in range(seed % 8 - 3):
        flat[seed * (k + 1) // 8 % flat.size] = special[(seed + k) % len(special)]


def _draw_elements(
    data: ConjectureData,
    flat: Array | None,
    dtype: np.dtype[Any],
    low: float,
    high: float,
    nan: bool,
    infinity: bool,
    count: int,
) -> Array:
    known: list[Any] = [None] * count if flat is None else flat.tolist()
    if dtype.kind != "f":
        whole = int(low), int(high)
        drawn: list[Any] = [data.draw_integer(*whole, forced=value) for value in known]
        return np.array(drawn, dtype)
    ends = (-math.inf, math.inf) if infinity else (float(low), float(high))
    drawn = [data.draw_float(*ends, allow_nan=nan, forced=value) for value in known]
    with np.errstate(over="ignore"):
        return np.array(drawn, dtype)


def _draw_window(data: ConjectureData, flat: Array | None, zeros: Array) -> Array:
    """Draw a long array: all elements, or a window among zeros that Hypothesis can narrow."""
    everything = zeros.size if data.draw_integer(0, 7) else None
    end = data.draw_integer(0, zeros.size, forced=everything)
    start = max(end - data.draw_integer(0, zeros.size, forced=everything), 0)
    if flat is not None:
        zeros[start:end] = flat[start:end]
    return zeros


def _places_fit(shape: Shape, dtype: np.dtype[Any]) -> bool:
    size = math.prod(shape) * (len(shape) + dtype.itemsize)
    return max(shape) <= 256 and size <= _PLACED_BYTES


def _draw_places(
    data: ConjectureData,
    flat: Array | None,
    dtype: np.dtype[Any],
    shape: Shape,
    low: int,
    high: int,
) -> Array:
    """Draw the places and codes of the nonzero elements of an array of several axes.

    When Hypothesis makes an axis shorter, the elements stay, and those of two arrays that belong
    together stay together (see `_places_within`).
    """
    axes, size = len(shape), dtype.itemsize
    zero = min(max(0, low), high)
    if flat is None:
        drawn = data.draw_bytes(0, _PLACED_BYTES)
        array = np.full(shape, zero, dtype)
        whole = len(drawn) // (axes + size) * (axes + size)
        rows = np.frombuffer(drawn[:whole], np.uint8).reshape(-1, axes + size)
        values = _decode(rows[:, axes:].tobytes(), dtype, low, high)
        rows, values = rows[values != zero], values[values != zero]
        if array.size and len(rows):
            within = tuple(_places_within(rows[:, k], shape[k]) for k in range(axes))
            array[within] = values
        return array.ravel()
    at = np.flatnonzero(flat != zero)
    codes = np.frombuffer(_encode(flat[at], low, high), np.uint8).reshape(-1, size)
    places = np.stack(np.unravel_index(at, shape), axis=1).astype(np.uint8)
    data.draw_bytes(0, _PLACED_BYTES, forced=np.hstack([places, codes]).tobytes())
    return flat


def _places_within(places: Array, extent: int) -> Array:
    """Return the places on an axis of this extent: its edge pushes those outside before it.

    Equal places stay equal. If there are more of them than the axis has, those outside lie on its
    edge, and the others stay where they are.
    """
    unique, at = np.unique(places, return_inverse=True)
    edge = extent - len(unique) + np.arange(len(unique))
    moved: Array = np.minimum(unique, edge if edge[0] >= 0 else extent - 1)[at]
    return moved


def _draw_bytes(
    data: ConjectureData, flat: Array | None, dtype: np.dtype[Any], count: int, low: int, high: int
) -> Array:
    """Draw elements as codes of ``itemsize`` bytes, simplest first, without trailing zeros."""
    size = dtype.itemsize
    if flat is None:
        drawn = data.draw_bytes(0, _BYTES)[: count * size]
        return _decode(drawn.ljust(count * size, b"\0"), dtype, low, high)
    data.draw_bytes(0, _BYTES, forced=_encode(flat, low, high).rstrip(b"\0"))
    return flat


@lru_cache(maxsize=256)
def _table(low: int, high: int) -> tuple[Array, Array]:
    """Return the value of each code of a byte, and the code of each value (modulo 256)."""
    zero = min(max(0, low), high)
    order = sorted(range(low, high + 1), key=lambda value: (abs(value - zero), value < zero))
    values = np.array(order, np.int64)
    codes = np.zeros(256, np.uint8)
    codes[values & 255] = np.arange(len(order))
    return values, codes


def _encode(flat: Array, low: int, high: int) -> bytes:
    if flat.dtype.itemsize == 1:
        return _table(low, high)[1][flat.view(np.uint8)].tobytes()
    away = flat.astype(np.int64) - min(max(0, low), high)
    codes = np.where(away > 0, 2 * away - 1, -2 * away)
    return codes.astype(f">u{flat.dtype.itemsize}").tobytes()


def _decode(drawn: bytes, dtype: np.dtype[Any], low: int, high: int) -> Array:
    if dtype.itemsize == 1:
        values = _table(low, high)[0]
        codes = np.frombuffer(drawn, np.uint8)
        return np.asarray(values.take(codes, mode="clip").astype(dtype))
    codes = np.frombuffer(drawn, f">u{dtype.itemsize}").astype(np.uint64)
    half = (codes >> np.uint64(1)).astype(np.int64)
    away = np.where(codes & np.uint64(1), half + 1, -half)
    return np.asarray(np.clip(away + min(max(0, low), high), low, high).astype(dtype))
