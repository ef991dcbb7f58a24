"""Checks of what a caller of the Python interface passes: one line instead of a TypeError later."""

from __future__ import annotations

import errno
import math
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from covp.errors import UsageError, near_misses


def demand(name: str, value: Any, kinds: type | tuple[type, ...], what: str) -> None:
    """Raise UsageError unless the argument ``name`` is of one of the types.

    Args:
        name: of the argument.
        value: that was passed.
        kinds: types that it may have; a bool is not an int.
        what: a description of them, e.g. "a name or a path".
    """
    is_flag = isinstance(value, bool) and kinds is int
    if not isinstance(value, kinds) or is_flag:
        raise UsageError(f"{name} must be {what}, not {shown(value)}")


def demand_each(name: str, values: Any, kinds: type | tuple[type, ...], what: str) -> None:
    """Raise UsageError unless the argument is a sequence of such values, and no text."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise UsageError(f"{name} must be a list, each {what}, not {shown(values)}")
    for value in values:
        demand(f"each of {name}", value, kinds, what)


def demand_count(name: str, value: Any, least: int = 0) -> None:
    """Raise UsageError unless the argument is a whole number from ``least`` on."""
    demand(name, value, int, f"a whole number from {least} on")
    if value < least:
        raise UsageError(f"{name} must be at least {least}, not {value}")


def demand_seconds(name: str, value: Any) -> None:
    """Raise UsageError unless the argument is a finite number, 0 or more."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not (is_number and 0 <= value < math.inf):
        raise UsageError(f"{name}: {shown(value)} is not a finite number of seconds")


def demand_name(name: str, value: Any, known: Sequence[str]) -> None:
    """Raise UsageError unless the argument is one of the known names."""
    if not isinstance(value, str) or value not in known:
        raise UsageError(f"unknown {name} {shown(value)}:", hint=near_misses(str(value), known))


def shown(value: Any) -> str:
    """Return a value for a message: on one line, not too long."""
    return " ".join(f"{value!r:.80}".split())


def read_file(path: Path) -> bytes:
    """Return the content of a file that a caller names.

    Raises:
        OSError: it cannot be read, or `demand_content` refuses it.
    """
    demand_content(path)
    return path.read_bytes()


def demand_content(path: Path) -> None:
    """Check that a path is a finite file: no device such as /dev/zero, no pipe, no socket.

    Raises:
        OSError: it is something else, a folder excepted, or is not there.
    """
    mode = path.stat().st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        is_device = stat.S_ISCHR(mode) or stat.S_ISBLK(mode)
        raise OSError(errno.EINVAL, f"it is a {'device' if is_device else 'pipe'}, not a file")
