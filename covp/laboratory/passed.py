"""Arguments of kernels, as a whole: copies of them, their contents, and taking a copy's over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.laboratory.buffers import Buffer
from covp.laboratory.outcome import find_differences


def copy_arguments(arguments: Sequence[Any]) -> list[Any]:
    """Copy arrays and dictionaries; what occurs twice is one copy.

    Args:
        arguments: of a kernel.
    """
    copies: dict[int, Any] = {}

    def copy(value: Any) -> Any:
        if id(value) in copies:
            return copies[id(value)]
        if isinstance(value, np.ndarray):
            new: Any = np.array(value)
        elif isinstance(value, Buffer):
            new = value.with_array(copy(value.array))
        elif isinstance(value, dict):
            new = {}
            copies[id(value)] = new  # it may lead to itself
            new |= {name: copy(member) for name, member in value.items()}
        else:
            return list(value) if isinstance(value, list) else value
        copies[id(value)] = new
        return new

    return [copy(argument) for argument in arguments]


def contents(name: str, value: Any) -> dict[str, NDArray[Any]]:
    """Collect an argument's arrays and numbers by name: "p", or "p.stride.w" in a dictionary.

    Args:
        name: of the argument.
        value: an array, a buffer or a dictionary; all else has no content.
    """
    found: dict[str, NDArray[Any]] = {}
    met: set[int] = set()

    def collect(name: str, value: Any) -> None:
        if isinstance(value, Buffer):
            value = value.array
        if isinstance(value, np.ndarray):
            found[name] = value
        elif isinstance(value, dict) and id(value) not in met:
            met.add(id(value))
            for member, inner in value.items():
                collect(f"{name}.{member}", inner)
        elif met and isinstance(value, (int, float, np.generic, list)):
            found[name] = np.asarray(value)

    collect(name, value)
    return found


def take_over(argument: Any, copy: Any) -> None:
    """Change an argument in place to what a copy of it has become.

    Args:
        argument: of a kernel.
        copy: of `copy_arguments`.
    """
    _take_over(argument, copy, set())


def _take_over(argument: Any, copy: Any, met: set[int]) -> None:
    if isinstance(argument, Buffer):
        argument, copy = argument.array, copy.array
    if isinstance(argument, np.ndarray):
        if find_differences(argument, copy).size:
            argument[...] = copy
    elif isinstance(argument, dict) and id(argument) not in met:
        met.add(id(argument))
        for name, value in copy.items():
            if isinstance(argument.get(name), (dict, np.ndarray, Buffer)):
                _take_over(argument[name], value, met)
            else:
                argument[name] = value
