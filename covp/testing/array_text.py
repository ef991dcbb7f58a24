"""Arrays as Python text: short, exact, and the same array again when it is evaluated."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray

_LONG = 32
"""Elements of an array whose runs are counted."""


def array_text(array: NDArray[Any]) -> str:
    """An expression of numpy (as ``np``) that makes the array again.

    Floating point numbers have as many digits as tell them from their neighbours.
    """
    dtype = f"np.{array.dtype.name}" if array.dtype.name != "bool" else "bool"
    if array.size == 0 or (array.size > 4 and _uniform(array)):
        shape: Any = array.shape if array.ndim != 1 else array.size
        value = _number(array.flat[0]) if array.size else "0"
        if value == "0":
            return f"np.zeros({shape}, {dtype})"
        return f"np.full({shape}, {value}, {dtype})"
    runs = _runs(array.ravel())
    if runs is not None:
        shape = f".reshape({', '.join(map(str, array.shape))})" if array.ndim > 1 else ""
        return f"np.array({runs}, {dtype}){shape}"
    return f"np.array({_nested(array)}, {dtype})"


def _runs(flat: NDArray[Any]) -> str | None:
    """Long arrays that have long runs of one number, as a sum of lists."""
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
    if array.dtype.kind == "f" and (first == 0 or first != first):
        return False  # the sign of zeros and the NaNs show
    return bool((array == first).all())


def _nested(array: NDArray[Any]) -> str:
    if array.ndim == 0:
        return _number(array[()])
    return "[" + ", ".join(_nested(part) for part in array) + "]"


def _number(value: Any) -> str:
    if not isinstance(value, np.floating):
        return str(value)
    text = str(value)
    if text in ("nan", "inf", "-inf"):
        return text.replace("nan", "np.nan").replace("inf", "np.inf")
    return text


def text(value: Any) -> str:
    """Any value as Python text, arrays by `array_text`, inside of containers too."""
    if isinstance(value, np.ndarray):
        return array_text(value)
    if isinstance(value, np.generic):
        return f"np.{value.dtype.name}({_number(value)})"
    if type(value) is list:
        return "[" + ", ".join(map(text, value)) + "]"
    if type(value) is tuple:
        return "(" + ", ".join(map(text, value)) + ("," if len(value) == 1 else "") + ")"
    if type(value) is dict:
        return "{" + ", ".join(f"{text(key)}: {text(each)}" for key, each in value.items()) + "}"
    return repr(value)


def dataclass_text(instance: Any) -> str:
    """A dataclass as the call that makes it again, without what is at its default."""
    parts = []
    for field in dataclasses.fields(instance):
        value = getattr(instance, field.name)
        default = field.default
        if isinstance(value, np.ndarray) or default is dataclasses.MISSING or value != default:
            parts.append(f"{field.name}={text(value)}")
    return f"{type(instance).__name__}({', '.join(parts)})"
