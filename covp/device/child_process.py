"""A child process that does not outlive this one, however this one ends (Linux)."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
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


def end_with_parent() -> None:
    """In a worker of `multiprocessing`, first of all: it is killed when its parent dies, however
    that comes about (Linux).
    """
    ask = ends_with_parent(signal.SIGKILL)
    if ask is not None:
        ask()
    parent = multiprocessing.parent_process()
    if parent is not None and not parent.is_alive():  # it died before the line above
        os._exit(1)
