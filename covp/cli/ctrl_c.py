"""Commands that serve until Ctrl-C: that is their end, and no failure."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from covp.cli.output import echo


@contextmanager
def until_ctrl_c() -> Iterator[None]:
    """End the block at Ctrl-C and say so on standard error."""
    try:
        yield
    except KeyboardInterrupt:
        echo("stopped", err=True)


def wait_for_ctrl_c() -> None:
    """Block until Ctrl-C.

    In short sleeps: a signal that another thread happens to take does not end an untimed wait.
    """
    while True:
        time.sleep(0.1)
