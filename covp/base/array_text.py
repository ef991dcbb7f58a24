"""Arrays as Python text: short, exact, and the same array again when it is evaluated."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray

_LONG = 32
"""Longest array, in elements, that is always written element by element."""


def array_text(array: NDArray[Any]) -> str:
    """Return an expression of numpy (as ``np``) that makes the array again.

    Floating point numbers have as many digits as tell them from their neighbours.
    """
    dtype = f"np.{array.dtype.name}" if array.dtype.name != "bool" else "bool"
    if array.size == 0 or (array.size > 4 and _uniform(array)):
        shape: Any = array.shape if array.ndim != 1 else array.size
        value = _number(array.flat[0]) if array.size else "0"
        if value in ("0", "0.0"):
            return f"np.zeros({shape}, {dtype})"
        return f"np.full({shape}, {value}, {dtype})"
    runs = _runs(array.ravel())
    if runs is not None:
        shape = f".reshape({', '.join(map(str, array.shape))})" if array.ndim > 1 else ""
        return f"np.array({runs}, {dtype}){shape}"
    return f"np.array({_format_rows(array)}, {dtype})"


def _runs(flat: NDArray[Any]) -> str | None:
    """Return a long array with long runs of one number as a sum of lists; None for any other."""
    if flat.size <= _LONG:
        return None
    changed = (flat[1:] != flat[:-1]) | (np.signbit(flat[1:]) != np.signbit(flat[:-1]))
    starts = np.flatnonzero(np.concatenate([[True], changed, [True]]))
    if (starts.size - 1) * 8 > flat.size:
        return None
    lengths = np.diff(starts)
    return " + ".join(
        f"[{_number(flat[start])}]" + (f" * {length}" if length > 1 else "")
        for start, length in zip(starts[:-1].tolist(), lengths.tolist(), strict=True)
    )


def _uniform(array: NDArray[Any]) -> bool:
    first = array.flat[0]
    same = array == first
    if array.dtype.kind == "f":  # the two zeros are equal
        same &= np.signbit(array) == np.signbit(first)
    return bool(same.all())


def _format_rows(array: NDArray[Any]) -> str:
    if array.ndim == 0:
        return _number(array[()])
    return "[" + ", ".join(_format_rows(part) for part in array) + "]"


def _number(value: Any) -> str:
    text = str(value)
    if text in ("nan", "inf", "-inf"):
        return text.replace("nan", "np.nan").replace("inf", "np.inf")
    return text


def text(value: Any) -> str:
    """Return a value as Python source; arrays, nested ones included, by `array_text`."""
    if isinstance(value, np.ndarray):
        return array_text(value)
    if isinstance(value, np.generic):
        return f"np.{value.dtype.name}({_number(value)})"
    if isinstance(value, float):
        return _number(value)
    if type(value) is list:
        return "[" + ", ".join(map(text, value)) + "]"
    if type(value) is tuple:
        return "(" + ", ".join(map(text, value)) + ("," if len(value) == 1 else "") + ")"
    if type(value) is dict:
        return "{" + ", ".join(f"{text(key)}: {text(each)}" for key, each in value.items()) + "}"
    return repr(value)


class Printed:
    """The base of dataclasses that hold arrays: their repr is a call that recreates them.

    The text needs ``import numpy as np`` and the names of `covp.testing`; what is at its default is
    left out. Two are equal if their texts are.
    """

    def _parts(self) -> list[str]:
        parts = []
        for field in dataclasses.fields(self):  # type: ignore[arg-type]
            value, default = getattr(self, field.name), field.default
            if isinstance(value, np.ndarray) or default is dataclasses.MISSING or value != default:
                parts.append(f"{field.name}={text(value)}")
        return parts

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self._parts())})"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Print the object as Hypothesis does, instead of field by field."""
        parts = self._parts()
        if len(repr(self)) < 72:
            printer.text(repr(self))
            return
        with printer.group(indent=4, open=f"{type(self).__name__}(", close=""):
            for part in parts:
                printer.break_()
                printer.text(f"{part},")
        printer.break_()
        printer.text(")")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))
