"""A child process that does not outlive this one, however this one ends (Linux)."""

from __future__ import annotations

import ctypes
import signal
import sys
from collections.abc import Callable

_PR_SET_PDEATHSIG = 1  # prctl(2)


def ends_with_parent(number: signal.Signals) -> Callable[[], None] | None:
    """For ``Popen(preexec_fn=...)``: the child gets signal ``number`` when this process dies."""
    if sys.platform != "linux":
        return None
    libc = ctypes.CDLL(None)
    return lambda: libc.prctl(_PR_SET_PDEATHSIG, number)
