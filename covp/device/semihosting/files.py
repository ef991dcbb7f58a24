"""`HostFiles`: the files that a program has open on the host, by handle."""

from __future__ import annotations

import errno
import io
import os
from pathlib import Path
from typing import Protocol

from covp.base.closing import Owned
from covp.device.semihosting.abi import FEATURES
from covp.device.semihosting.console import Console

_MODES = ("r", "r+", "w", "w+", "a", "a+")
"""fopen's modes by half of the number that OPEN gets: text and binary are the same here."""
_MOST = 64  # open files
_PIECE = 1 << 16


class OpenFile(Protocol):
    """A file that a handle stands for. Methods raise OSError."""

    is_terminal: bool

    def write(self, data: bytes) -> int: ...

    def read(self, size: int) -> bytes | None: ...

    def seek(self, position: int) -> None: ...

    def length(self) -> int: ...

    def close(self) -> None: ...


class _Terminal:
    """``:tt``, opened for reading, writing or appending (errors)."""

    def __init__(self, console: Console, kind: int) -> None:
        self.is_terminal = console.is_terminal
        self._console, self._reads, self._is_error = console, kind == 0, kind == 2

    def write(self, data: bytes) -> int:
        if self._reads:
            raise OSError(errno.EBADF, "opened for reading")
        self._console.write(data, self._is_error)
        return len(data)

    def read(self, size: int) -> bytes | None:
        if not self._reads:
            raise OSError(errno.EBADF, "opened for writing")
        return self._console.read(size)

    def seek(self, position: int) -> None:
        raise OSError(errno.ESPIPE, "a terminal has no position")

    def length(self) -> int:
        raise OSError(errno.EINVAL, "a terminal has no length")

    def close(self) -> None:
        """Do nothing: nothing is kept."""


class _Stored(Owned):
    """A host file, or bytes that look like one."""

    is_terminal = False

    def __init__(self, stream: io.FileIO | io.BufferedReader) -> None:
        self._stream = stream

    @property
    def label(self) -> str:
        """A description of the file, for messages."""
        return "a file that the program has open"

    def write(self, data: bytes) -> int:
        try:
            return self._stream.write(data) or 0
        except io.UnsupportedOperation:
            raise OSError(errno.EBADF, "opened for reading") from None

    def read(self, size: int) -> bytes:
        parts = bytearray()
        try:
            while len(parts) < size:
                piece = self._stream.read(min(size - len(parts), _PIECE))
                if not piece:
                    break
                parts += piece
        except io.UnsupportedOperation:
            raise OSError(errno.EBADF, "opened for writing") from None
        return bytes(parts)

    def seek(self, position: int) -> None:
        self._stream.seek(position)

    def length(self) -> int:
        here = self._stream.tell()
        end = self._stream.seek(0, os.SEEK_END)
        self._stream.seek(here)
        return end

    def close(self) -> None:
        self._stream.close()


class HostFiles:
    """Open files by handle, 1 and up.

    Args:
        console: of ``:tt``.
        folder: the only place of host files; None: there are none. Names are relative to it, and
            those that lead out of it, by ``..`` or a link too, are refused (EACCES).
    """

    def __init__(self, console: Console, folder: Path | None) -> None:
        self._console = console
        self._folder = None if folder is None else folder.resolve()
        self._open: dict[int, OpenFile] = {}

    def open(self, name: str, mode: int) -> int:
        """Return a new handle.

        Args:
            name: a file, ``:tt`` or ``:semihosting-features``.
            mode: 0 to 11, as in Arm's table of OPEN.

        Raises:
            OSError: there is no such file, or it is not to be opened so.
        """
        if not 0 <= mode < 2 * len(_MODES):
            raise OSError(errno.EINVAL, f"mode {mode}")
        if len(self._open) >= _MOST:
            raise OSError(errno.EMFILE, f"{_MOST} files are open")
        handle = next(number for number in range(1, _MOST + 1) if number not in self._open)
        self._open[handle] = self._file(name, mode)
        return handle

    def _file(self, name: str, mode: int) -> OpenFile:
        if name == ":tt":
            return _Terminal(self._console, mode // 4)
        if name == ":semihosting-features":
            if mode > 1:
                raise OSError(errno.EACCES, "it can be read only")
            return _Stored(io.BufferedReader(io.BytesIO(FEATURES)))
        return _Stored(io.FileIO(self.path(name), _MODES[mode // 2]))

    def path(self, name: str) -> Path:
        """Return the host file of that name. Raises OSError: it lies outside the folder."""
        if self._folder is None:
            raise OSError(errno.EACCES, "no folder is given to the program")
        try:
            found = (self._folder / name).resolve()
        except ValueError as error:  # a zero byte
            raise OSError(errno.EINVAL, str(error)) from None
        except RuntimeError as error:  # links in a circle, before Python 3.13
            raise OSError(errno.ELOOP, str(error)) from None
        if not found.is_relative_to(self._folder):
            raise OSError(errno.EACCES, f"{name} is outside {self._folder}")
        if found.exists() and not found.is_file():  # a FIFO would block, a device is none of its
            raise OSError(errno.EACCES, f"{name} is not a regular file")
        return found

    def __getitem__(self, handle: int) -> OpenFile:
        """Return the open file of a handle. Raises OSError: there is none."""
        if handle not in self._open:
            raise OSError(errno.EBADF, f"handle {handle} is not open")
        return self._open[handle]

    def close(self, handle: int) -> None:
        """Close one. Raises OSError: it is not open."""
        self[handle].close()
        del self._open[handle]

    def close_all(self) -> None:
        """Close those that the program left open."""
        for handle in list(self._open):
            self.close(handle)
