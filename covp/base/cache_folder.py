"""Rules for covp's cache folder: this user owns it and it carries a marker.

Only in such a folder is anything stored or removed. A folder with other files in it never becomes
one, whatever ``COVP_CACHE_DIR`` names, so that no file of the user's is taken for an entry. Links
in the folder are not followed.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

MADE = (
    "area", "core-costs", "cores", "images", "native", "objects", "rtl", "signatures", "source",
    "sources", "versions", "zig",
)  # fmt: skip
"""Folders whose content is regenerated on demand."""
KEPT = ("records", "models")
"""Folders whose content takes hours or a network: the tuner's records, fetched models."""
PARTIAL = "partial"
"""The folder of entries that are being written."""
IN_USE = "in-use"
"""The file that processes lock while they use the folder."""
LIMIT = "limit"
"""The file that holds the limit of the folder's size in bytes."""
REPAIRED = "repaired"
"""The file with one byte for each damaged entry that was found."""

_MARKER = "CACHEDIR.TAG"
_SIGNATURE = (
    b"Signature: 8a477f597d28d172789f06886806bc55\n"
    b"# This file marks a cache folder of covp: all in it can be made again.\n"
    b"# The format is that of the Cache Directory Tagging Specification (bford.info/cachedir).\n"
)
_OF_OLD = {*MADE, *KEPT, PARTIAL, IN_USE, LIMIT, REPAIRED}


def claim(root: Path) -> None:
    """Make a cache folder, or see that a folder is one.

    Args:
        root: of the cache. One that is missing or empty becomes a cache folder.

    Raises:
        OSError: it cannot be made or written, is another user's, or holds other files.
    """
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    reason = refusal(root)
    if reason:
        raise PermissionError(errno.EACCES, reason, str(root))
    if not _is_marked(root):
        with open(open_own(root / _MARKER, os.O_WRONLY), "wb", buffering=0) as stream:
            stream.write(_SIGNATURE)


def refusal(root: Path) -> str | None:
    """Return why a folder is not to be used as a cache folder; None where it may be.

    Raises:
        OSError: it cannot be looked at, or is not there.
    """
    reason = distrust(root.stat())
    if reason or _is_marked(root):
        return reason
    names = set(os.listdir(root))
    # a folder without a marker, or with a damaged one, has this file; images alone are anybody's
    if not names or (names - {_MARKER} <= _OF_OLD and IN_USE in names) or _is_marked(root):
        return None
    return f"it holds other files and no {_MARKER} of covp's; name an empty folder"


def distrust(state: os.stat_result) -> str | None:
    """Return why a file or folder may hold what this user did not put there; root may do so.

    Args:
        state: of ``lstat`` where a link is not to be followed.
    """
    if stat.S_ISLNK(state.st_mode):
        return "it is a link"
    if state.st_uid not in (os.getuid(), 0):
        return f"it belongs to another user (uid {state.st_uid})"
    if state.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return "other users may write to it (chmod -R go-w mends that if all in it is yours)"
    return None


def open_own(path: Path, flags: int) -> int:
    """Open a file of the folder that covp makes, never what a link points to.

    Args:
        path: of the file.
        flags: of `os.open`; the file is made if need be, with mode 0600.

    Raises:
        OSError: it cannot be opened, or is a link.
    """
    return os.open(path, flags | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def _is_marked(root: Path) -> bool:
    """Return whether the folder has the marker, or the beginning of one that is being written."""
    try:
        handle = os.open(root / _MARKER, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return False
    with open(handle, "rb", buffering=0) as stream:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return False
        return _SIGNATURE.startswith(stream.read(len(_SIGNATURE)) or b"")
