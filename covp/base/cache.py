"""The cache folder: objects, native code, downloaded models; everything in it can be made again.

An entry is a file and its checksum beside it. One that is damaged, cut off or without checksum is
not there: who asks for it makes it anew. Native code in the cache is executed, so what another user
owns or may write is not there either. Where the folder cannot be used, one line says so and a
temporary one takes its place for the rest of the process.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import tempfile
import threading
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from covp.base.cache_folder import (
    IN_USE,
    KEPT,
    MADE,
    PARTIAL,
    REPAIRED,
    claim,
    distrust,
    open_own,
)
from covp.base.temporary import TemporaryFolder, owner, sweep, temporary_folder
from covp.base.terminal import say
from covp.errors import CovpError

_T = TypeVar("_T")
SUM = ".crc"
"""Suffix that an entry's checksum file adds to the entry's name."""
TOUCH_SECONDS = 30.0
"""Resolution of the file time that records when an entry was last used."""
_OF_THE_PROCESS = {
    errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN, errno.ECHILD, errno.EPIPE, errno.EBADF,
}  # fmt: skip
"""Errors that another folder would not avoid; all others mean that this one is unusable."""
_lock = threading.Lock()
_instead: dict[Path, TemporaryFolder] = {}
_said: set[str] = set()
_in_use: dict[Path, int] = {}
stored: list[Callable[[int], None]] = []
"""Callbacks that get the size of each entry stored in the cache folder itself."""


def cache_root() -> Path:
    """Return ``$COVP_CACHE_DIR``, ``$XDG_CACHE_HOME/covp`` or ``~/.cache/covp``; maybe missing."""
    base = os.environ.get("COVP_CACHE_DIR")
    if base:
        return Path(base)
    return Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")) / "covp"


def cache_dir(kind: str) -> Path:
    """Make the folder of one kind of cached file on demand, in a temporary place if need be.

    Args:
        kind: one of those that `covp.base.cache_folder` declares, so that all can be cleared.

    Raises:
        CovpError: neither the cache folder nor a temporary one can be written.
    """

    return retry_in_temporary(lambda: _folder(_root() / kind))


def find(kind: str, name: str) -> Path | None:
    """Return the path of an entry that is as it was stored; None where it is to be made anew."""
    found = _whole(kind, name)
    return None if found is None else found[0]


def load(kind: str, name: str) -> bytes | None:
    """Return the content of an entry; None where it is to be made anew."""
    found = _whole(kind, name)
    return None if found is None else found[1]


def store(kind: str, name: str, data: bytes, mode: int = 0o600) -> Path:
    """Make or replace an entry; readers see all of it or nothing.

    Args:
        kind: of entry, the name of its folder.
        name: of its file.
        data: its content.
        mode: its file's permissions.

    Returns:
        Where it is.

    Raises:
        CovpError: neither the cache folder nor a temporary one can be written.
    """

    def put() -> Path:
        path = cache_dir(kind) / name
        hold()
        _replace(path.with_name(name + SUM), _checksum(data).encode(), 0o600)
        _replace(path, data, mode)
        return path

    path = retry_in_temporary(put)
    if path.parent.parent == cache_root():
        for listener in stored:
            listener(len(data))
    return path


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file under a temporary name, then rename: readers see all of it or nothing."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".covp-{owner('write')}-")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def content_key(*parts: str | bytes) -> str:
    """Return a hash of the parts in their order, the same on every machine."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()[:32]


def require_persistent(kind: str) -> None:
    """Raise CovpError if what is stored in one kind of file would end with this process."""
    root, reason = cache_root(), None
    try:
        _folder(root / kind)
    except OSError as error:
        reason = error.strerror
    if reason or root in _instead:
        raise CovpError(
            f"the cache folder {root} cannot be used{f': {reason}' if reason else ''}; what is "
            "found would be lost at the end: name a folder with COVP_CACHE_DIR"
        )


def retry_in_temporary(work: Callable[[], _T]) -> _T:
    """Do work that writes to the cache; where it cannot, again with a temporary folder instead.

    Raises:
        CovpError: the temporary folder cannot be written either.
    """
    root = cache_root()
    was_instead = root in _instead
    try:
        return work()
    except OSError as error:
        if error.errno is None or error.errno in _OF_THE_PROCESS:
            raise
        if was_instead:
            raise _no_place(error) from None
        _give_way(root, error)
    try:
        return work()
    except OSError as error:
        raise _no_place(error) from None


