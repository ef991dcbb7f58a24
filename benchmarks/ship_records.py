"""Update covp/building/tune/shipped: trials of `covp tune` and schedules measured per platform.

    python benchmarks/ship_records.py [--dry-run]              # what covp tune left on this machine
    python benchmarks/ship_records.py --measure kws,toycar -p nucleo-f401re,riscv32

One file holds the trials of a core, a compiler and a memory (`Platform.memory_timing`): of each
layer the Pareto front of cycles against flash. New trials are added to those that are shipped (the
newer one of a schedule counts); trials of another version of the kernels are dropped. With
--measure every schedule that is known of a model's layers on that core is run in the model on each
platform whose memory has no trials yet; with --again, as after a change of the timing model, on
others too.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterable
from functools import partial
from pathlib import Path

import covp
from covp.building.platform_costs import measure_recorded
from covp.building.schedules import recorded_schedules
from covp.building.tune.records import (
    FOLDER,
    Records,
    ScheduleTrial,
    file_name,
    own_folder,
    pareto_front,
    read_shipped_trials,
    write_shipped_trials,
)
from covp.building.tune.trial import UNKNOWN_MEMORY
from covp.codegen.generate import generate
from covp.codegen.schedule import Schedule
from covp.graph.passes import run_passes

FASTEST, STEP = 3, 0.93
"""Of a layer the fastest trials are kept, and each that takes so much less flash than the last one.
"""
NEAR = 1.5
"""Cycles, to the fewest, of a trial that other weights may need."""
VARIANTS = 24
"""Schedules of a layer that are measured at most."""


def own_trials(own: Path) -> list[ScheduleTrial]:
    """What `covp tune` left that says which memory its cycles are of."""
    records = Records(sorted(own.glob("*.jsonl")))
    found = (records.trials(*place) for place in records.layers())
    return [t for trials in found for t in trials if t.memory != UNKNOWN_MEMORY and t.exact]


def measured_trials(model: str, platform_name: str, most: int, again: bool) -> list[ScheduleTrial]:
    """The schedules that are known of a model's layers, run in it on a platform."""
    platform, graph = covp.load_platform(platform_name), covp.load_model(model)
    recorded = recorded_schedules(platform)
    make = partial(generate, graph, platform)
    found = measure_recorded(recorded, run_passes(graph), make, most, again)
    return [trial for trials in found.measured.values() for trial in trials]


def fronts(
    shipped: Path, new: Iterable[ScheduleTrial], again: bool = False
) -> dict[str, list[ScheduleTrial]]:
    """What each file is to hold, for those that get new trials; `again`: of a layer no others."""
    files: dict[str, list[ScheduleTrial]] = defaultdict(list)
    for trial in new:
        files[file_name(trial.core, trial.compiler, trial.memory)].append(trial)
    found: dict[str, list[ScheduleTrial]] = {}
    for name, trials in files.items():
        path, memory = shipped / name, trials[0].memory
        old = read_shipped_trials(path) if path.exists() else []
        known = Records([])
        layers = {trial.layer for trial in trials} if again else set()
        kept = [t for t in old if t.memory == memory and t.layer not in layers]
        for trial in (*kept, *trials):
            known.add(trial)
        found[name] = [t for place in known.layers() for t in _front(known.trials(*place))]
    return {name: trials for name, trials in sorted(found.items()) if trials}


def _front(trials: list[ScheduleTrial]) -> list[ScheduleTrial]:
    front = pareto_front(trials)
    kept = front[:FASTEST]
    for trial in front[FASTEST:]:
        if trial.flash_bytes <= STEP * kept[-1].flash_bytes or trial is front[-1]:
            kept.append(trial)
    # layers with other weights may not take the best ones: the fastest of each tile and unroll
    kinds: dict[tuple[str, int], ScheduleTrial] = {}
    for trial in sorted((t for t in trials if t.exact), key=ScheduleTrial.spent):
        schedule = Schedule.parse(trial.schedule)
        kinds.setdefault((schedule.tile, schedule.knobs.get("unroll", 0)), trial)
    near = [t for t in kinds.values() if t.spent() <= NEAR * front[0].spent()]
    return list(dict.fromkeys([*kept, *near]))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--dry-run", action="store_true", help="say what would change")
    parser.add_argument("--measure", metavar="MODELS", help="run schedules in these models")
    parser.add_argument("-p", "--platforms", default="", help="on these platforms")
    parser.add_argument("--most", type=int, default=VARIANTS, help="schedules of a layer")
    parser.add_argument("--again", action="store_true", help="also those with trials of a memory")
    options = parser.parse_args()
    if options.measure:
        for platform in options.platforms.split(","):
            new = []
            for model in options.measure.split(","):
                new += measured_trials(model, platform, options.most, options.again)
                print(f"{model} on {platform}: {len(new)} trials so far", flush=True)
            _write(fronts(FOLDER, new, options.again), options.dry_run)
    else:
        _write(fronts(FOLDER, own_trials(own_folder())), options.dry_run)
    return 0


def _write(files: dict[str, list[ScheduleTrial]], dry_run: bool) -> None:
    for name, trials in files.items():
        path = FOLDER / name
        before = len(read_shipped_trials(path)) if path.exists() else 0
        if not dry_run:
            write_shipped_trials(path, trials)
        layers = len({trial.layer for trial in trials})
        print(f"{name}: {len(trials)} trials of {layers} layers, was {before}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
