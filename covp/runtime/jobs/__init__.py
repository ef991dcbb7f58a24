"""Work in other processes: how they start, what becomes of it when they die, how they end."""

from __future__ import annotations

import os
from collections.abc import Callable

from covp.runtime.jobs.base import Done, Given, Jobs, Lost, Result
from covp.runtime.jobs.child import Died, Raised, Registered
from covp.runtime.jobs.local import InLine, Processes

__all__ = ["Died", "Done", "InLine", "Jobs", "Lost", "Processes", "Raised", "open_jobs"]


def open_jobs(
    work: Callable[[Given], Result],
    count: int | None = None,
    scheduler: str | None = None,
    *,
    isolated: bool = False,
) -> Jobs[Given, Result]:
    """Open the workers that do calls of ``work``.

    What a script or a notebook registered (operators), no other process can know: there the work
    is done in this one.

    Args:
        work: a function of a module, or an object that pickles and can be called.
        count: processes of this machine, 1: none but this one; None: one per core.
        scheduler: ``tcp://host:port`` of a Dask scheduler whose workers do the work instead.
        isolated: one process is another one, too: what ends it must not end this one.
    """
    if scheduler is not None:
        from covp.runtime.jobs.cluster import Cluster

        return Cluster(work, scheduler)
    count = count or _cores()
    if not Registered.here().is_portable or (count == 1 and not isolated):
        return InLine(work)
    return Processes(work, count)


def _cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
