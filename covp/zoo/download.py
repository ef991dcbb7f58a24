"""Downloading a file whose hash is known."""

from __future__ import annotations

import hashlib
import urllib.request
from http.client import HTTPException
from pathlib import Path

from covp.cache import write_atomically
from covp.errors import CovpError

TIMEOUT = 30
"""Seconds without an answer before a download is given up."""


def download(url: str, path: Path, sha256: str) -> None:
    """Store what the URL holds, if it has the hash.

    Raises:
        CovpError: no answer, or another content; nothing is stored then.
    """
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT) as answer:
            data: bytes = answer.read()
    except (OSError, HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        raise CovpError(
            f"cannot download {url}: {reason}; without network, copy {path.name} into a folder "
            "and name it with COVP_MODEL_DIR"
        ) from error
    found = hashlib.sha256(data).hexdigest()
    if found != sha256:
        raise CovpError(
            f"{url}: SHA-256 is {found}, expected {sha256}; the file was not stored, fetch it "
            "again or copy the official file"
        )
    write_atomically(path, data)
