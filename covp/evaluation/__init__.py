"""Checked figures of a model, cut where people stop: `build`, `run`, `compare`.

`build` compiles, a `Runner` loads what was built and runs it (`run`: once), `compare` sets the
core alone beside core and accelerators, `survey` tries a model on several platforms. The command
line, the benchmarks and tests share them.
"""

from covp.building.builder import Build, build
from covp.building.schedules import RecordedSchedules, ScheduleSource, recorded_schedules
from covp.evaluation.check import Check, Mismatch, check_layers
from covp.evaluation.comparison import Comparison, compare
from covp.evaluation.estimates import wrong_estimates
from covp.evaluation.rejected import RejectedLayer, rejected_layers
from covp.evaluation.result import Evaluation
from covp.evaluation.runner import Runner, Wanted, evaluate, run
from covp.evaluation.sample import Sample
from covp.evaluation.survey import Trial, survey

__all__ = [
    "Build",
    "Check",
    "Comparison",
    "Evaluation",
    "Mismatch",
    "RecordedSchedules",
    "RejectedLayer",
    "Runner",
    "Sample",
    "ScheduleSource",
    "Trial",
    "Wanted",
    "build",
    "check_layers",
    "compare",
    "evaluate",
    "recorded_schedules",
    "rejected_layers",
    "run",
    "survey",
    "wrong_estimates",
]
