"""`SweepResult`: the rows of a sweep, for Python, notebooks and files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from numpy.typing import NDArray

from covp.base.pareto import front
from covp.base.table_text import html_table
from covp.exploration.sweep.constraints import is_feasible
from covp.exploration.sweep.export import as_pandas, write_csv, write_parquet
from covp.exploration.sweep.points import FIGURES, Row, SweepDocument, SweepRow
from covp.exploration.sweep.spec import Spec

if TYPE_CHECKING:
    import pandas


def costs(rows: Sequence[Row], objectives: Sequence[str]) -> NDArray[np.float64]:
    """Return the costs to minimize, (rows, objectives); infinite where a figure is unknown.

    Args:
        rows: with or without figures.
        objectives: columns of `Row`.
    """
    signs = np.array([FIGURES[name].sign for name in objectives])
    given = [[getattr(row, name) for name in objectives] for row in rows]
    found = np.array(given, dtype=np.float64).reshape(len(rows), len(signs))  # None becomes NaN
    return np.where(np.isnan(found), np.inf, found * signs)


def pareto_front(rows: Sequence[Row], objectives: Sequence[str]) -> list[int]:
    """Return the numbers of the rows on the front, by model one front, in the order of the rows.

    A row is on it where no other one of its model is as good in all objectives and better in one.
    A figure that is not known counts as the worst; rows that have none are on no front.

    Args:
        rows: that are compared.
        objectives: columns of `Row`, one or more.
    """
    models = np.array([row.model for row in rows])
    all_costs = costs(rows, objectives)
    found: list[int] = []
    for model in dict.fromkeys(models.tolist()):
        mine = np.flatnonzero((models == model) & np.isfinite(all_costs).any(axis=1))
        different, which = np.unique(all_costs[mine], axis=0, return_inverse=True)
        found += mine[front(different)[which.reshape(-1)]].tolist()
    return sorted(found)


_MOST = 100
"""Rows that a notebook shows."""


@dataclass(frozen=True, eq=False)
class SweepResult:
    """The rows of a sweep.

    Attributes:
        spec: what was requested.
        rows: of its designs, failed ones included, in the order of the designs.
    """

    spec: Spec
    rows: tuple[Row, ...]

    @property
    def failed(self) -> list[Row]:
        """The rows that have a reason instead of figures."""
        return [row for row in self.rows if not row.is_ok]

    @property
    def wrong(self) -> list[Row]:
        """The rows whose outputs are not the reference's."""
        return [row for row in self.rows if row.matches_reference is False]

    @property
    def feasible(self) -> list[Row]:
        """The rows that have figures and break no constraint.

        A figure that is not known breaks none; `covp.exploration.sweep.constraints.is_feasible` is
        None then.
        """
        return [row for row in self.rows if is_feasible(row, self.spec.limits) is not False]

    @cached_property
    def front(self) -> list[Row]:
        """Feasible rows of each model that no other row beats in all objectives.

        Without objectives in the sweep, those of the fewest cycles.
        """
        rows = self.feasible
        return [rows[number] for number in pareto_front(rows, self.objectives)]

    @property
    def objectives(self) -> tuple[str, ...]:
        """Columns that the front is over."""
        return self.spec.search.objectives or ("cycles",)

    def record(self) -> SweepDocument:
        """Return the JSON document ``covp.sweep/1`` of docs/json.md."""
        limits, front = self.spec.limits, {row.key for row in self.front}
        rows = [
            SweepRow(
                **msgspec.structs.asdict(row),
                feasible=is_feasible(row, limits),
                on_front=row.key in front,
            )
            for row in self.rows
        ]
        return SweepDocument(
            objectives=list(self.objectives),
            constraints=list(self.spec.constraints),
            points=rows,
        )

    def to_pandas(self) -> pandas.DataFrame:
        """Return a data frame, see `covp.exploration.sweep.export.as_pandas`."""
        return as_pandas(self.rows, self.spec.limits)

    def to_csv(self, path: str | Path) -> None:
        """Write a CSV file, see `covp.exploration.sweep.export.write_csv`."""
        write_csv(Path(path), self.rows, self.spec.limits)

    def to_parquet(self, path: str | Path) -> None:
        """Write a Parquet file, see `covp.exploration.sweep.export.write_parquet`."""
        write_parquet(Path(path), self.rows, self.spec.limits)

    def _repr_html_(self) -> str:
        names = ("model", "platform", "accelerators", "varied", "status")
        numbers = ("cycles", "energy_j", "area_um2", "flash_bytes", "ram_bytes")
        shown = self.rows[:_MOST]
        table = html_table(
            (*names, *numbers),
            [(*_texts(row), *(_number(getattr(row, name)) for name in numbers)) for row in shown],
            len(names),
        )
        rest = len(self.rows) - len(shown)
        return table + (f"<p>and {rest:,} more rows</p>" if rest else "")


def _texts(row: Row) -> tuple[str, ...]:
    model = f"{row.model} (SYNTHETIC)" if row.model_source == "synthetic" else row.model
    varied = ", ".join(f"{name}={value}" for name, value in row.vary.items())
    units = " + ".join(row.accelerators)
    return model, row.platform, units, varied, row.reason or row.status


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"
