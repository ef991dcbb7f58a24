"""`Cluster`: calls on an existing Dask cluster."""

from __future__ import annotations

import contextlib
import importlib
import logging
import pickle
import queue
import threading
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from importlib.metadata import version
from typing import Any

from covp.errors import DeviceError, UsageError
from covp.runtime.jobs.base import Given, Jobs, Lost, Result, take_all
from covp.runtime.jobs.child import Child, Outcome, pack

distributed: Any = importlib.import_module("distributed")  # its types differ by version

_ANSWER = 5.0
"""Seconds for the answer of a scheduler."""
_WITHOUT = 600.0
"""Seconds without any worker after which the cluster counts as gone."""


class Cluster(Jobs[Given, Result]):
    """Dask hands a call to a worker, which has a child process do it; see `Child`.

    The connection is made when it is first used.

    Args:
        work: what is called; pickles.
        scheduler: ``tcp://host:port``.
    """

    def __init__(self, work: Callable[[Given], Result], scheduler: str) -> None:
        super().__init__()
        self._name = f"covp-{uuid.uuid4().hex[:12]}"
        self._content, self._scheduler = pack(work), scheduler
        self._starts = 0
        self._results: queue.SimpleQueue[tuple[int, Outcome, float] | BaseException] = (
            queue.SimpleQueue()
        )
        # a result whose worker ends before it was fetched is computed again, so threads fetch
        self._fetchers = ThreadPoolExecutor(4, "covp-fetch")
        self._seen = time.monotonic()

    @cached_property
    def _client(self) -> Any:
        # they print a traceback for each kill
        for name in ("distributed", "distributed.client", "tornado.application"):
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
        address = self._scheduler
        try:
            client = distributed.Client(address, timeout=_ANSWER, set_as_default=False)
        except ValueError as error:
            raise UsageError(
                f"{address}: no address of a Dask scheduler ({error}); such as tcp://host:8786"
            ) from None
        except OSError:
            raise DeviceError(
                f"{address}: no Dask scheduler answers; start one with `dask scheduler`, or leave "
                "--scheduler away"
            ) from None
        try:
            _demand_workers(client, address)
        except BaseException:
            client.close()
            raise
        return client

    @property
    def slots(self) -> int:
        """See `Jobs`.

        Raises:
            UsageError: ``scheduler`` is no address.
            DeviceError: it does not answer, or is gone, or its workers do not have this covp.
        """
        client = self._client
        try:
            found = sum(map(int, client.nthreads().values()))
        except OSError as error:
            raise self._gone(error) from None
        now = time.monotonic()
        if found:
            self._seen = now
        elif now - self._seen > _WITHOUT:
            raise self._gone(f"there was no worker for {_WITHOUT:g} s")
        return found

    def _start(self, number: int, argument: Given) -> None:
        self._starts += 1
        future = self._client.submit(
            call_here,
            self._name,
            self._content,
            pickle.dumps(argument),
            key=f"{self._name}-{self._starts}",
            pure=False,
            retries=0,
        )
        future.add_done_callback(lambda done: self._fetchers.submit(self._fetch, number, done))

    def _fetch(self, number: int, future: Any) -> None:
        """Put the result of a call into the queue (called in a thread of its own)."""
        try:
            outcome, seconds = future.result()
            self._results.put((number, outcome, seconds))
        except distributed.KilledWorker:
            lost = Lost("lost the workers that had it, one after the other")
            self._results.put((number, (None, lost), 0.0))
        except BaseException as error:
            self._results.put(error)

    def _wait_for_ends(self, seconds: float | None) -> list[tuple[int, Outcome, float]]:
        found = take_all(self._results, seconds)
        for each in found:
            if isinstance(each, BaseException):
                raise self._gone(each) from None
        return [each for each in found if not isinstance(each, BaseException)]

    def _gone(self, error: BaseException | str) -> DeviceError:
        kind = "" if isinstance(error, str) else f"{type(error).__name__}: "
        text = " ".join(f"{kind}{error}".split())
        return DeviceError(
            f"{self._scheduler}: the work cannot go on there ({text:.200}); started again, the "
            "sweep goes on where it is"
        )

    def close(self) -> None:
        """End the work; the cluster stays."""
        client = vars(self).get("_client")
        if client is not None:
            with contextlib.suppress(Exception):
                ended = self._fetchers.submit(
                    client.run, end_children, self._name, on_error="ignore"
                )
                ended.result(timeout=_ANSWER)
        self._fetchers.shutdown(wait=False, cancel_futures=True)
        if client is not None:
            with contextlib.suppress(OSError):  # a scheduler that is gone
                client.close()


def _demand_workers(client: Any, address: str) -> None:
    """Raise DeviceError if there is no worker, or one has another covp."""
    try:
        client.wait_for_workers(1, timeout=_ANSWER)
    except TimeoutError:
        raise DeviceError(
            f"{address}: that scheduler has no workers; start some with `dask worker {address}`"
        ) from None
    mine = version("covp")
    for worker, theirs in client.run(_version, on_error="return").items():
        if theirs != mine:
            raise DeviceError(
                f"{worker}: that worker has no covp {mine} ({theirs}): install the same version"
            )


def _version() -> str:
    return version("covp")


_children: dict[tuple[str, int], Child] = {}
"""Those of a worker, by coordinator and thread."""


def call_here(coordinator: str, content: bytes, argument: bytes) -> tuple[Outcome, float]:
    """Do a call on a worker, in a child process of this thread; also return its seconds."""
    child = _children.setdefault((coordinator, threading.get_ident()), Child())
    started = time.monotonic()
    return child.call(content, argument), time.monotonic() - started


def end_children(coordinator: str) -> None:
    """End the work for a coordinator that is gone (called on a worker)."""
    for key in [key for key in _children if key[0] == coordinator]:
        _children.pop(key).close()
