"""`read_sweep`: a sweep's folder as its page needs it."""

from __future__ import annotations

from pathlib import Path

from covp.errors import UsageError
from covp.report.sweep_page import Sweep


def read_sweep(folder: Path) -> Sweep:
    """Return all rows that a folder of ``covp sweep`` has, while it runs or later.

    Args:
        folder: the sweep's ``-o``, with its file and, unless the rows went to another store, them.

    Raises:
        UsageError: there is no sweep, it has no rows yet, or the extra ``sweep`` is not installed.
        CovpError: it cannot be read.
    """
    from covp.base.dependencies import load_extra
    from covp.exploration.sweep.export import record

    load_extra("sqlalchemy", "sweep")
    from covp.exploration.sweep.api import COPY, STORE
    from covp.exploration.sweep.reader import read_spec
    from covp.exploration.sweep.store import stored_rows

    if not (folder / COPY).is_file():
        raise UsageError("there is no sweep; `covp sweep FILE.yaml -o` makes one", where=folder)
    spec = read_spec(folder / COPY)
    rows = [record(row, spec.limits) for row in stored_rows(folder / STORE)]
    if not rows:
        raise UsageError(
            "the sweep has no rows yet; `covp sweep --status` tells more", where=folder
        )
    return Sweep(
        label=folder.resolve().name,
        rows=rows,
        objectives=spec.search.objectives,
        constraints=spec.constraints,
        feasible=tuple(row["feasible"] for row in rows),
    )
