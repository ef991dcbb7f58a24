"""The cache folder: objects, native code, downloaded models; everything in it can be made again."""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path


def cache_dir(kind: str) -> Path:
    """The folder of one kind of cached file, made on demand.

    ``COVP_CACHE_DIR`` overrides the default, ``$XDG_CACHE_HOME/covp`` or ``~/.cache/covp``.
    """
    base = os.environ.get("COVP_CACHE_DIR")
    if base:
        root = Path(base)
    else:
        root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "covp"
    folder = root / kind
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def content_key(*parts: str | bytes) -> str:
    """A hash of the parts in their order; the same parts give the same key on every machine."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()[:32]


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file under a temporary name, then rename: readers see all of it or nothing."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
