"""`compare`: the core alone beside core and accelerators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Unpack

from covp.accelerator.backend import AcceleratorBackend
from covp.base.request import (
    DEFAULT_BUILD,
    DEFAULT_RUN,
    BuildOptions,
    Changes,
    RunOptions,
    change_options,
    request,
)
from covp.base.table_text import html_table
from covp.building.builder import build
from covp.building.schedules import Schedules, schedules_of
from covp.chip.platform_file import Platform, load_platform
from covp.evaluation.check import BY_LAYERS
from covp.evaluation.documents import CompareRow
from covp.evaluation.result import Evaluation
from covp.evaluation.runner import NOTHING_MORE, Wanted, checked_inputs, level_of, run
from covp.evaluation.sample import Sample
from covp.graph.graph import Graph


@dataclass(frozen=True, eq=False)
class Comparison:
    """One model on one input: on the core alone, and with accelerators."""

    alone: Evaluation
    accelerated: Evaluation

    @property
    def instructions_saved(self) -> float | None:
        """The share of the instructions that the core no longer executes; None if not counted."""
        before = self.alone.profile.instructions
        after = self.accelerated.profile.instructions
        return None if not before or after is None else 1 - after / before

    @property
    def speedup(self) -> float | None:
        """Cycles alone by cycles accelerated; None where the device has no cycles."""
        before, after = self.alone.profile.cycles, self.accelerated.profile.cycles
        return None if before is None or not after else before / after

    @property
    def mac_coverage(self) -> float | None:
        """See `Evaluation.mac_coverage`."""
        return self.accelerated.mac_coverage

    @property
    def matches_reference(self) -> bool:
        """True if both computed what the reference computes."""
        return self.alone.matches_reference and self.accelerated.matches_reference

    def record(self) -> CompareRow:
        """Return the row of the JSON document ``covp.compare/1``."""
        return CompareRow(
            model=self.alone.model,
            cpu=self.alone.record(),
            accelerated=self.accelerated.record(),
            instructions_saved=self.instructions_saved,
            speedup=self.speedup,
            mac_coverage=self.mac_coverage,
        )

    def _repr_html_(self) -> str:
        alone, accelerated = self.alone, self.accelerated
        head = ("model", "platform", "accelerators", "instructions alone", "accelerated",
                "speedup", "MACs offloaded", "matches")  # fmt: skip
        row = (
            alone.model,
            alone.platform.name,
            ", ".join(accelerated.build.accelerators),
            *(_count(run.profile.instructions) for run in (alone, accelerated)),
            "-" if self.speedup is None else f"{self.speedup:.1f}x",
            share_text(self.mac_coverage),
            "yes" if self.matches_reference else "NO",
        )
        return html_table(head, [row], text_columns=3)


def share_text(share: float | None) -> str:
    """Return the share of multiply-accumulates on accelerators as a table's cell."""
    return "not reported" if share is None else f"{share:.0%}"


def _count(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


def compare(
    model: Graph | str | Path,
    platform: Platform | str | Path,
    accelerators: Sequence[str | AcceleratorBackend],
    build_options: BuildOptions = DEFAULT_BUILD,
    run_options: RunOptions = DEFAULT_RUN,
    *,
    schedules: Schedules = "recorded",
    starts: Callable[[str], None] = lambda what: None,
    wanted: Wanted = NOTHING_MORE,
    **changes: Unpack[Changes],
) -> Comparison:
    """Run a model on the core alone and with accelerators, on the same random inputs.

    The model is read once and the reference computed once. Accelerators that get no layer are no
    error here: nothing is saved then.

    Args:
        model, platform, accelerators, schedules: as for `covp.compile`.
        build_options, run_options: of both builds and runs.
        starts: called before each of the two runs with "alone" or "with ACCELERATORS".
        wanted: of both runs, as for `run`.
        changes: other values of the options.

    Raises:
        CovpError: with one line, whatever goes wrong.
    """
    build_options, run_options = request(build_options, run_options, changes)
    build_options = change_options(build_options, {"allow_unused": True})
    platform = load_platform(platform)
    if schedules == "recorded":
        schedules = schedules_of(platform, build_options, run_options.device)
    offloading = build(model, platform, accelerators, build_options, schedules=schedules)
    alone = build_options.for_graph().core_alone()
    plain = build(offloading.graph, platform, (), alone, schedules=schedules)
    sample = Sample.random(plain.graph, run_options.seed)
    level = level_of(run_options)
    probes = checked_inputs(plain.graph, sample, level) if level in BY_LAYERS else None
    starts("alone")
    before = run(plain, sample, run_options, probes=probes, wanted=wanted)
    starts(f"with {' '.join(offloading.accelerators)}")
    after = run(offloading, sample, run_options, probes=probes, wanted=wanted)
    return Comparison(before, after)
