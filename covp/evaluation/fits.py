"""`fits`: on which platforms a model runs within a budget, and what it costs on each."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from covp.base.request import BuildOptions, RunOptions, change_options
from covp.chip.platform_file import Platform, parse_size
from covp.errors import CapacityError, UsageError, near_misses
from covp.evaluation.energy import Energy
from covp.evaluation.further_documents import FitsRow
from covp.evaluation.result import Evaluation
from covp.evaluation.survey import Trial, survey
from covp.graph.models import as_graph

_UNITS = {"ms": "ms", "mj": "mJ", "ram": "B", "flash": "B"}
"""What a budget can limit, and its unit."""


@dataclass(frozen=True)
class Limits:
    """The most that one inference may take.

    Attributes:
        limits: "ms" and "mj" (milliseconds, millijoules), "ram" and "flash" (bytes), in the order
            given; what is not there has no limit.
    """

    limits: dict[str, float] = field(default_factory=dict)

    @classmethod
    def read(cls, text: str) -> Limits:
        """Read such as "ms=50,ram=64K,flash=512K,mj=5".

        Raises:
            UsageError: an unknown key, one twice, or a limit that is no positive number or size.
        """
        limits: dict[str, float] = {}
        for part in filter(None, (part.strip() for part in text.split(","))):
            key, sign, value = part.partition("=")
            if key not in _UNITS:
                raise UsageError(f"budget: no limit {key!r:.40}:", hint=near_misses(key, _UNITS))
            if key in limits:
                raise UsageError(f"budget: {key} is there twice")
            limits[key] = _limit(key, value) if sign else _wrong(key, value)
        return cls(limits)

    def excess(self, result: Evaluation) -> str | None:
        """Return the first limit that a run does not keep, such as "over 50 ms", or None."""
        for key, limit in self.limits.items():
            value = figure(result, key)
            if value is None:
                return f"{'time' if key == 'ms' else 'energy'} not known"
            if value > limit:
                what = f"{key} " if _UNITS[key] == "B" else ""
                return f"{what}over {limit:,.15g} {_UNITS[key]}"
        return None


def _limit(key: str, value: str) -> float:
    if key in ("ram", "flash"):
        if re.fullmatch(r"[1-9][0-9]{0,11}", value):
            return int(value)
        try:
            return parse_size(value)
        except ValueError:
            return _wrong(key, value)
    if not re.fullmatch(r"[0-9]{1,12}(\.[0-9]{1,12})?|\.[0-9]{1,12}", value) or not float(value):
        return _wrong(key, value)
    return float(value)


def _wrong(key: str, value: str) -> float:
    how = "bytes or a size such as 64K" if key in ("ram", "flash") else f"a number of {_UNITS[key]}"
    raise UsageError(f"budget: {key}={value:.40}: write {how}, above 0")


def figure(result: Evaluation, key: str) -> float | None:
    """Return a figure of a run; None where it is not known.

    Args:
        result: of the run.
        key: as in `Limits`.
    """
    if key == "ms":
        seconds = result.profile.seconds
        return None if seconds is None else seconds * 1e3
    if key == "mj":
        return result.energy.joules * 1e3 if isinstance(result.energy, Energy) else None
    return result.memory.ram_bytes if key == "ram" else result.memory.flash_bytes


@dataclass(frozen=True, eq=False)
class Placing:
    """A model on one platform, beside a budget.

    Attributes:
        trial: the model there; without a result where it cannot run.
        budget: of one inference.
        optimize: what the schedules were chosen by.
        is_smaller: whether that is "size" because the fastest ones take too much flash.
    """

    trial: Trial
    budget: Limits
    optimize: str
    is_smaller: bool = False

    @property
    def fits(self) -> bool:
        """True if it runs there within the budget."""
        return self.short is None

    @property
    def short(self) -> str | None:
        """Why not, in a few words for a table, such as "ram 2,584 B too small"; None if it fits."""
        if self.trial.result is not None:
            return self.budget.excess(self.trial.result)
        each = (
            f"{kind} {size:,} B too small" for kind, size in (self.missing_memory or {}).items()
        )
        return next(each, "cannot run")

    @property
    def missing_memory(self) -> dict[str, int] | None:
        """The kind of memory that is too small, with the bytes that lack; None for no memory."""
        error = self.trial.error
        if not isinstance(error, CapacityError) or error.kind is None:
            return None
        return {error.kind: error.needed - error.available}

    @property
    def reason(self) -> str | None:
        """Why not, in a line; None if it fits."""
        if self.trial.reason is not None:
            return self.trial.reason.partition("; what may help")[0]
        return self.short

    def record(self) -> FitsRow:
        """Return the row of the JSON document ``covp.fits/1``."""
        result = self.trial.result
        joules = figure(result, "mj") if result else None
        return FitsRow(
            model=self.trial.model,
            platform=self.trial.platform.name,
            fits=self.fits,
            reason=self.reason,
            too_small=self.missing_memory,
            optimize=self.optimize,
            instructions=result.profile.instructions if result else None,
            cycles=result.profile.cycles if result else None,
            cycles_source=result.profile.sources.cycles if result else None,
            seconds=result.profile.seconds if result else None,
            flash_bytes=result.memory.flash_bytes if result else None,
            ram_bytes=result.memory.ram_bytes if result else None,
            energy_j=None if joules is None else joules / 1e3,
            matches_reference=result.matches_reference if result else None,
        )


def fits(
    model: str | Path,
    platforms: Sequence[Platform],
    accelerators: Sequence[str],
    budget: Limits,
    build_options: BuildOptions,
    run_options: RunOptions,
) -> Iterator[Placing]:
    """Try a model on each platform: by default the outputs of one inference are compared.

    Where the fastest schedules take too much flash, those of ``optimize="size"`` are tried.

    Args:
        model, accelerators: as for `survey`.
        platforms: in any order.
        budget: what one inference may take.
        build_options, run_options: of each build and run.

    Yields:
        One for each platform, in their order.

    Raises:
        CovpError: what no other platform would change, such as a model that cannot be read.
    """
    graph = as_graph(model, build_options)
    build = change_options(build_options.for_graph(), {})
    if run_options.check is None:
        run_options = change_options(run_options, {"check": "output"})
    for trial in survey(graph, platforms, accelerators, build, run_options):
        fit = Placing(trial, budget, build.optimize)
        if (fit.short or "").startswith("flash ") and build.optimize != "size":
            small = change_options(build, {"optimize": "size"})
            (again,) = survey(graph, [trial.platform], accelerators, small, run_options)
            smaller = Placing(again, budget, "size", is_smaller=True)
            fit = smaller if smaller.fits else fit
        yield fit


def order(found: Sequence[Placing]) -> list[Placing]:
    """Return those that fit first, each part by the first limit; by time without one.

    Args:
        found: of one model or several, whose rows stay together.
    """
    models = {fit.trial.model: i for i, fit in reversed([*enumerate(found)])}

    def place(fit: Placing) -> tuple[int, bool, float, str]:
        key = next(iter(fit.budget.limits), "ms")
        value = figure(fit.trial.result, key) if fit.trial.result else None
        worst = float("inf") if value is None else value
        return models[fit.trial.model], not fit.fits, worst, fit.trial.platform.name

    return sorted(found, key=place)
