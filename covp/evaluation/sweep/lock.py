"""`Lock`: a file has one writing process; the lock ends with the process, however it ends."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from covp.base.closing import Owned
from covp.errors import CovpError, UsageError


class Lock(Owned):
    """The right to write a file, held by a lock on another file beside it.

    Not on the file itself: SQLite loses its own locks when anything closes its file.

    Raises:
        UsageError: another process has it.
        CovpError: the folder cannot be written to.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._file = path, -1
        beside = _beside(path)
        try:
            beside.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(beside, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.truncate(self._file, 0)
            os.pwrite(self._file, f"{os.getpid()}".encode(), 0)
        except BlockingIOError:
            holder = os.pread(self._file, 20, 0).decode(errors="replace") or "unknown"
            self.close()
            raise UsageError(
                f"{path}: process {holder} is working on this sweep; wait for it, or see it with "
                "--status. Several coordinators can share a PostgreSQL store (--store)"
            ) from None
        except OSError as error:
            self.close()
            reason = error.strerror
            raise CovpError(
                f"{beside}: cannot be written: {reason}; make room, or name another folder with -o"
            ) from None

    @property
    def label(self) -> str:
        """See `Owned`."""
        return f"the right to write {self._path}"

    def close(self) -> None:
        """Let another process have it."""
        if self._file >= 0:
            fcntl.flock(self._file, fcntl.LOCK_UN)  # a fork has the file open, too
            os.close(self._file)
            self._file = -1


def is_held(path: Path) -> bool:
    """Whether a process of this machine has the right to write a file."""
    try:
        handle = os.open(_beside(path), os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


def _beside(path: Path) -> Path:
    return path.with_name(path.name + ".lock")