def count_damaged_entry() -> None:
    """Note that one entry was found damaged."""
    path = cache_root() / REPAIRED
    with contextlib.suppress(OSError), open(open_own(path, os.O_WRONLY | os.O_APPEND), "ab") as log:
        log.write(b".")


def hold() -> None:
    """Say that this process uses the cache folder, until it ends; see `covp.base.cache_upkeep`."""
    root = cache_root()
    if root in _in_use or root in _instead:
        return
    with contextlib.suppress(OSError):
        if not root.is_dir():
            return
        claim(root)
        handle = open_own(root / IN_USE, os.O_RDWR)
        with contextlib.suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        _in_use[root] = handle


def release() -> None:
    """Take back what `hold` said."""
    handle = _in_use.pop(cache_root(), None)
    if handle is not None:
        os.close(handle)


def _root() -> Path:
    root = cache_root()
    instead = _instead.get(root)
    return root if instead is None else Path(instead.name)


def _folder(path: Path) -> Path:
    """Return a folder of the cache. Raises OSError: it cannot be made or written, or is foreign."""
    if path.name not in (*MADE, *KEPT):
        raise ValueError(f"{path.name} is not declared as a folder of the cache")
    claim(path.parent)
    path.mkdir(mode=0o700, exist_ok=True)
    reason = distrust(path.lstat())
    if reason:
        raise PermissionError(errno.EACCES, reason, str(path))
    if not os.access(path, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    return path


def _whole(kind: str, name: str) -> tuple[Path, bytes] | None:
    """Return path and content of an intact entry, of the cache or of the folder in its place."""
    hold()
    for root in dict.fromkeys((cache_root(), _root())):
        path = f"{root}/{kind}/{name}"
        try:
            folders = os.stat(root), os.lstat(f"{root}/{kind}")
            with open(path, "rb", buffering=0, opener=_without_links) as stream:
                state = os.fstat(stream.fileno())
                reasons = list(map(distrust, (*folders, state)))
                if any(reasons):
                    if reasons[-1]:
                        _say_once(f"{path} of the cache is not used: {reasons[-1]}")
                    continue
                data = stream.readall()
            with open(path + SUM, "rb", buffering=0, opener=_without_links) as stream:
                expected = stream.read(256)
        except OSError:
            continue
        if expected == _checksum(data).encode():
            if abs(time.time() - state.st_mtime) > TOUCH_SECONDS:
                with contextlib.suppress(OSError):
                    os.utime(path)  # what is used last is evicted last
            return Path(path), data
        count_damaged_entry()
    return None


def _say_once(text: str) -> None:
    with _lock:
        if text in _said:
            return
        _said.add(text)
    say(text)


def _without_links(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW)


def _checksum(data: bytes) -> str:
    """Return a CRC and the size: cheap to check, against accidents and not against attacks."""
    return f"{zlib.crc32(data):08x} {len(data)}"


def _replace(path: Path, data: bytes, mode: int) -> None:
    partial = path.parent.parent / PARTIAL
    partial.mkdir(mode=0o700, exist_ok=True)
    if partial.is_symlink():
        raise PermissionError(errno.EACCES, "it is a link", str(partial))
    sweep(partial)
    handle, temporary = tempfile.mkstemp(dir=partial, prefix=f"covp-{owner('entry')}-")
    try:
        with os.fdopen(handle, "wb") as stream:
            os.fchmod(handle, mode)
            stream.write(data)
        if path.is_dir():  # damage of another kind
            path.rename(f"{temporary}-folder")
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _give_way(root: Path, error: OSError) -> None:
    """Use a temporary folder instead of the cache folder, and say so once."""
    with _lock:
        if root in _instead:
            return
        _instead[root] = temporary_folder("cache")
    reason = error.strerror or str(error)
    say(
        f"the cache folder {root} cannot be used: {reason}; a temporary one is used "
        "(COVP_CACHE_DIR names another)"
    )


def _no_place(error: OSError) -> CovpError:
    reason = error.strerror or str(error)
    return CovpError(
        f"neither the cache folder {cache_root()} nor a temporary one can be used: {reason}; "
        "make room, or name places with COVP_CACHE_DIR and TMPDIR"
    )
