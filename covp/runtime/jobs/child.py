"""`Child`: a process that does work for this one.

Work that ends its process, as an emulator or a user's library may, ends that process alone: its
parent knows with which signal and which argument, and is still there itself.
"""

from __future__ import annotations

import contextlib
import importlib
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from covp.base.closing import Owned
from covp.device.child_process import SAFE_PATH, ends_with_parent
from covp.errors import CovpError, DeviceError
from covp.graph.user_operators import registered_from
from covp.hardware import intrinsics


@dataclass(frozen=True)
class Registered:
    """Operators and instructions from outside covp. Pickles.

    Attributes:
        modules: that register operators when they are imported, users' files included.
        dot_products, requantize: instructions; they are data.
    """

    modules: tuple[str, ...]
    dot_products: tuple[intrinsics.DotProduct, ...]
    requantize: tuple[intrinsics.RequantizeInstruction, ...]

    @staticmethod
    def here() -> Registered:
        """Collect all that is registered in this process."""
        return Registered(
            registered_from(), intrinsics.dot_products(), intrinsics.requantize_instructions()
        )

    @property
    def is_portable(self) -> bool:
        """Return whether other processes can have it: not what a script or a notebook registers."""
        return "__main__" not in self.modules

    def register(self) -> None:
        """Make all of it known in this process."""
        for module in self.modules:
            importlib.import_module(module)
        for product in self.dot_products:
            intrinsics.register(product)
        for instruction in self.requantize:
            intrinsics.register_requantize(instruction)


Outcome = tuple[Any, CovpError | None]
"""Of a call: its result, and the error instead of it."""

_IDLE = 60.0
"""Seconds without work after which the process ends: workers of others' clusters stay."""
_PATIENCE = 5.0
"""Seconds in which an idle process ends by itself."""
_START = "from covp.runtime.jobs.child import serve; serve({})"


class Died(DeviceError):
    """A process ended while it worked.

    Attributes:
        status: its exit status, negative for a signal.
        times: processes in turn that ended so.
    """

    def __init__(self, status: int, times: int = 1) -> None:
        super().__init__(status, times)
        self.status, self.times = status, times

    def __str__(self) -> str:
        how = f"with status {self.status}"
        if self.status < 0:
            how = f"by signal {-self.status}"
            with contextlib.suppress(ValueError):
                how = f"by {signal.Signals(-self.status).name}"
        return f"ended its process {how}" + (f" {self.times} times" if self.times > 1 else "")

    @property
    def is_crash(self) -> bool:
        """True if the process ended itself, not by a signal from outside or for lack of memory."""
        return -self.status not in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Raised(CovpError):
    """Work raised what is no error of covp."""

    @staticmethod
    def of(error: Exception) -> Raised:
        """Describe an error in one line."""
        text = " ".join(f"{type(error).__name__}: {error}".split())
        return Raised(f"internal error: {text}")


def pack(work: Callable[[Any], Any]) -> bytes:
    """Pack work for a child, with what is registered here."""
    return pickle.dumps((Registered.here(), pickle.dumps(work)))


def _unpack(content: bytes) -> Callable[[Any], Any]:
    registered, work = pickle.loads(content)
    registered.register()  # the work may be made of it
    found: Callable[[Any], Any] = pickle.loads(work)
    return found


class Child(Owned):
    """A process for calls, one at a time; it is started when it is first needed."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Connection | None = None
        self._content: bytes | None = None
        self._lock = threading.Lock()
        self._is_busy = self._is_closed = False

    @property
    def label(self) -> str:
        """Name of the process in messages."""
        return "a worker process"

    def call(self, content: bytes, argument: bytes) -> Outcome:
        """Call the work with an argument; if the process ends, the error is `Died`.

        Args:
            content: the work, `pack`; it is loaded once.
            argument: pickled.
        """
        status = 0
        for _ in range(2):
            try:
                process, connection = self._begun()
            except DeviceError as error:
                return None, error
            try:
                connection.send((None if content == self._content else content, argument))
                self._content = content
                outcome: Outcome = connection.recv()
                self._is_busy = False
                return outcome
            except (EOFError, OSError):
                status = process.wait()
                self._forget()
            if status != 0 or self._is_closed:
                break
            # it had been idle for long, and did not see the argument: once more
        return None, Died(status)

    def close(self) -> None:
        """End the process; at once, with those that it started, while it works. Any thread may."""
        with self._lock:
            self._is_closed = True
            process, connection = self._process, self._connection
        if process is None or connection is None:
            return
        if not self._is_busy:
            connection.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_PATIENCE)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def _begun(self) -> tuple[subprocess.Popen[bytes], Connection]:
        """Return the process, marked as busy. Raises DeviceError: this is closed."""
        with self._lock:
            if self._is_closed:
                raise DeviceError("a worker process was closed")
            self._is_busy = True
            if self._process is None or self._connection is None:
                self._process, self._connection = _start()
            return self._process, self._connection

    def _forget(self) -> None:
        with self._lock:
            if self._connection is not None:
                self._connection.close()
            self._process = self._connection = self._content = None
            self._is_busy = False


def _start() -> tuple[subprocess.Popen[bytes], Connection]:
    """Start a fresh Python process, which copies no threads or handles of this one."""
    ours, theirs = multiprocessing.Pipe()
    with theirs:
        modules = os.pathsep.join(filter(None, sys.path))
        process = subprocess.Popen(
            [sys.executable, "-c", _START.format(theirs.fileno())],
            stdin=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            env={**os.environ, **SAFE_PATH, "PYTHONPATH": modules},
            start_new_session=True,  # Ctrl-C is the parent's
            preexec_fn=ends_with_parent(signal.SIGKILL),
        )
    return process, ours


def serve(number: int) -> None:
    """Serve as the child: call the work with what comes, until there is nothing for a while.

    Args:
        number: the descriptor of its end of the pipe.
    """
    os.dup2(2, 1)  # standard output is the parent's, for results
    connection: Any = Connection(number)
    content, work = b"", None
    with contextlib.suppress(EOFError, ConnectionError):
        while connection.poll(_IDLE):
            other, argument = connection.recv()
            if other is not None:
                content, work = other, None
            outcome: Outcome
            try:
                work = work or _unpack(content)
                outcome = work(pickle.loads(argument)), None
            except CovpError as error:
                outcome = None, error
            except Exception as error:
                outcome = None, Raised.of(error)
            _send(connection, outcome)


def _send(connection: Any, outcome: Outcome) -> None:
    try:
        connection.send(outcome)
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        connection.send((None, Raised.of(error)))
