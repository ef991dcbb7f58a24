"""`compare`: the core alone beside core and accelerators."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from covp.accelerator.backend import AcceleratorBackend
from covp.base.html_table import html_table
from covp.chip.platform_file import Platform, load_platform
from covp.evaluation.builder import build
from covp.evaluation.check import BY_LAYERS, checked_level
from covp.evaluation.result import Evaluation
from covp.evaluation.runner import NOTHING_MORE, Wanted, checked_inputs, run
from covp.evaluation.sample import Sample
from covp.evaluation.schedules import Schedules, recorded_schedules
from covp.graph.graph import Graph
from covp.graph.readers import Shapes


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
        """Whether both computed what the reference computes."""
        return self.alone.matches_reference and self.accelerated.matches_reference

    def record(self) -> dict[str, Any]:
        """A row of the JSON document ``covp.compare/1``."""
        return {
            "model": self.alone.model,
            "cpu": self.alone.record(),
            "accelerated": self.accelerated.record(),
            "instructions_saved": self.instructions_saved,
            "speedup": self.speedup,
            "mac_coverage": self.mac_coverage,
        }

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
    """Of the multiply-accumulates that accelerators report, in a table."""
    return "not reported" if share is None else f"{share:.0%}"


def _count(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


def compare(
    model: Graph | str | Path,
    platform: Platform | str | Path,
    accelerators: Sequence[str | AcceleratorBackend],
    *,
    toolchain: str = "zig",
    schedules: Schedules = "recorded",
    device: str = "virtual",
    seed: int = 0,
    check: str | None = None,
    allow_slower: bool = False,
    starts: Callable[[str], None] = lambda what: None,
    shapes: Shapes | None = None,
    states: Mapping[str, str] | None = None,
    streaming: bool | int = False,
    overlap: bool = False,
    wanted: Wanted = NOTHING_MORE,
) -> Comparison:
    """Run a model on the core alone and with accelerators, on the same random inputs.

    The model is read once and the reference computed once. Accelerators that get no layer are no
    error here: nothing is saved then.

    Args:
        model, platform, accelerators, schedules, allow_slower, shapes, states, streaming, overlap:
            as for `covp.compile`.
        toolchain, device: as for `Session`.
        seed: of the inputs.
        check: as for `run`.
        wanted: of both runs, as for `run`.
        starts: called before each of the two runs with "alone" or "with ACCELERATORS".

    Raises:
        CovpError: with one line, whatever goes wrong.
    """
    platform = load_platform(platform)
    if schedules == "recorded":
        schedules = recorded_schedules(platform, toolchain, device=device)
    offloading = build(
        model,
        platform,
        accelerators,
        toolchain=toolchain,
        schedules=schedules,
        allow_unused=True,
        allow_slower=allow_slower,
        shapes=shapes,
        states=states,
        streaming=streaming,
        overlap=overlap,
    )
    plain = build(offloading.graph, offloading.platform, toolchain=toolchain, schedules=schedules)
    sample = Sample.random(plain.graph, seed)
    level = checked_level(check, device)
    probes = checked_inputs(plain.graph, sample, level) if level in BY_LAYERS else None
    starts("alone")
    alone = run(plain, sample, device=device, check=check, probes=probes, wanted=wanted)
    starts(f"with {' '.join(offloading.accelerators)}")
    beside = run(offloading, sample, device=device, check=check, probes=probes, wanted=wanted)
    return Comparison(alone, beside)
