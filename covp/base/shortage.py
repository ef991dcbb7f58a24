"""The resource that this machine is short of, for errors of programs that do not say it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from covp.errors import CovpError

_LITTLE = 4 << 20
"""Bytes of free disk space that are too few for a compiler."""
_NEEDED = 512 << 20
"""Least address space, in bytes, in which libraries report errors; a run takes more."""


def full_disk(folders: Iterable[Path]) -> str | None:
    """Return in words which folder's disk is full; None where there is room.

    Args:
        folders: that are written; those that are not there are left out.
    """
    for folder in folders:
        try:
            free = shutil.disk_usage(folder).free
        except OSError:
            continue
        if free < _LITTLE:
            return f"the disk of {folder} has {free // 1024:,} KB left"
    return None


def small_files() -> str | None:
    """Return in words how large a file may become; None where that is not limited."""
    most = _limit("RLIMIT_FSIZE")
    return None if most is None else f"files are limited to {most:,} bytes (ulimit -f)"


def small_address_space() -> str | None:
    """Return in words how much this process may map; None where that is not limited."""
    most = _limit("RLIMIT_AS")
    return (
        None if most is None else f"the address space is limited to {most >> 20:,} MB (ulimit -v)"
    )


def demand_address_space() -> None:
    """Check that numpy and the emulator can be loaded: some libraries crash where they cannot.

    Raises:
        CovpError: this process may map less.
    """
    most = _limit("RLIMIT_AS")
    if most is not None and most < _NEEDED:
        raise CovpError(f"{small_address_space()}; covp needs 1,500 MB: raise the limit")


def _limit(name: str) -> int | None:
    if os.name != "posix":
        return None
    import resource

    most = int(resource.getrlimit(getattr(resource, name))[0])
    return None if most == resource.RLIM_INFINITY else most
