"""The size of the cache folder, its limit, and removing what is in it.

Processes that use the cache hold a shared lock on it. While another one does, entries of the
last minutes stay: it may be about to read them.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from covp.base import cache
from covp.base.cache import SUM, TOUCH_SECONDS
from covp.base.cache_folder import (
    IN_USE,
    KEPT,
    LIMIT,
    MADE,
    PARTIAL,
    REPAIRED,
    claim,
    open_own,
    refusal,
)
from covp.base.temporary import sweep
from covp.errors import CovpError

_IN_USE_SECONDS = 120.0 + TOUCH_SECONDS
_LOW = 0.9  # of the limit: evicting goes down to it, so that it is not done at each new entry


@dataclass(frozen=True)
class CacheState:
    """The figures that ``covp cache`` prints.

    Attributes:
        path: of the folder.
        bytes: of all files in it.
        entries: files that are looked up by name: objects, images and so on, with a checksum.
        repaired: damaged entries found since the folder was made; each was made anew.
        limit: bytes that it may take; None where there is no limit.
        kinds: folder to bytes.
    """

    path: Path
    bytes: int
    entries: int
    repaired: int
    limit: int | None
    kinds: dict[str, int]


@dataclass(frozen=True)
class _Item:
    """A file or folder removed as one; ``used`` is its last use in seconds since 1970."""

    path: Path
    size: int
    used: float


def state() -> CacheState:
    """Measure the cache as it is now, after removing stale temporary files."""
    root = cache.cache_root()
    if _is_folder(root / PARTIAL):
        sweep(root / PARTIAL, again=True)
    kinds = {folder: _bytes(root / folder) for folder in sorted((*MADE, *KEPT, PARTIAL))}
    kinds = {folder: size for folder, size in kinds.items() if size}
    entries = sum(name.endswith(SUM) for kind in kinds for name in _names(root / kind))
    repaired = _size(root / REPAIRED)
    return CacheState(root, sum(kinds.values()), entries, repaired, limit(), kinds)


def clear(everything: bool = False) -> int:
    """Remove what can be regenerated; return the number of bytes freed.

    Args:
        everything: the tuner's records and fetched models too.

    Raises:
        CovpError: the folder is not a cache folder of this user's, or something cannot be removed.
    """
    _demand_ours()
    before = state()
    with _alone() as alone:
        for item in _items():
            if alone or time.time() - item.used > _IN_USE_SECONDS:
                _remove(item)
        if everything:
            for folder in KEPT:
                shutil.rmtree(before.path / folder, ignore_errors=True)
        _remove(_Item(before.path / REPAIRED, 0, 0))
    return before.bytes - state().bytes


def limit() -> int | None:
    """Return the bytes that the cache may take; None where there is no limit."""
    try:
        return int((cache.cache_root() / LIMIT).read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None


def set_limit(size: int | None) -> int:
    """Limit the cache to ``size`` bytes, or not at all; return the number of bytes evicted.

    Raises:
        CovpError: the cache folder cannot be written, or is not one of this user's.
    """
    _demand_ours()
    path = cache.cache_root() / LIMIT
    try:
        claim(path.parent)
        if size is None:
            path.unlink(missing_ok=True)
        else:
            cache.write_atomically(path, str(size).encode())
    except OSError as error:
        raise CovpError(f"{path} cannot be written: {error.strerror}") from None
    return evict()


def evict(at_work: bool = False) -> int:
    """Remove the least recently used entries until the limit holds; return the bytes removed.

    Args:
        at_work: this process goes on with what it used in the last minutes.

    Raises:
        CovpError: the folder is not a cache folder of this user's, or something cannot be removed.
    """
    allowed = limit()
    root = cache.cache_root()
    if allowed is None:
        return 0
    _demand_ours()
    used = sum(_bytes(root / folder) for folder in (*MADE, *KEPT))
    if used <= allowed:
        return 0
    wanted, freed = used - int(allowed * _LOW), 0
    with nullcontext(False) if at_work else _alone() as alone:
        for item in sorted(_items(), key=lambda item: item.used):
            if freed >= wanted or not (alone or time.time() - item.used > _IN_USE_SECONDS):
                break
            freed += _remove(item)
    return freed


class Evictor:
    """An eviction by a process that stores entries: at its first one, then every few megabytes."""

    def __init__(self) -> None:
        self._left = 0

    def __call__(self, size: int) -> None:
        """Count the bytes of an entry that was stored."""
        self._left -= size
        if self._left < 0:
            self._left = (limit() or 1 << 30) // 16
            with contextlib.suppress(OSError, CovpError):
                evict(at_work=True)


@contextlib.contextmanager
def _alone() -> Iterator[bool]:
    """Yield whether no other process uses the cache; none can start to within the block."""
    root = cache.cache_root()
    cache.release()
    try:
        handle = open_own(root / IN_USE, os.O_RDWR)
    except OSError:
        yield False
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        alone = True
    except OSError:
        alone = False
    try:
        yield alone
    finally:
        os.close(handle)


def _items() -> list[_Item]:
    """Find what can be removed; a checksum goes with its entry, zig's libraries are one item."""
    root = cache.cache_root()
    found = []
    for folder in MADE:
        if folder == "zig":
            found += _item(root / folder) if _is_folder(root / folder) else []
            continue
        for name in _names(root / folder):
            if not name.endswith(SUM):
                found += _item(root / folder / name)
    for name in _names(root / "models"):
        if name.endswith(SUM):  # made here, not fetched
            found += _item(root / "models" / name.removesuffix(SUM))
    return found


def _item(path: Path) -> list[_Item]:
    try:
        return [_Item(path, _bytes(path) + _size(Path(f"{path}{SUM}")), path.stat().st_mtime)]
    except OSError:
        return []


def _remove(item: _Item) -> int:
    """Remove an item and its checksum; return its bytes, or 0 if it is already gone."""
    try:
        if item.path.is_dir() and not item.path.is_symlink():
            shutil.rmtree(item.path)
        else:
            item.path.unlink()
            Path(f"{item.path}{SUM}").unlink(missing_ok=True)
    except FileNotFoundError:
        return 0
    except OSError as error:
        raise CovpError(f"{item.path} cannot be removed: {error.strerror}") from None
    return item.size


def _bytes(path: Path) -> int:
    """Return the bytes of a file, or of all files in a folder."""
    if not _is_folder(path):
        return _size(path)
    return sum(_size(Path(at) / name) for at, _, names in os.walk(path) for name in names)


def _size(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:
        return 0


def _names(folder: Path) -> list[str]:
    """Return what is in a folder of the cache; nothing where it is a link or cannot be read."""
    try:
        return os.listdir(folder) if _is_folder(folder) else []
    except OSError:
        return []


def _is_folder(path: Path) -> bool:
    """Return whether the path is a folder itself: what a link names is not the cache's."""
    return path.is_dir() and not path.is_symlink()


def _demand_ours() -> None:
    """Raise CovpError if the cache folder is another user's, or holds other files."""
    root = cache.cache_root()
    try:
        reason = refusal(root)
    except FileNotFoundError:
        return
    except OSError as error:
        reason = error.strerror
    if reason:
        raise CovpError(f"nothing in {root} is removed: {reason}")
