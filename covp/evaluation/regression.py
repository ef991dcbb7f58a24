"""`check_results`: saved figures against a baseline and against budgets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from covp.evaluation.saved import SavedRun

FIGURES = ("instructions", "cycles", "ms", "flash", "ram", "offload")
"""``offload`` is the share of the MACs on accelerators: less is worse; of the others, more is."""
_COMPARED = ("instructions", "cycles", "flash", "ram", "offload")


@dataclass(frozen=True)
class Verdict:
    """What became of one run.

    Attributes:
        now: the run; None where only the baseline has it.
        before: the run of the baseline; None where it has none, or without a baseline.
        problems: why the check fails, one line each.
    """

    now: SavedRun | None
    before: SavedRun | None
    problems: tuple[str, ...]

    @property
    def word(self) -> str:
        """ "ok", "new" (not in the baseline), "failed" or "missing" (in the baseline alone)."""
        if self.now is None:
            return "missing"
        if self.problems:
            return "failed"
        return "ok" if self.before else "new"

    def figure(self, name: str) -> tuple[float | None, float | None]:
        """A figure of the baseline and of the run."""
        before, now = (run.figures[name] if run else None for run in (self.before, self.now))
        return before, now

    def record(self) -> dict[str, Any]:
        """A row of the JSON document ``covp.check/1``."""
        run = self.now or self.before
        assert run is not None
        model, platform, device, accelerators = run.key
        return {
            "model": model,
            "platform": platform,
            "device": device,
            "accelerators": list(accelerators),
            "verdict": self.word,
            "problems": list(self.problems),
            "toolchain": self.now.toolchain if self.now else None,
            "baseline_toolchain": self.before.toolchain if self.before else None,
            "figures": {
                name: dict(zip(("baseline", "now"), self.figure(name), strict=True))
                for name in FIGURES
            },
        }


def check_results(
    results: Sequence[SavedRun],
    baseline: Sequence[SavedRun] = (),
    *,
    threshold: float = 0.01,
    budgets: Mapping[str, float] | None = None,
) -> list[Verdict]:
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
    earlier = {run.key: run for run in baseline}
    found = [
        Verdict(run, earlier.get(run.key), _problems(run, earlier.get(run.key), threshold, budgets))
        for run in results
    ]
    keys = {run.key for run in results}
    lost = [run for run in baseline if run.key not in keys]
    return found + [Verdict(None, run, ("the results do not have it",)) for run in lost]


def _problems(
    now: SavedRun, before: SavedRun | None, threshold: float, budgets: Mapping[str, float] | None
) -> tuple[str, ...]:
    found = [] if now.matches_reference else ["the outputs differ from the reference's"]
    for name, most in (budgets or {}).items():
        value = now.figures[name]
        if value is None:
            found.append(f"{name} has a budget and is not known")
        elif value > most:
            found.append(f"{name} {shown(name, value)} is over the budget of {shown(name, most)}")
    for name in _COMPARED if before else ():
        old, new = before.figures[name] if before else None, now.figures[name]
        if old is not None and new is None:
            found.append(f"{name}: the baseline has it, the results do not")
        elif old is not None and new is not None and _worsening(name, old, new) > threshold:
            found.append(f"{name}: worse by {_worsening(name, old, new):.1%}")
    return tuple(found)


def _worsening(name: str, before: float, now: float) -> float:
    """By how much a figure is worse, as a share; at most 0 where it is not."""
    if name == "offload":
        return before - now
    if before == 0:
        return float(now > 0)
    return (now - before) / before


def shown(name: str, value: float | None) -> str:
    """A figure as people read it.

    Args:
        name: one of `FIGURES`.
        value: the figure; None where it is not known.
    """
    if value is None:
        return "-"
    if name == "offload":
        return f"{value:.0%}"
    return f"{value:,.2f}" if name == "ms" else f"{value:,.0f}"
