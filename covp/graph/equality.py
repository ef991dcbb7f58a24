"""`differences`: the one rule by which outputs equal the reference's."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

FLOAT_TOLERANCE = 1e-5
"""Share of the largest finite expected magnitude: kernels add in a different order."""


def differences(got: NDArray[Any], wanted: NDArray[Any]) -> NDArray[np.intp]:
    """Return flat indices of unequal elements; every index if shapes or types differ.

    Integers are equal bit for bit. Floats may differ by `FLOAT_TOLERANCE` of the largest finite
    expected magnitude; an infinity equals itself alone, a NaN equals any NaN.

    Args:
        got: the outputs under test.
        wanted: the expected ones.
    """
    if got.shape != wanted.shape or got.dtype != wanted.dtype:
        return np.arange(max(got.size, wanted.size, 1))
    if wanted.dtype.kind != "f":
        return np.flatnonzero(got != wanted)
    finite = np.abs(wanted[np.isfinite(wanted)])
    tolerance = FLOAT_TOLERANCE * max(float(finite.max(initial=0)), 1e-30)
    with np.errstate(invalid="ignore", over="ignore"):
        close = np.abs(got - wanted) <= tolerance
    return np.flatnonzero(~(close | (got == wanted) | (np.isnan(got) & np.isnan(wanted))))


def relative_error(got: NDArray[Any], wanted: NDArray[Any]) -> float:
    """Return the largest difference of floats, as a share of the largest finite expected magnitude.

    0 for integers. Elements that are not finite in either array do not count.

    Args:
        got: the outputs under test.
        wanted: the expected ones, of the same shape.
    """
    if wanted.dtype.kind != "f":
        return 0.0
    finite = np.isfinite(wanted) & np.isfinite(got)
    largest = float(np.abs(wanted[finite]).max(initial=0))
    difference = np.abs(got[finite].astype(np.float64) - wanted[finite].astype(np.float64))
    return float(difference.max(initial=0)) / max(largest, 1e-30)
