"""`Workers`: processes that take calls, and end at once with this one or when it is interrupted."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Generic, TypeVar

from covp.codegen.intrinsics import DotProduct, dot_products
from covp.device.child_process import safe_path
from covp.errors import CovpError, DeviceError
from covp.evaluation.tune.worker_process import begin_worker

Given = TypeVar("Given")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Failed:
    """What a call ended with instead of a result.

    Attributes:
        reason: one line.
    """

    reason: str


class Workers:
    """A pool of processes; a context manager.

    Args:
        jobs: how many.
    """

    def __init__(self, jobs: int) -> None:
        # no multiprocessing.Event: its set() waits for ever for a process that died in wait()
        self._heard, self._stop = multiprocessing.Pipe(duplex=False)
        given = self._heard, dot_products()
        self._pool = ProcessPoolExecutor(jobs, None, _start, given)
        self._cleanup = ExitStack()

    def __enter__(self) -> Workers:
        self._cleanup.enter_context(safe_path())
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        if kind is not None:
            self._stop.send_bytes(b"stop")
            # before Python 3.11.5 a call that is being written to processes that end then waits
            # for ever, as this process could read it, too (cpython's gh-94777)
            self._pool._call_queue._reader.close()  # type: ignore[attr-defined]
        self._pool.shutdown(wait=True, cancel_futures=True)
        self._cleanup.close()
        self._stop.close()
        self._heard.close()

    def call(
        self, function: Callable[[Given], Result], arguments: Sequence[Given]
    ) -> Iterator[tuple[int, Result | Failed]]:
        """Call a function with each argument; yield index and result of each when it is done.

        Args:
            function: of a module; a CovpError that it raises is a result.
            arguments: that pickle, as the results do.

        Raises:
            DeviceError: a process died.
        """
        wrapped = _Caught(function)
        futures = {self._pool.submit(wrapped, value): i for i, value in enumerate(arguments)}
        try:
            for future in as_completed(futures):
                yield futures[future], future.result()
        except BrokenProcessPool:
            raise DeviceError(
                "a worker process died, as when the memory of this machine is full: fewer --jobs "
                "take less"
            ) from None


@dataclass(frozen=True)
class _Caught(Generic[Given, Result]):
    """A function whose errors of covp are results: not all of these exceptions pickle."""

    function: Callable[[Given], Result]

    def __call__(self, value: Given) -> Result | Failed:
        try:
            return self.function(value)
        except CovpError as error:
            return Failed(" ".join(str(error).split()))


def _start(stop: Connection, instructions: Iterable[DotProduct]) -> None:
    begin_worker(instructions)
    threading.Thread(target=_end_at, args=(stop,), daemon=True).start()


def _end_at(stop: Connection) -> None:
    """End the process when something was sent, which stays there for the others."""
    stop.poll(None)
    os._exit(1)
