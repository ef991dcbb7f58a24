"""`sweep`: evaluate the designs of a sweep and keep their rows in a folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import yaml

from covp.base.dependencies import load_extra
from covp.errors import CovpError, UsageError
from covp.exploration.sweep.evaluate import evaluate_points
from covp.exploration.sweep.export import write_file
from covp.exploration.sweep.points import Point
from covp.exploration.sweep.reader import make_spec, read_spec
from covp.exploration.sweep.result import SweepResult
from covp.exploration.sweep.space import Space, designs
from covp.exploration.sweep.spec import Spec
from covp.runtime.jobs import open_jobs

if TYPE_CHECKING:
    from covp.exploration.sweep.execute import Tell, Workers
    from covp.exploration.sweep.status import SweepProgress
    from covp.exploration.sweep.store import Store

STORE, COPY = "sweep.sqlite", "sweep.yaml"
"""Files in a sweep's folder: its rows, and its specification with absolute paths."""


def sweep(
    spec: str | Path | Mapping[str, Any] | Spec,
    directory: str | Path,
    *,
    store: str | None = None,
    scheduler: str | None = None,
    jobs: int | None = None,
    retry_failed: bool = False,
    tell: Callable[[SweepProgress], None] | None = None,
) -> SweepResult:
    """Evaluate the designs of a sweep that have no row yet; the rows of all of them.

    Whatever ends it, the next call with the same folder goes on from there. Another sweep in the
    same folder adds its rows.

    Args:
        spec: the path of a sweep's file, or what it holds as a mapping.
        directory: of the rows; made where there is none.
        store: URL of a PostgreSQL database that keeps the rows instead, for several coordinators.
        scheduler: ``tcp://host:port`` of a Dask scheduler whose workers do the work.
        jobs: processes on this machine; by default one per core.
        retry_failed: evaluate also designs that have failed before.
        tell: called with the progress now and then.

    Returns:
        The rows; a design that failed is a row with the reason.

    Raises:
        UsageError: the sweep is wrong, or a package of the extra "sweep" is not installed. No work
            has begun then.
        CovpError: the folder, the database or the workers cannot be used; the rows that are there
            stay.
    """
    where = f"{spec}: " if isinstance(spec, str | Path) else ""
    given = _read(spec)
    space = Space(given, where)
    is_search = given.search.kind == "optuna"
    wanted = {"sqlalchemy": True, "distributed": scheduler, "optuna": is_search}
    for name in filter(wanted.get, wanted):
        load_extra(name, "sweep")
    from covp.exploration.sweep.execute import execute, silent, terminable
    from covp.exploration.sweep.store import Store

    folder = _folder(Path(directory), given)
    points = designs(space)
    with (
        terminable(),
        Store(store or folder / STORE) as kept,
        open_jobs(evaluate_points, jobs, scheduler, isolated=True) as workers,
    ):
        if retry_failed:
            known = kept.rows() if is_search else points
            kept.forget_failures([each.key for each in known])
        if is_search:
            points = _search(given, kept, workers, tell or silent)
        else:
            execute(points, kept, workers, tell=tell or silent)
        return SweepResult(given, tuple(kept.results([point.key for point in points])))


def _search(spec: Spec, store: Store, workers: Workers, tell: Tell) -> list[Point]:
    """Return the designs that a search takes, of one model after the other: each has a front."""
    from covp.exploration.sweep.search import search

    spaces = [Space(msgspec.structs.replace(spec, models=(model,))) for model in spec.models]
    return [point for space in spaces for point in search(space, store, workers, tell=tell)]


def _read(spec: str | Path | Mapping[str, Any] | Spec) -> Spec:
    if isinstance(spec, Spec):
        return spec
    return read_spec(spec) if isinstance(spec, str | Path) else make_spec(spec)


def _folder(folder: Path, spec: Spec) -> Path:
    """Return the folder, with the sweep's file in it. Raises CovpError: it cannot be written."""
    text = yaml.safe_dump(msgspec.to_builtins(spec), sort_keys=False, allow_unicode=True)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise UsageError("is a file; name a folder for the rows", where=folder) from None
    except OSError as error:
        raise CovpError(f"{folder}: cannot be written: {error.strerror or error}") from None
    write_file(folder / COPY, text.encode())
    return folder
