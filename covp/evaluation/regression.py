"""`check_results`: saved figures against a baseline and against budgets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import msgspec

from covp.base.figure import FigureDescription
from covp.errors import UsageError
from covp.evaluation.documents import CheckedRun, Compared, Run
from covp.evaluation.figures import CYCLES, FLASH, INSTRUCTIONS, OFFLOADED, RAM, TIME
from covp.evaluation.run_files import read_runs

FIGURES: Mapping[str, FigureDescription] = {
    "instructions": INSTRUCTIONS,
    "cycles": CYCLES,
    "ms": replace(TIME, unit="ms", scale=1),
    "flash": FLASH,
    "ram": RAM,
    "offload": OFFLOADED,
}
"""By their names in the document ``covp.check/1``."""
_COMPARED = ("instructions", "cycles", "flash", "ram", "offload")


def figure_of(run: Run, name: str) -> float | None:
    """Return a figure of a run; None where it is not known.

    Args:
        run: that has it.
        name: one of `FIGURES`; "ms" are milliseconds.
    """
    if name == "ms":
        return None if run.seconds is None else run.seconds * 1e3
    return run.figure(FIGURES[name])


Key = tuple[str, str, str, tuple[str, ...]]
"""Model, platform, kind of device and accelerators: what is compared with its like."""


def key_of(run: Run) -> Key:
    """Return what a ``run`` is compared by."""
    return run.model, run.platform, run.device.partition(":")[0], tuple(run.accelerators)


def read_results(path: Path) -> list[Run]:
    """Return the runs of a file: of ``covp run`` or ``compare``, or of a list of such documents.

    Raises:
        UsageError: the file cannot be read, is no such document, or has two runs of one kind.
    """
    found: dict[Key, Run] = {}
    for run in read_runs(path):
        if is_other(found.setdefault(key_of(run), run), run):
            raise UsageError(f"two different results of {run.title}", where=path)
    return list(found.values())


def is_other(first: Run, second: Run) -> bool:
    """Return whether ``first`` and ``second``, runs of one kind, differ in what is compared."""
    return _figures_key(first) != _figures_key(second)


def _figures_key(run: Run) -> tuple[object, ...]:
    figures = tuple(figure_of(run, name) for name in FIGURES)
    return run.toolchain, run.matches_reference is not False, figures


class RunVerdict(msgspec.Struct, frozen=True):
    """The outcome of one run's check.

    Attributes:
        now: the run; None where only the baseline has it.
        before: the run of the baseline; None where it has none, or without a baseline.
        problems: why the check fails, one line each.
    """

    now: Run | None
    before: Run | None
    problems: tuple[str, ...]

    @property
    def word(self) -> Literal["ok", "new", "failed", "missing"]:
        """ "ok", "new" (not in the baseline), "failed" or "missing" (in the baseline alone)."""
        if self.now is None:
            return "missing"
        if self.problems:
            return "failed"
        return "ok" if self.before else "new"

    def figure(self, name: str) -> tuple[float | None, float | None]:
        """Return a figure of the baseline and of the run."""
        before, now = (figure_of(run, name) if run else None for run in (self.before, self.now))
        return before, now

    def record(self) -> CheckedRun:
        """Return the row of the JSON document ``covp.check/1``."""
        run = self.now or self.before
        assert run is not None
        model, platform, device, accelerators = key_of(run)
        return CheckedRun(
            model=model,
            platform=platform,
            device=device,
            accelerators=list(accelerators),
            verdict=self.word,
            problems=list(self.problems),
            toolchain=self.now.toolchain if self.now else None,
            baseline_toolchain=self.before.toolchain if self.before else None,
            figures={name: Compared(*self.figure(name)) for name in FIGURES},
        )


def check_results(
    results: Sequence[Run],
    baseline: Sequence[Run] = (),
    *,
    threshold: float = 0.01,
    budgets: Mapping[str, float] | None = None,
) -> list[RunVerdict]:
    """Compare runs with those of a baseline, and with budgets.

    Args:
        results: the runs in question.
        baseline: earlier runs; each has to be among the results.
        threshold: by how much a figure may be worse, as a share: of the baseline's for
            instructions, cycles, flash and RAM; of all MACs for offload.
        budgets: the most that each run may have, by the names of `FIGURES`.

    Returns:
        A verdict per run: the results in their order, then what only the baseline has.
    """
    earlier = {key_of(run): run for run in baseline}
    found = [
        RunVerdict(run, before, _problems(run, before, threshold, budgets))
        for run in results
        for before in [earlier.get(key_of(run))]
    ]
    keys = {key_of(run) for run in results}
    lost = [run for run in baseline if key_of(run) not in keys]
    return found + [RunVerdict(None, run, ("the results do not have it",)) for run in lost]


def _problems(
    now: Run, before: Run | None, threshold: float, budgets: Mapping[str, float] | None
) -> tuple[str, ...]:
    is_wrong = now.matches_reference is False
    found = ["the outputs differ from the reference's"] if is_wrong else []
    for name, most in (budgets or {}).items():
        value = figure_of(now, name)
        if value is None:
            found.append(f"{name} has a budget and is not known")
        elif value > most:
            found.append(f"{name} {shown(name, value)} is over the budget of {shown(name, most)}")
    for name in _COMPARED if before else ():
        old, new = figure_of(before, name) if before else None, figure_of(now, name)
        if old is not None and new is None:
            found.append(f"{name}: the baseline has it, the results do not")
        elif old is not None and new is not None and _relative_loss(name, old, new) > threshold:
            found.append(f"{name}: worse by {_relative_loss(name, old, new):.1%}")
    return tuple(found)


def _relative_loss(name: str, before: float, now: float) -> float:
    """Return by how much a figure is worse, as a share; at most 0 where it is not."""
    if FIGURES[name].better == "more":
        return before - now
    if before == 0:
        return float(now > 0)
    return (now - before) / before


def shown(name: str, value: float | None) -> str:
    """Return a figure as people read it, without its unit.

    Args:
        name: one of `FIGURES`.
        value: the figure; None where it is not known.
    """
    if value is None:
        return "-"
    return FIGURES[name].text(value)
