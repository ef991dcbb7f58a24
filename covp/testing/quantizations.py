"""Strategies of scales, zero points, quantizations, fixed-point factors and requantizations."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from numpy.typing import ArrayLike, DTypeLike

from covp.graph.graph import Quantization
from covp.testing.multipliers import multipliers, requantizations
from covp.testing.requantization import Requantization

__all__ = [
    "Requantization",
    "affine",
    "multipliers",
    "per_channel",
    "per_tensor",
    "requantizations",
    "scales",
    "zero_points",
]


def affine(scale: ArrayLike, zero_point: ArrayLike = 0, axis: int = 0) -> Quantization:
    """Return one quantization: real = scale * (stored - zero_point).

    Args:
        scale: one number for the whole tensor, or shape (n,) for n indices along ``axis``.
        zero_point: one for all scales or one for each; within the range of the stored dtype.
        axis: the dimension that several scales run along; ignored for one.
    """
    scales = np.atleast_1d(np.asarray(scale, np.float32))
    points = np.array(np.broadcast_to(np.asarray(zero_point, np.int32), scales.shape))
    return Quantization(scales, points, axis if scales.size > 1 else 0)


def scales(lowest: float = 1 / 64, highest: float = 1.0) -> st.SearchStrategy[float]:
    """Return a strategy of scales that float32 holds exactly.

    Args:
        lowest, highest: both included; positive, and themselves exact in float32.
    """
    return st.floats(lowest, highest, width=32)


def zero_points(dtype: DTypeLike = "int8") -> st.SearchStrategy[int]:
    """Zero points over the whole range of an integer dtype."""
    limits = np.iinfo(dtype)
    return st.integers(int(limits.min), int(limits.max))


def per_tensor(
    dtype: DTypeLike = "int8",
    scale: st.SearchStrategy[float] | None = None,
    zero_point: st.SearchStrategy[int] | None = None,
) -> st.SearchStrategy[Quantization]:
    """Return one scale for a whole tensor.

    Args:
        dtype: of the stored values; bounds the zero points.
        scale: `scales` by default.
        zero_point: `zero_points` of the dtype by default.
    """
    return st.builds(
        affine,
        scales() if scale is None else scale,
        zero_points(dtype) if zero_point is None else zero_point,
    )


def per_channel(
    channels: int, axis: int = 0, scale: st.SearchStrategy[float] | None = None
) -> st.SearchStrategy[Quantization]:
    """Return one scale for each channel and zero points of 0, as TFLite has weights.

    Args:
        channels: how many scales; positive.
        axis: the dimension that they run along: 0 for CONV_2D, 3 for DEPTHWISE_CONV_2D.
        scale: each one's; from 2**-10 to 2**-6 by default.
    """
    each = scales(2**-10, 2**-6) if scale is None else scale
    several = st.lists(each, min_size=channels, max_size=channels)
    return st.builds(affine, several, st.just(0), st.just(axis))
