"""`Workers`: processes on Dask that evaluate batches of points, here or on an existing cluster."""

from __future__ import annotations

import contextlib
import importlib
import logging
import os
import queue
import tempfile
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

from covp.base import temporary
from covp.base.closing import Owned
from covp.device.child_process import safe_path
from covp.errors import CovpError, DeviceError, UsageError
from covp.evaluation.sweep.child import (
    Died,
    Evaluate,
    Raised,
    dask_setup,
    end_children,
    evaluate_here,
)
from covp.evaluation.sweep.points import Point, Row

# its types differ from version to version
dask: Any = importlib.import_module("dask")
distributed: Any = importlib.import_module("distributed")

Batch = tuple[Point, ...]
_ANSWER = 5.0
"""Seconds for the answer of a scheduler."""
_WITHOUT = 600.0
"""Seconds without any worker after which the cluster counts as gone."""
_STARTS = 12
"""Times that all workers of the local cluster are replaced while none comes up."""


@dataclass(frozen=True)
class Lost:
    """The workers that had a batch ended, several in turn; that says nothing of its points."""

    def __str__(self) -> str:
        return "the workers that had it ended, one after the other"


Result = list[Row] | Died | Raised | Lost
"""Of a batch."""


@dataclass(frozen=True)
class Done:
    """A batch that came back.

    Attributes:
        batch: as it was submitted.
        result: its rows, or what came instead.
        seconds: that its evaluation took.
    """

    batch: Batch
    result: Result
    seconds: float


