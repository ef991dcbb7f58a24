"""`Lock`: a file has one writing process; the lock ends with the process, however it ends."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from pathlib import Path

from covp.base.closing import Owned
from covp.errors import CovpError, UsageError

_NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP}
"""Errors of network file systems that are mounted without locks."""


class Lock(Owned):
    """The right to write a file, held by a lock on another file beside it.

    Not on the file itself: SQLite loses its own locks when anything closes its file.

    Raises:
        UsageError: another process has it.
        CovpError: the folder cannot be written to, or its file system has no locks.
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
                f"process {holder} is working on this sweep; wait for it, or see it with "
                "--status. Several coordinators can share a PostgreSQL store (--store)",
                where=path,
            ) from None
        except OSError as error:
            self.close()
            if error.errno in _NO_LOCKS:
                raise CovpError(
                    f"{path.parent}: its file system has no locks ({error.strerror}); name a "
                    "folder of a local disk with -o, or a PostgreSQL store with --store"
                ) from None
            reason = error.strerror
            raise CovpError(
                f"{beside}: cannot be written: {reason}; make room, or name another folder with -o"
            ) from None

    @property
    def label(self) -> str:
        """Name of the resource in errors."""
        return f"the right to write {self._path}"

    def close(self) -> None:
        """Let another process have it."""
        if self._file >= 0:
            with contextlib.suppress(OSError):
                fcntl.flock(self._file, fcntl.LOCK_UN)  # a fork has the file open, too
            os.close(self._file)
            self._file = -1


def is_held(path: Path) -> bool:
    """Return whether a process of this machine holds the right to write a file."""
    try:
        handle = os.open(_beside(path), os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(handle)
    return False


def _beside(path: Path) -> Path:
    return path.with_name(path.name + ".lock")
