"""`recorded_schedules`: the tuner's records as choices for `covp.compile`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Unpack

from covp.base.request import DEFAULT_BUILD, BuildChanges, BuildOptions, change_options
from covp.building.tune.records import Records, ScheduleTrial, best_of, layer_key
from covp.chip.platform_file import Platform
from covp.codegen.generate import ScheduleChoice
from covp.codegen.schedule import Schedule
from covp.compilers.toolchain import get_toolchain
from covp.errors import ToolchainError
from covp.graph.graph import Op

Schedules = ScheduleChoice | Literal["recorded"] | None
"""Source of schedules: a function of one's own, the tuner's records, or the kernels alone."""


@dataclass(frozen=True)
class RecordedSchedules:
    """The best recorded schedule of each operator: `covp.building.tune.records.Records.groups`.

    Attributes:
        records: opened once; what is tuned meanwhile in another process changes nothing.
        platform: whose core the schedules are for.
        compiler: name and version; records of others stand in where there are none of it.
        options, device: as for `recorded_schedules`.
        measured: trials of the layers of one model on the platform, by `layer_key`: they count
            before all others.
    """

    records: Records
    platform: Platform
    compiler: str
    options: BuildOptions = DEFAULT_BUILD
    device: str = "virtual"
    measured: Mapping[str, Sequence[ScheduleTrial]] = field(default_factory=dict)

    def __call__(self, op: Op) -> Schedule | None:
        """Return the schedule of `trial`."""
        trial = self.trial(op)
        return None if trial is None else Schedule.parse(trial.schedule)

    def trial(self, op: Op) -> ScheduleTrial | None:
        """Return the record that an operator's schedule comes from."""
        core, memory = self.platform.core, self.platform.memory_timing
        found = self.records.find(op, core, self.compiler, self.options, self.device, memory)
        own = self.measured.get(layer_key(op)) if self.measured else None
        if own and self.options.optimize != "instructions":
            like = [found] if found and (found.core, found.memory) == (core.key, memory) else []
            return best_of([*own, *like], self.options) or found
        return found


def recorded_schedules(
    platform: Platform,
    options: BuildOptions = DEFAULT_BUILD,
    device: str = "virtual",
    **changes: Unpack[BuildChanges],
) -> RecordedSchedules:
    """Return the best recorded schedule of each operator. The records are read once per process.

    Args:
        platform: whose core the schedules are for.
        options: which schedules are taken: ``optimize``, ``max_scratch`` (a layer without such a
            record gets the kernel's own choice), ``flash_trade`` (None: speed at any price). The
            records of ``toolchain`` count before those of the other, the nearest version first.
        device: as for `Session`; trials on that kind of device count first.
        changes: other values of the options.

    Raises:
        CovpError: a file of records that comes with covp is damaged.
    """
    options = change_options(options, changes)
    try:
        compiler = get_toolchain(options.toolchain, platform.core).version
    except ToolchainError:
        # C can be generated where no compiler is installed
        compiler = options.toolchain
    records = Records.available()
    records.open(platform.core.key, *platform.core.like)
    kind = device.partition(":")[0]
    return RecordedSchedules(records, platform, compiler, options, kind)


def schedules_of(
    platform: Platform, options: BuildOptions, device: str = "virtual"
) -> RecordedSchedules | None:
    """Return the `recorded_schedules` of a platform, options and device; None if none is tuned."""
    return recorded_schedules(platform, options, device) if options.tuned else None


@dataclass(frozen=True)
class ScheduleSource:
    """Origin of the schedules of a build.

    Attributes:
        layers: number of layers whose schedule was tuned.
        compilers: with which they were tuned, such as "zig 0.17.0".
        cores: on which they were tuned.
        other_weights: number of layers whose schedule was tuned for other weights.
    """

    layers: int = 0
    compilers: tuple[str, ...] = ()
    cores: tuple[str, ...] = ()
    other_weights: int = 0

    @staticmethod
    def of(used: Sequence[tuple[Op, ScheduleTrial]]) -> ScheduleSource:
        """Return the source for operators of a build and the records of their schedules."""
        trials = [trial for _, trial in used]
        return ScheduleSource(
            len(trials),
            tuple(sorted({trial.compiler for trial in trials})),
            tuple(sorted({trial.core for trial in trials})),
            sum(layer_key(op) != trial.layer for op, trial in used),
        )

    def __add__(self, other: ScheduleSource) -> ScheduleSource:
        return ScheduleSource(
            self.layers + other.layers,
            tuple(sorted({*self.compilers, *other.compilers})),
            tuple(sorted({*self.cores, *other.cores})),
            self.other_weights + other.other_weights,
        )

    def __str__(self) -> str:
        if not self.layers:
            return "no tuned schedules"
        text = f"schedules tuned with {', '.join(self.compilers)}"
        if self.other_weights:
            text += f" (for other weights: {self.other_weights} of {self.layers})"
        return text


UNTUNED = ScheduleSource()
