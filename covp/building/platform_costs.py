"""`measure_recorded`: recorded schedules, measured in a model on a platform that they lack."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol

import msgspec

from covp.base.cache import content_key, load, store
from covp.building.core_costs import FOLDER, simulated_cycles, simulator_content
from covp.building.platform_content import platform_content
from covp.building.schedules import RecordedSchedules
from covp.building.tune.keys import layer_key
from covp.building.tune.trial import ScheduleTrial
from covp.codegen.generate import ScheduleChoice
from covp.codegen.program import Program
from covp.codegen.schedule import Schedule
from covp.graph.graph import Graph, Op

MOST = 8
"""Schedules of a layer that are measured at most: as many programs are compiled and run."""
_Cycles = list[list[int | None]]
_decoder: msgspec.json.Decoder[_Cycles] = msgspec.json.Decoder(_Cycles)


class Make(Protocol):
    """Makes the program of a model for the core alone."""

    def __call__(self, *, schedules: ScheduleChoice) -> Program:
        """Return the program with these schedules."""
        ...


def measure_recorded(
    recorded: RecordedSchedules, graph: Graph, make: Make, most: int = MOST, again: bool = False
) -> RecordedSchedules:
    """Return the schedules with the cycles that those in question take on their platform.

    The cycles of a schedule depend on the memory that weights and code lie in. Where a layer has
    no trials of this core with this memory, the best of its others are measured: each in the whole
    model, since caches hold what its neighbours left. What was measured once is cached.

    Args:
        recorded: of the platform.
        graph: the model after all passes.
        make: for the same model.
        most: schedules of a layer.
        again: measure also layers whose schedules have figures of this memory.
    """
    platform = recorded.platform
    if platform.core.timing is None:
        return recorded
    candidates = {}
    for op in graph.ops:
        found = recorded.records.unmeasured(
            op, platform.core, recorded.compiler, platform.memory_timing, most, again
        )
        if found:
            candidates[layer_key(op)] = found
    if not candidates:
        return recorded
    key = content_key(
        simulator_content(),
        platform_content(platform),
        recorded.compiler,
        *map(layer_key, graph.ops),
        *(str([each.schedule for each in found]) for found in candidates.values()),
    )
    known = load(FOLDER, key)
    if known is None:
        costs = _measure(recorded, make, candidates)
        store(FOLDER, key, msgspec.json.encode(costs))
    else:
        costs = _decoder.decode(known)
    measured = {
        layer: [_trial(trial, cycles, recorded) for trial, cycles in zip(found, spent, strict=True)]
        for (layer, found), spent in zip(candidates.items(), costs, strict=True)
    }
    kept = {
        layer: [trial for trial in trials if trial.cycles is not None]
        for layer, trials in measured.items()
    }
    return replace(recorded, measured=kept)


def _measure(
    recorded: RecordedSchedules,
    make: Make,
    candidates: Mapping[str, Sequence[ScheduleTrial]],
) -> _Cycles:
    """Return the cycles of each candidate of each layer; None in programs that do not fit."""
    best: dict[str, list[int | None]] = {key: [None] * len(one) for key, one in candidates.items()}
    for turn in range(max(map(len, candidates.values()))):

        def choose(op: Op, turn: int = turn) -> Schedule | None:
            found = candidates.get(layer_key(op))
            if found is None:
                return recorded(op)
            return Schedule.parse(found[turn % len(found)].schedule)

        program = make(schedules=choose)
        cycles = simulated_cycles(program, recorded.options.toolchain)
        if cycles is None:
            continue
        names = (layer.operators[-1] for layer in program.layers)
        spent = dict(zip(names, cycles, strict=True))
        for op in program.lowered.ops if program.lowered else ():
            costs = best.get(layer_key(op))
            if costs is not None and op.name in spent:
                number = turn % len(costs)
                before = costs[number]
                costs[number] = spent[op.name] if before is None else min(before, spent[op.name])
    return [*best.values()]


def _trial(trial: ScheduleTrial, cycles: int | None, recorded: RecordedSchedules) -> ScheduleTrial:
    platform = recorded.platform
    return replace(
        trial,
        core=platform.core.key,
        compiler=recorded.compiler,
        instructions=None,
        cycles=cycles,
        memory=platform.memory_timing,
    )
