"""Arrays in files: .npy, .npz, and raw bytes as MLPerf Tiny's runner has them."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from covp.errors import UsageError

Array = NDArray[Any]
_T = TypeVar("_T")

RAW = (".bin", ".raw")
"""Suffixes of files that are the bytes of one sample, little-endian and without a header."""


def read_array(path: str | Path, mapped: bool = False) -> Array:
    """The array in a .npy file.

    Args:
        path: of the file.
        mapped: leave its content on disk until it is used.

    Raises:
        UsageError: the file is missing or holds no plain array.
    """
    found = _loaded(path, lambda: np.load(path, "r" if mapped else None, allow_pickle=False))
    if not isinstance(found, np.ndarray):
        found.close()
        raise UsageError(f"{path}: holds several arrays; save one with numpy.save")
    return found


def read_arrays(path: Path) -> dict[str, Array]:
    """The arrays in a .npz file by name.

    Raises:
        UsageError: the file is missing or holds no plain arrays.
    """

    def load() -> dict[str, Array]:
        with np.load(path, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}

    if path.is_file() and not zipfile.is_zipfile(path):
        raise UsageError(f"{path}: is no archive of arrays; write it with numpy.savez")
    return _loaded(path, load)


def _loaded(path: str | Path, load: Callable[[], _T]) -> _T:
    """What numpy reads of a file; its errors as one line."""
    try:
        return load()
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror or error}") from None
    except MemoryError:
        raise UsageError(f"{path}: is too large for the memory of this machine") from None
    except Exception:  # numpy's parser of the header has no errors of its own
        raise UsageError(f"{path}: holds no plain array; write it with numpy.save") from None


def read_raw(path: Path, dtype: np.dtype[Any], elements: int) -> Array:
    """The elements in a file of raw bytes: of the dtype, or as float32, as its size says.

    Args:
        path: of the file.
        dtype: of the elements as they are stored.
        elements: how many there have to be.

    Raises:
        UsageError: the file cannot be read or has another size.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror or error}") from None
    for found in dict.fromkeys((dtype, np.dtype(np.float32))):
        if len(content) == elements * found.itemsize:
            return np.frombuffer(content, found.newbyteorder("<")).astype(found)
    raise UsageError(
        f"{path}: has {len(content):,} bytes; a sample has {elements * dtype.itemsize:,} "
        f"({dtype}) or {elements * 4:,} (float32)"
    )
