"""`Child`: a process of a worker that evaluates batches of points.

A design that ends its process, as an emulator or a user's library may, ends that process alone: the
worker knows with which signal and which batch it had, and is still there itself. So a point is
blamed for what it did, and never for the end of a worker or a machine.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from covp.base.closing import Owned
from covp.device.child_process import SAFE_PATH, ends_with_parent
from covp.evaluation.sweep.points import Point, Row

Evaluate = Callable[[Sequence[Point]], list[Row]]
"""The rows of points; a function of a module, so that it pickles."""

_IDLE = 60.0
"""Seconds without work after which the process ends: workers of others' clusters stay."""
_START = "from covp.evaluation.sweep.child import serve; serve({})"


@dataclass(frozen=True)
class Died:
    """A process ended while it had a batch.

    Attributes:
        status: its exit status, negative for a signal.
    """

    status: int

    def __str__(self) -> str:
        if self.status >= 0:
            return f"ended its process with status {self.status}"
        with contextlib.suppress(ValueError):
            return f"ended its process by {signal.Signals(-self.status).name}"
        return f"ended its process by signal {-self.status}"

    @property
    def is_crash(self) -> bool:
        """Whether the process ended itself; SIGKILL and SIGTERM come from elsewhere, SIGKILL
        from the system where memory is full."""
        return -self.status not in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


@dataclass(frozen=True)
class Raised:
    """Evaluation raised what it must not; ``text``: one line."""

    text: str

    def __str__(self) -> str:
        return f"internal error: {self.text}"


Outcome = list[Row] | Died | Raised


class Child(Owned):
    """A process that evaluates; started when it is first needed. For one thread at a time."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Connection | None = None
        self._ended = False

    @property
    def label(self) -> str:
        """See `Owned`."""
        return "a process of the sweep"

    def evaluate(self, evaluate: Evaluate, points: Sequence[Point]) -> Outcome:
        """The rows of points, or what came instead of them."""
        while True:
            process, connection = self._started()
            try:
                connection.send((evaluate, points))
                outcome: Outcome = connection.recv()
                return outcome
            except (EOFError, OSError):
                status = process.wait()
                self._forget()
            if status != 0 or self._ended:  # 0: it had been idle, and did not see the batch
                return Died(status)

    def close(self) -> None:
        """End the process and those that it started. From any thread."""
        self._ended = True
        process = self._process
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)

    def _started(self) -> tuple[subprocess.Popen[bytes], Connection]:
        if self._process is None or self._connection is None:
            ours, theirs = multiprocessing.Pipe()
            with theirs:
                modules = os.pathsep.join(filter(None, sys.path))
                self._process = subprocess.Popen(
                    [sys.executable, "-c", _START.format(theirs.fileno())],
                    stdin=subprocess.DEVNULL,
                    pass_fds=[theirs.fileno()],
                    env={**os.environ, **SAFE_PATH, "PYTHONPATH": modules},
                    start_new_session=True,  # Ctrl-C is the coordinator's
                    preexec_fn=ends_with_parent(signal.SIGKILL),
                )
            self._connection = ours
        return self._process, self._connection

    def _forget(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._process = self._connection = None


def serve(number: int) -> None:
    """The process itself: evaluate what comes, until there is nothing for a while.

    Args:
        number: the descriptor of its end of the pipe.
    """
    os.dup2(2, 1)  # standard output is the coordinator's, for results
    connection: Any = Connection(number)
    with contextlib.suppress(EOFError, ConnectionError):
        while connection.poll(_IDLE):
            try:
                evaluate, points = connection.recv()
                outcome = evaluate(points)
            except EOFError:
                return
            except Exception as error:
                outcome = Raised(" ".join(f"{type(error).__name__}: {error}".split()))
            connection.send(outcome)


_children: dict[tuple[str, int], Child] = {}
"""Those of this process, by coordinator and thread."""


def evaluate_here(
    coordinator: str, evaluate: Evaluate, points: Sequence[Point]
) -> tuple[Outcome, float]:
    """A task for a worker: the rows of points, by a child process of this thread, and seconds."""
    child = _children.setdefault((coordinator, threading.get_ident()), Child())
    started = time.monotonic()
    return child.evaluate(evaluate, points), time.monotonic() - started


def end_children(coordinator: str) -> None:
    """For a worker: end the work for a coordinator that goes."""
    for key in [key for key in _children if key[0] == coordinator]:
        _children.pop(key).close()


def dask_setup(worker: object) -> None:
    """What Dask calls first in a worker of the local cluster: Ctrl-C is the coordinator's."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
