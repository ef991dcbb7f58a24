"""What every failure of a connection has to be: one line that says where, and in time."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from covp.errors import CovpError, DeviceError

NO_HANG = 20.0
"""Seconds: far beyond each limit in these tests, far below what would be a hang."""


@contextmanager
def failing(name: str, *steps: str, kind: type[CovpError] = DeviceError) -> Iterator[None]:
    """The block raises one line with the transport and these regular expressions, in time."""
    start = time.monotonic()
    with pytest.raises(kind) as caught:
        yield
    assert time.monotonic() - start < NO_HANG
    text = str(caught.value)
    assert name in text and "\n" not in text
    for step in steps:
        assert re.search(step, text), text
