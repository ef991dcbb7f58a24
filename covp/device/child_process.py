"""Child processes that import nothing from the current folder and do not outlive this one."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

SAFE_PATH = {"PYTHONSAFEPATH": "1"}
"""Environment of a child process that runs Python: the current folder, whoever may write it, is
not on its search path for modules, as it is by default with ``-c`` and ``-m`` (Python's option -P).
"""
_PR_SET_PDEATHSIG = 1  # prctl(2)


def ends_with_parent(number: signal.Signals) -> Callable[[], None] | None:
    """For ``Popen(preexec_fn=...)``: the child gets signal ``number`` when this process dies.

    None where the system cannot do that: it is Linux that can.
    """
    if sys.platform != "linux":
        return None
    libc = ctypes.CDLL(None)
    return lambda: libc.prctl(_PR_SET_PDEATHSIG, number)


@contextmanager
def safe_path() -> Iterator[None]:
    """Processes that `multiprocessing` starts meanwhile have `SAFE_PATH`."""
    before = {name: os.environ.get(name) for name in SAFE_PATH}
    os.environ.update(SAFE_PATH)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


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
