"""Writing C: names, arrays, whole files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

_TYPES = {
    "int8": "int8_t",
    "uint8": "uint8_t",
    "int16": "int16_t",
    "uint16": "uint16_t",
    "int32": "int32_t",
    "uint32": "uint32_t",
    "int64": "int64_t",
    "uint64": "uint64_t",
    "float32": "float",
    "bool": "uint8_t",
}


SIGN_SHIFTED = "/* cppcheck-suppress shiftTooManyBitsSigned ; GCC and Clang shift signs in */"
"""A comment behind ``x >> 31`` of an int32: C leaves it to the compiler, as with any other number
of bits, but cppcheck warns of 31 alone. A comparison is one instruction more with GCC."""


def c_type(dtype: np.dtype[Any]) -> str:
    """Return the C type of a numpy dtype."""
    return _TYPES[dtype.name]


def c_float(value: float) -> str:
    """Return a float literal that reads back as the same float32 (hexadecimal, exact)."""
    single = float(np.float32(value))
    if np.isinf(single):
        return "-__builtin_inff()" if single < 0 else "__builtin_inff()"
    if np.isnan(single):
        return '__builtin_nanf("")'
    return f"{single.hex()}f"


def c_integer(value: int) -> str:
    """Return an integer literal; in C the least number of a type cannot be written with a minus."""
    if value == -(2**31):
        return "(-2147483647 - 1)"  # else of type long long
    if value == -(2**63):
        return "(-9223372036854775807LL - 1)"
    if -(2**31) <= value < 2**31:
        return str(value)
    return f"{value}u" if 0 < value < 2**32 else f"{value}{'LL' if value < 2**63 else 'ULL'}"


def c_comment(text: str) -> str:
    """Return a comment; names from a model may hold what would begin or end one."""
    return f"/* {text.replace('*/', '* /').replace('/*', '/ *')} */"


def c_array(name: str, data: NDArray[Any], comment: str = "") -> str:
    """Return a static constant array with its initializer, 4-byte aligned, row-major.

    The alignment lets kernels read small elements a word at a time.

    Args:
        name: of the array in C.
        data: of a dtype that `c_type` knows; an empty one becomes an array of one element.
        comment: written above it.
    """
    flat = np.ascontiguousarray(data).reshape(-1)
    if flat.dtype == np.float32:
        values = [c_float(value) for value in flat.tolist()]
    elif flat.dtype.kind in "iu" and flat.dtype.itemsize < 4:
        values = list(map(str, flat.tolist()))  # as `c_integer`, and quicker: weights are many
    else:
        values = [c_integer(int(value)) for value in flat.tolist()]
    values = values or ["0"]  # C has no empty arrays
    lines = [", ".join(values[i : i + 24]) for i in range(0, len(values), 24)]
    body = ",\n    ".join(lines)
    note = f"{c_comment(comment)}\n" if comment else ""
    return (
        f"{note}static const {c_type(flat.dtype)} {name}[{max(flat.size, 1)}]"
        f" __attribute__((aligned(4))) = {{\n    {body}\n}};\n"
    )


def indent(parts: Sequence[str], levels: int = 1) -> str:
    """Return parts of one or more lines, joined, each line indented by four spaces per level."""
    pad = "    " * levels
    lines = [line for part in parts for line in part.split("\n")]
    return "\n".join(pad + line if line else line for line in lines)
