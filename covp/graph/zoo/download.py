"""Downloading a file whose hash is known."""

from __future__ import annotations

import hashlib
import time
import urllib.request
from http.client import HTTPException, HTTPResponse
from pathlib import Path

from covp.base.cache import write_atomically
from covp.errors import CovpError

TIMEOUT = 30
"""Seconds without an answer before a download is given up."""
MOST_SECONDS = 900
"""Seconds for a whole download: a server that sends a byte now and then is not waited for."""
MOST_BYTES = 1 << 28
"""Largest size of a file; a server that never stops sending does not fill the memory."""


def download(url: str, path: Path, sha256: str) -> None:
    """Download a file and store it if its hash is the expected one.

    Raises:
        CovpError: no answer, or another content; nothing is stored then.
    """
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT) as answer:
            data = _all(answer)
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


def _all(answer: HTTPResponse) -> bytes:
    """Read an answer's content. Raises OSError: it takes too long, or does not end."""
    parts, size, end = [], 0, time.monotonic() + MOST_SECONDS
    while part := answer.read1(1 << 16):
        parts.append(part)
        size += len(part)
        if size > MOST_BYTES:
            raise OSError(f"it sends more than {MOST_BYTES} bytes")
        if time.monotonic() > end:
            raise OSError(f"it was not complete after {MOST_SECONDS} seconds")
    return b"".join(parts)
