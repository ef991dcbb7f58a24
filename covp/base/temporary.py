"""Temporary folders that name their process, so that what a killed process left is found."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import tempfile
import time
import weakref
from functools import cache
from pathlib import Path

from covp.errors import CovpError

_NAME = re.compile(r"^\.?covp-[a-z]+-(?P<space>[0-9a-f]+)-(?P<pid>\d+)-")
_FOREIGN_AGE = 7 * 24 * 3600.0  # seconds until what another host or container made is stale
_swept: set[Path] = set()


class TemporaryFolder:
    """A folder that is removed at the end of its block, with this object or with its process.

    Unlike `tempfile.TemporaryDirectory`, whose folder a fork of the process removes, too.

    Attributes:
        name: its path.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._end = weakref.finalize(self, _remove_own, Path(name), os.getpid())

    def __enter__(self) -> str:
        return self.name

    def __exit__(self, *error: object) -> None:
        self._end()


def temporary_folder(purpose: str, beside: Path | None = None) -> TemporaryFolder:
    """Return a folder that is removed at the end of its block, or after this process was killed.

    Args:
        purpose: one lower-case word; part of the folder's name.
        beside: where it is made, hidden; the default is the machine's temporary folder.

    Raises:
        CovpError: it cannot be made, as the disk is full.
    """
    try:
        parent = Path(tempfile.gettempdir()) if beside is None else beside
        sweep(parent)
        hidden = "" if beside is None else "."
        return TemporaryFolder(tempfile.mkdtemp("", f"{hidden}covp-{owner(purpose)}-", parent))
    except OSError as error:
        if beside is not None:
            raise
        reason = error.strerror or error
        raise CovpError(
            f"no temporary folder can be made: {reason}; make room, or name a place with TMPDIR"
        ) from None


def owner(purpose: str) -> str:
    """Return the middle of a temporary name: its purpose and whose it is."""
    return f"{purpose}-{_process_space()}-{os.getpid()}"


def sweep(parent: Path, again: bool = False) -> int:
    """Remove covp's temporary files and folders whose process is gone; return their number.

    A folder is looked at once per process, or ``again``.
    """
    if parent in _swept and not again:
        return 0
    _swept.add(parent)
    removed = 0
    with contextlib.suppress(OSError), os.scandir(parent) as entries:
        for entry in entries:
            if "covp-" in entry.name and _is_stale(entry):
                _remove(Path(entry.path))
                removed += 1
    return removed


def _is_stale(entry: os.DirEntry[str]) -> bool:
    match = _NAME.match(entry.name)
    if match is None:
        return False
    with contextlib.suppress(OSError):
        state = entry.stat(follow_symlinks=False)
        if state.st_uid != os.getuid():
            return False
        if match["space"] == _process_space():
            return not _is_running(int(match["pid"]))
        # containers and hosts may share a folder and do not see each other's processes
        return time.time() - state.st_mtime > _FOREIGN_AGE
    return False


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return True


@cache
def _process_space() -> str:
    """Return what tells the processes that this one sees from those of other hosts and containers.

    The first process namespace has the same number on every host, so the host's name and its boot
    count, too; what was left before a boot is taken for another host's.
    """
    facts = [os.uname().nodename]
    with contextlib.suppress(OSError):
        facts.append(Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii"))
        facts.append(str(os.stat("/proc/self/ns/pid").st_ino))
    return hashlib.sha256("\n".join(facts).encode()).hexdigest()[:12]


def _remove_own(path: Path, process: int) -> None:
    if process == os.getpid():
        _remove(path)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            path.unlink()
