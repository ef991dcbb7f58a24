"""`renew_build`: a build without schedules that are slower than the default under this compiler.

A recorded schedule comes with the instructions, or the cycles, that it took where it was recorded.
Where a layer takes clearly more of them here (under another compiler, or after a change of the
kernels), or its record is of a compiler of another name, it is measured beside the kernel's own
choice, and both are kept as trials: the better one is taken from then on.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace

from covp.building.builder import Build
from covp.building.schedules import RecordedSchedules
from covp.building.tune.keys import layer_key
from covp.building.tune.measure import ScheduleBench
from covp.building.tune.records import append_trials, trial_file
from covp.building.tune.trial import ScheduleTrial
from covp.building.tune.tuner import remeasure_candidates
from covp.codegen.layer import KernelRequest, schedules
from covp.codegen.schedule import Schedule
from covp.device.stop import EXACT
from covp.evaluation.result import Evaluation
from covp.graph.graph import Op
from covp.runtime.profile import LayerProfile

TOLERANCE = 0.02
"""The share of the recorded instructions that a layer may take more.

From zig 0.17.0 to 0.17.1 layers of MLPerf Tiny took -8 to +0.7 %."""


def renew_build(result: Evaluation) -> Build | None:
    """Return the build anew, where another schedule than the recorded one turned out to be better.

    Args:
        result: of an inference. Exact instructions by layer are what is compared.

    Returns:
        None where all schedules stay.

    Raises:
        CovpError: it cannot be built or measured.
    """
    build, recorded = result.build, result.build.recorded
    if recorded is None or result.profile.sources.instructions != EXACT:
        return None
    spent = {entry.name: entry for entry in result.profile.layers}
    chosen = recorded.schedules
    aged = [op for op, trial in recorded.used if _is_aged(op, trial, spent.get(op.name), chosen)]
    if not aged:
        return None
    _measure(aged, chosen, build.toolchain)
    lost = [
        f"{op.name}: {trial.schedule}, tuned with {trial.compiler}, costs more now than recorded; "
        f"{other.schedule} is taken instead"
        for op, trial in recorded.used
        if (other := chosen.trial(op)) is not None and other.schedule != trial.schedule
    ]
    return replace(recorded.again(), notes=tuple(lost)) if lost else None


def _is_aged(
    op: Op, trial: ScheduleTrial, spent: LayerProfile | None, chosen: RecordedSchedules
) -> bool:
    """Return whether a layer's record does not hold here, or is of another compiler.

    The cost of a schedule that was tuned for other weights depends on them: nothing to compare.
    """
    if trial.layer != layer_key(op) or spent is None:
        return False
    took, recorded = spent.instructions, trial.instructions
    if recorded is None and trial.memory == chosen.platform.memory_timing:
        took, recorded = spent.cycles, trial.cycles
    if took is None or recorded is None:
        return False
    if trial.compiler.partition(" ")[0] != chosen.compiler.partition(" ")[0]:
        return True
    return took > (1 + TOLERANCE) * recorded


def _measure(ops: list[Op], chosen: RecordedSchedules, toolchain: str) -> None:
    """Keep a trial of each schedule that comes into question."""
    platform = chosen.platform
    file = trial_file(platform.core, chosen.compiler)
    with closing(ScheduleBench(platform, toolchain)) as bench:
        for op in ops:
            known, options = chosen.records, chosen.options
            wanted = remeasure_candidates(known, op, platform.core, chosen.compiler, options)
            wanted = wanted or schedules(KernelRequest(op, platform.core, "layer"))[:1]
            measured: set[Schedule] = set()
            while wanted:
                for schedule in wanted:
                    trial = bench.measure(op, schedule)
                    if trial is not None:
                        chosen.records.add(trial)
                        append_trials(file, [trial])
                measured |= {*wanted}
                # the record that is the best now may be as old
                best = chosen(op)
                wanted = [] if best is None or best in measured else [best]
