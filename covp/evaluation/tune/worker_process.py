"""`begin_worker`: what each process of a pool does first."""

from __future__ import annotations

import signal
from collections.abc import Iterable

from covp.codegen.intrinsics import DotProduct, register
from covp.device.child_process import end_with_parent


def begin_worker(instructions: Iterable[DotProduct]) -> None:
    """End with the parent, leave Ctrl-C to it, know its instructions.

    Args:
        instructions: the parent's `covp.codegen.intrinsics.dot_products()`; a process that was not
            forked (the default from Python 3.14) has none but covp's own.
    """
    end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for instruction in instructions:
        register(instruction)