class Workers(Owned):
    """Processes that evaluate.

    Dask hands a batch to a worker and, where the worker ends, to another one. The worker has a
    child process do it, see `covp.evaluation.sweep.child`. They are started when they are first
    used.

    Args:
        evaluate: computes rows; pickles.
        count: processes of a cluster on this machine; None: one per core.
        scheduler: ``tcp://host:port`` of an existing cluster instead.

    """

    def __init__(
        self, evaluate: Evaluate, count: int | None = None, scheduler: str | None = None
    ) -> None:
        self._name = f"covp-{uuid.uuid4().hex[:12]}"
        self._evaluate = evaluate
        self._scheduler = scheduler
        self._submitted = 0
        self._futures: set[Any] = set()
        self._results: queue.Queue[Done | BaseException] = queue.Queue()
        # a result whose worker ends before it was fetched is computed again, so threads fetch
        self._fetchers = ThreadPoolExecutor(4, "covp-fetch")
        self._cleanup = contextlib.ExitStack()
        self._count = count or _cores()
        self._cluster: Any = None
        self._seen = self._replaced = time.monotonic()
        self._starts = 0

    @property
    def label(self) -> str:
        """See `Owned`."""
        return "the sweep's cluster"

    @cached_property
    def _client(self) -> Any:
        # they print a traceback for each kill
        for name in ("distributed", "distributed.client", "tornado.application"):
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
        return self._local() if self._scheduler is None else self._remote(self._scheduler)

    def _local(self) -> Any:
        # each with the number of its process in its name, so that what a kill leaves is found
        folder = self._cleanup.enter_context(temporary.temporary_folder("dask"))
        self._cleanup.enter_context(safe_path())
        settings = {
            "temporary-directory": folder,
            # a worker that is killed while it starts is not started again; `slots` sees to it
            "distributed.deploy.lost-worker-timeout": "10s",
        }
        with dask.config.set(settings):
            cluster = distributed.LocalCluster(
                n_workers=0,  # a worker that is killed while they start would be the end of all
                threads_per_worker=1,
                processes=True,
                host="127.0.0.1",
                # other users of this machine reach the loopback interface, too
                security=distributed.Security.temporary(),
                scheduler_kwargs={"dashboard": False, "dashboard_address": "127.0.0.1:0"},
                memory_limit=0,  # the child's memory is not the worker's
                silence_logs=logging.CRITICAL + 1,
                local_directory=folder,
                preload=dask_setup.__module__,
            )
        self._cluster = cluster
        self._cleanup.callback(cluster.close)
        client = distributed.Client(cluster, set_as_default=False)
        self._cleanup.callback(client.close)
        cluster.scale(self._count)
        return client

    def _remote(self, address: str) -> Any:
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
        self._cleanup.callback(client.close)
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
        return client

    @property
    def slots(self) -> int:
        """Batches that can be evaluated at a time; 0 while there is no worker.

        Workers of the local cluster that have not come back are replaced.

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
            self._seen, self._starts = now, 0
        elif now - self._seen > _WITHOUT:
            raise self._gone(f"there was no worker for {_WITHOUT:g} s")
        if self._cluster is not None and found < self._count and now - self._replaced > _ANSWER:
            self._replaced = now
            self._starts += not found
            if self._starts > _STARTS:
                raise DeviceError(
                    f"the local cluster: no worker came up in {_STARTS} attempts; "
                    "see whether `dask worker --help` runs, or name a cluster with --scheduler"
                )
            self._cluster.loop.add_callback(self._forget_ended)
            self._cluster.scale(self._count)
        return found

    def _forget_ended(self) -> None:
        """In the cluster's thread: it starts anew what it does not know of."""
        workers = self._cluster.workers
        for name, nanny in list(workers.items()):
            if nanny.status.name in ("failed", "closed"):
                del workers[name]

    @property
    def in_flight(self) -> int:
        """Batches that were submitted and that `wait` has not given."""
        return len(self._futures)

    def submit(self, batch: Batch) -> None:
        """Have a batch evaluated; `wait` gives its result."""
        self._submitted += 1
        future = self._client.submit(
            evaluate_here,
            self._name,
            self._evaluate,
            batch,
            key=f"{self._name}-{self._submitted}",
            pure=False,
            retries=0,
        )
        self._futures.add(future)
        future.add_done_callback(lambda done: self._fetchers.submit(self._fetch, batch, done))

    def _fetch(self, batch: Batch, future: Any) -> None:
        """In a thread of its own."""
        result: Done | BaseException
        try:
            result = Done(batch, *future.result())
        except distributed.KilledWorker:
            result = Done(batch, Lost(), 0.0)
        except BaseException as error:
            result = error
        self._results.put(result)
        self._futures.discard(future)

    def wait(self, seconds: float) -> list[Done]:
        """The results that there are, at least one, or none after some time.

        Raises:
            DeviceError: the cluster is gone, or cannot work.
        """
        found = []
        with contextlib.suppress(queue.Empty):
            found.append(self._results.get(timeout=seconds))
            while True:
                found.append(self._results.get_nowait())
        for result in found:
            if isinstance(result, BaseException):
                raise self._gone(result) from None
        return [result for result in found if isinstance(result, Done)]

    def _gone(self, error: BaseException | str) -> CovpError:
        where = self._scheduler or "the local cluster"
        kind = "" if isinstance(error, str) else f"{type(error).__name__}: "
        text = " ".join(f"{kind}{error}".split())
        return DeviceError(
            f"{where}: the work cannot go on there ({text:.200}); started again, the sweep goes on "
            "where it is"
        )

    def close(self) -> None:
        """End what is being evaluated, and the local cluster."""
        if "_client" in vars(self):
            self._end_children()
        self._fetchers.shutdown(wait=False, cancel_futures=True)
        with contextlib.suppress(OSError):  # a scheduler that is gone
            self._cleanup.close()
        temporary.sweep(Path(tempfile.gettempdir()), again=True)  # of processes that were killed

    def _end_children(self) -> None:
        with contextlib.suppress(Exception):
            ended = self._fetchers.submit(
                self._client.run, end_children, self._name, on_error="ignore"
            )
            ended.result(timeout=_ANSWER)


def _cores() -> int:
    """That this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _version() -> str:
    return version("covp")
