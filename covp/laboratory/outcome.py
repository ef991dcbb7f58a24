"""The outcome of one call of a kernel, and where two of them differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.errors import DeviceFault
from covp.runtime.signature import CType

RESULT = "the result"


@dataclass(frozen=True, eq=False)
class Outcome:
    """The outcome of one call.

    Attributes:
        values: the function's result (`RESULT`, shape ()) and its arrays by parameter name, as they
            are after the call.
        fault: that ended it, or None.
    """

    values: Mapping[str, NDArray[Any]]
    fault: DeviceFault | None = None


@dataclass(frozen=True)
class Divergence:
    """The first element in which two outcomes differ.

    Attributes:
        where: name of the argument, or `RESULT`.
        index: of the element, in the array's shape.
        left, right: the values as text: decimal, and the bits in hexadecimal.
        wrong, elements: how many differ, of how many.
    """

    where: str
    index: tuple[int, ...]
    left: str
    right: str
    wrong: int
    elements: int

    @property
    def element(self) -> str:
        """The element by name and index, e.g. "out [0, 3]"."""
        return f"{self.where} {list(self.index)}" if self.index else self.where


def result_array(value: object, kind: CType) -> NDArray[Any] | None:
    """Return a function's result as an array of shape (); None for void and addresses.

    Args:
        value: as `Kernel` returns it, or as a reference does.
        kind: the C type of the result.
    """
    if kind.kind == "float":
        return np.array(value, f"<f{kind.bytes}")
    if kind.kind == "int":
        bits = int(value) % (1 << 8 * kind.bytes)  # type: ignore[call-overload]
        unsigned = np.array(bits, f"<u{kind.bytes}")
        return unsigned.view(f"<i{kind.bytes}") if kind.signed else unsigned
    return None


def divergence(left: Outcome, right: Outcome, ulps: int) -> Divergence | None:
    """Find the first element that differs, the result first; None if there is none.

    Args:
        left, right: of the same function; what only one of them has is not compared.
        ulps: as for `find_differences`.
    """
    for name, array in left.values.items():
        other = right.values.get(name)
        if other is None:
            continue
        wrong = find_differences(array, other, ulps)
        if wrong.size:
            index = tuple(int(i) for i in np.unravel_index(wrong[0], array.shape))
            texts = (_text(array[index]), _text(other[index]))
            return Divergence(name, index, *texts, wrong.size, array.size)
    return None


def find_differences(left: NDArray[Any], right: NDArray[Any], ulps: int = 0) -> NDArray[np.intp]:
    """Return flat indices of the elements that differ.

    Args:
        left, right: of one shape and dtype.
        ulps: 0: every bit counts, those of NaNs and the sign of zero too. Else floats may be so
            many representable numbers apart, and any NaN equals any NaN.
    """
    if ulps and left.dtype.kind == "f":
        nans = np.isnan(left).astype(int) + np.isnan(right)
        return np.flatnonzero((nans == 1) | ((nans == 0) & (_distance(left, right) > ulps)))
    size = left.dtype.itemsize
    raw = [np.ascontiguousarray(a).reshape(-1).view(np.uint8) for a in (left, right)]
    return np.flatnonzero((raw[0] != raw[1]).reshape(-1, size).any(axis=1))


def _distance(left: NDArray[Any], right: NDArray[Any]) -> NDArray[np.uint64]:
    """Count how many representable numbers floats are apart; zeros are one number."""
    bits = 8 * left.dtype.itemsize
    signs, magnitudes = [], []
    for array in (left, right):
        raw = np.ascontiguousarray(array).view(f"<u{bits // 8}").astype(np.uint64)
        signs.append(raw >> np.uint64(bits - 1))
        magnitudes.append(raw & np.uint64((1 << bits - 1) - 1))
    low, high = np.minimum(*magnitudes), np.maximum(*magnitudes)
    return np.asarray(np.where(signs[0] == signs[1], high - low, high + low))


def _text(value: Any) -> str:
    digits = 2 * value.dtype.itemsize
    raw = int.from_bytes(value.astype(value.dtype.newbyteorder("<")).tobytes(), "little")
    shown = "" if value.dtype.kind == "V" else f"{value} "
    return f"{shown}(0x{raw:0{digits}x})" if shown else f"0x{raw:0{digits}x}"
