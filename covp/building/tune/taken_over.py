"""Schedules of other compilers, cores or weights that a layer takes: `remeasure_candidates`."""

from __future__ import annotations

from typing import get_args

from covp.base.request import DEFAULT_BUILD, BuildOptions, Objective, change_options
from covp.building.tune.keys import layer_key
from covp.building.tune.records import Records
from covp.building.tune.trial import Cost, ScheduleTrial, best_of
from covp.chip.cores import Core
from covp.codegen.layer import KernelRequest, schedules
from covp.codegen.schedule import Schedule
from covp.graph.graph import Op


def _is_own(
    trial: ScheduleTrial, op: Op, core: Core, compiler: str, device: str = "virtual"
) -> bool:
    """Return whether a trial is of this layer, core, compiler and kind of device."""
    own = layer_key(op), core.key, compiler, device
    return (trial.layer, trial.core, trial.compiler, trial.device) == own


def remeasure_candidates(
    records: Records,
    op: Op,
    core: Core,
    compiler: str,
    options: BuildOptions = DEFAULT_BUILD,
    cost: Cost = "instructions",
    device: str = "virtual",
) -> list[Schedule]:
    """Return the schedules to measure again: a build's, the default, other objectives' best.

    Args:
        records: where builds look.
        op, core, compiler, device: as for `Records.groups`.
        options, cost: of the build, as for `best_of`.

    Returns:
        Schedules that fit the layer; none where it has trials of its own, or no others.
    """
    points = schedules(KernelRequest(op, core, "layer"))
    for trials in records.groups(op, core, compiler, device):
        objectives = dict.fromkeys([options.optimize, *get_args(Objective)])
        usable = records.filter_usable(trials, op, core)
        best = [
            best_of(usable, change_options(options, {"optimize": each}), cost)
            for each in objectives
        ]
        found = dict.fromkeys(Schedule.parse(trial.schedule) for trial in best if trial is not None)
        fitting = list(found)
        if fitting and _is_own(trials[0], op, core, compiler, device):
            return []
        if fitting:
            return list(dict.fromkeys([fitting[0], points[0], *fitting[1:]]))
    return []
