"""Child processes that import nothing from the current folder and do not outlive this one."""

from __future__ import annotations

import ctypes
import signal
import sys
from collections.abc import Callable

SAFE_PATH = {"PYTHONSAFEPATH": "1"}
"""Environment of a child process that runs Python: the current folder, whoever may write it, is
not on its search path for modules, as it is by default with ``-c`` and ``-m`` (Python's option -P).
"""
_PR_SET_PDEATHSIG = 1  # prctl(2)


def ends_with_parent(number: signal.Signals) -> Callable[[], None] | None:
    """Return a ``preexec_fn`` of Popen: the child gets signal ``number`` when this process dies.

    None where the system cannot do that: it is Linux that can.
    """
    if sys.platform != "linux":
        return None
    libc = ctypes.CDLL(None)
    return lambda: libc.prctl(_PR_SET_PDEATHSIG, number)
