"""Arrays in files: .npy, .npz, and raw bytes as MLPerf Tiny's runner has them."""

from __future__ import annotations

import math
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import numpy as np
from numpy.typing import NDArray

from covp.base.arguments import demand_content, read_file
from covp.errors import UsageError

Array = NDArray[Any]
_T = TypeVar("_T")

RAW = (".bin", ".raw")
"""Suffixes of files that are the bytes of one sample, little-endian and without a header."""


def read_array(path: str | Path, mapped: bool = False) -> Array:
    """Return the array in a .npy file.

    Args:
        path: of the file.
        mapped: leave its content on disk until it is used.

    Raises:
        UsageError: the file is missing or holds no plain array.
    """
    found = _load(path, lambda: np.load(path, "r" if mapped else None, allow_pickle=False))
    if not isinstance(found, np.ndarray):
        found.close()
        raise UsageError("holds several arrays; save one with numpy.save", where=path)
    return found


def read_arrays(path: Path) -> dict[str, Array]:
    """Return the arrays in a .npz file by name; their content stays on disk until it is used.

    Of a compressed file all has to be read.

    Raises:
        UsageError: the file is missing, holds no plain arrays, or much that is compressed.
    """

    def load() -> dict[str, Array]:
        with zipfile.ZipFile(path) as archive, path.open("rb") as file:
            members = archive.infolist()
            packed = sum(m.file_size for m in members if m.compress_type != zipfile.ZIP_STORED)
            if packed > _MOST_PACKED:
                raise UsageError(
                    f"has {packed:,} bytes unpacked; write it with numpy.savez, "
                    "which does not compress and is read in part",
                    where=path,
                )
            return {m.filename.removesuffix(".npy"): _member(archive, m, file) for m in members}

    if path.is_file() and not zipfile.is_zipfile(path):
        raise UsageError("is not an archive of arrays; write it with numpy.savez", where=path)
    return _load(path, load)


def _member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, file: BinaryIO) -> Array:
    """Return an array of an archive, mapped where it is stored as it is."""
    with archive.open(member) as stream:
        if member.compress_type != zipfile.ZIP_STORED:
            return np.asarray(np.lib.format.read_array(stream, allow_pickle=False))
        version = np.lib.format.read_magic(stream)
        shape, is_fortran, dtype = _HEADERS[version](stream)
        header = stream.tell()
    file.seek(member.header_offset + _NAME_LENGTH)
    name, extra = struct.unpack("<HH", file.read(4))
    start = member.header_offset + _NAME_LENGTH + 4 + name + extra + header
    size = math.prod(shape) * dtype.itemsize
    if dtype.hasobject or header + size > member.file_size:
        raise ValueError("no plain array")
    if not size:
        return np.empty(shape, dtype)
    return np.memmap(archive.filename or "", dtype, "r", start, shape, "F" if is_fortran else "C")


_MOST_PACKED = 1 << 30
_NAME_LENGTH = 26
"""Place of the lengths of name and extra field in a local header (APPNOTE.TXT 4.3.7)."""
_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


def _load(path: str | Path, load: Callable[[], _T]) -> _T:
    """Return what numpy reads of a file; turn its errors into one line."""
    try:
        demand_content(Path(path))
        return load()
    except UsageError:
        raise
    except OSError as error:
        raise UsageError(f"cannot be read: {error.strerror or error}", where=path) from None
    except MemoryError:
        raise UsageError("is too large for the memory of this machine", where=path) from None
    except Exception:  # numpy's parser of the header has no errors of its own
        raise UsageError("holds no plain array; write it with numpy.save", where=path) from None


def read_raw(path: Path, dtype: np.dtype[Any], elements: int) -> Array:
    """Return the elements in a file of raw bytes: of the dtype, or as float32, as its size says.

    Args:
        path: of the file.
        dtype: of the elements as they are stored.
        elements: how many there have to be.

    Raises:
        UsageError: the file cannot be read or has another size.
    """
    try:
        content = read_file(path)
    except OSError as error:
        raise UsageError(f"cannot be read: {error.strerror or error}", where=path) from None
    for found in dict.fromkeys((dtype, np.dtype(np.float32))):
        if len(content) == elements * found.itemsize:
            return np.frombuffer(content, found.newbyteorder("<")).astype(found)
    raise UsageError(
        f"has {len(content):,} bytes; a sample has {elements * dtype.itemsize:,} "
        f"({dtype}) or {elements * 4:,} (float32)",
        where=path,
    )
