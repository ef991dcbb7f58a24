"""`tune`: search the schedules of every distinct layer of a model, in parallel processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import get_args

from covp.base import cache
from covp.base.arguments import demand, demand_count, demand_name, demand_seconds
from covp.base.closing import Closing
from covp.base.request import DEFAULT_BUILD, BuildOptions, Objective, change_options
from covp.building.tune.keys import layer_key
from covp.building.tune.measure import ScheduleBench
from covp.building.tune.records import (
    VERSION,
    Records,
    append_trials,
    trial_file,
)
from covp.building.tune.search import ScheduleSearch, Strategy, make_search
from covp.building.tune.trial import Cost, ScheduleTrial, best_of
from covp.chip.cores import Core
from covp.chip.platform_file import Platform, load_platform
from covp.codegen.layer import KernelRequest, schedules
from covp.codegen.schedule import Schedule
from covp.compilers.toolchain import get_toolchain
from covp.graph.graph import Graph, Op
from covp.graph.passes import run_passes
from covp.runtime.devices import is_fast, scheme_of
from covp.runtime.jobs import open_jobs


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
    cost: Cost = "cycles",
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


Report = Callable[["Progress"], None]


@dataclass(frozen=True)
class Progress:
    """After each trial: how far the search is.

    Attributes:
        layer: name of the operator.
        tried, planned: new trials of that layer.
        total: new trials of all layers, if there is time for them.
        best: of the layer.
    """

    layer: str
    tried: int
    planned: int
    total: int
    best: ScheduleTrial | None


@dataclass(frozen=True)
class LayerResult:
    """Result of the search for one layer.

    Attributes:
        op: the operator.
        default: the trial of the schedule that the kernel takes by itself.
        best: the best exact trial within the limits of the search.
        trials: all that are known of the layer, old ones included.
        space: number of its valid schedules.
        build: the options that schedules are judged by.
    """

    op: Op
    default: ScheduleTrial | None
    best: ScheduleTrial | None
    trials: tuple[ScheduleTrial, ...]
    space: int
    build: BuildOptions = DEFAULT_BUILD

    @property
    def tried(self) -> int:
        """Schedules of the layer that were measured."""
        return len(self.trials)

    def best_for(self, objective: Objective) -> ScheduleTrial | None:
        """Return the best exact trial for another objective."""
        return best_of(self.trials, change_options(self.build, {"optimize": objective}))


@dataclass(frozen=True)
class Options:
    """Options of a search.

    Attributes:
        trials: new trials for each layer at most; None for the whole space.
        seconds: host time for all at most; None for no limit. Each layer may take an equal share
            of what is left when its turn comes.
        strategy: order of the trials.
        build, cost: what is made small, within which limits, as for `best_of`.
        jobs: processes; a board or server has room for one only.
        seed: of random choices.
        device: what the trials run on, as for `Session`.
    """

    trials: int | None = 64
    seconds: float | None = None
    strategy: Strategy = "model"
    build: BuildOptions = DEFAULT_BUILD
    cost: Cost = "cycles"
    jobs: int = 1
    seed: int = 0
    device: str = "virtual"

    @property
    def device_kind(self) -> str:
        """The device without its address."""
        return scheme_of(self.device)


def tune(
    graph: Graph,
    platform: Platform,
    toolchain: str = "zig",
    options: Options = Options(),
    report: Report = lambda progress: None,
    records: Records | None = None,
) -> list[LayerResult]:
    """Run the search; each trial is on disk at once, so an interrupted search loses nothing.

    Args:
        graph: the model.
        platform: whose core runs the trials.
        toolchain: "zig" or "gcc".
        options: of the search; its budget, objective and device.
        report: called with the progress after each trial.
        records: trials that are known already and not repeated; by default all that are available.
            They do not count in the budget.

    Returns:
        One result per distinct layer that has a choice of schedules.

    Raises:
        CovpError: the toolchain or device failed, or trials cannot be kept on disk.
    """
    platform = load_platform(platform)
    demand("graph", graph, Graph, "a graph, as covp.load_model gives it")
    _check(options)
    cache.require_persistent("records")
    known = Records.available() if records is None else records
    tuner = _Tuner(platform, toolchain, options, report, known)
    with tuner:
        return tuner.layers(list(_distinct(run_passes(graph), platform)))


def _check(options: Options) -> None:
    """Raise UsageError where an option is wrong."""
    demand("options", options, Options, "covp.building.tune.tuner.Options")
    if options.trials is not None:
        demand_count("trials", options.trials, 1)
    if options.seconds is not None:
        demand_seconds("seconds", options.seconds)
    demand("build", options.build, BuildOptions, "covp.base.request.BuildOptions")
    if options.build.max_scratch is not None:
        demand_count("max_scratch", options.build.max_scratch)
    demand_name("strategy", options.strategy, get_args(Strategy))
    demand_name("optimize", options.build.optimize, get_args(Objective))
    demand_name("cost", options.cost, get_args(Cost))
    demand_count("jobs", options.jobs, 1)
    demand_count("seed", options.seed)
    demand("device", options.device, str, "the name of a device")


def _distinct(graph: Graph, platform: Platform) -> Iterator[Op]:
    seen = set()
    for op in graph.ops:
        if len(schedules(KernelRequest(op, platform.core, "layer"))) < 2:
            continue
        key = layer_key(op)
        if key not in seen:
            seen.add(key)
            yield op


class _Tuner(Closing):
    def __init__(
        self,
        platform: Platform,
        toolchain: str,
        options: Options,
        report: Report,
        records: Records,
    ) -> None:
        self.platform = platform
        self.options = options
        self.report = report
        self.compiler = get_toolchain(toolchain, platform.core).version
        self.file = trial_file(platform.core, self.compiler)
        self.records = records
        self.end = None if options.seconds is None else monotonic() + options.seconds
        self.layer_end: float | None = None
        self.total = 0
        bench = platform, toolchain, options.device
        with ScheduleBench(*bench) as first:
            _ = first.session  # what is compiled on first use is compiled once, before all others
        count = options.jobs if is_fast(options.device) else 1
        self.jobs = open_jobs(ScheduleBench(*bench), count)

    def close(self) -> None:
        """End the worker processes."""
        self.jobs.close()

    def layers(self, ops: Sequence[Op]) -> list[LayerResult]:
        """Search one layer after the other within the budget."""
        self.total = sum(self._plan(self._points(op), self._known(op)) for op in ops)
        results = []
        for left, op in zip(range(len(ops), 0, -1), ops, strict=True):
            if self.end is not None:
                now = monotonic()
                self.layer_end = now + (self.end - now) / left
            results.append(self._layer(op))
        return results

    def _points(self, op: Op) -> list[Schedule]:
        return schedules(KernelRequest(op, self.platform.core, "layer"))

    def _known(self, op: Op) -> dict[str, ScheduleTrial]:
        core, kind = self.platform.core.key, self.options.device_kind
        memory = self.platform.memory_timing
        trials = self.records.trials(layer_key(op), core, self.compiler, kind, memory)
        fitting = self.records.filter_usable(trials, op, self.platform.core)
        return {trial.schedule: trial for trial in fitting}

    def _plan(self, points: Sequence[Schedule], known: dict[str, ScheduleTrial]) -> int:
        new = sum(str(point) not in known for point in points)
        return min(self.options.trials or new, new)

    def _layer(self, op: Op) -> LayerResult:
        points, known = self._points(op), self._known(op)
        search = make_search(self.options.strategy, points, self.options.seed)
        for point in points:
            if str(point) in known:
                search.learn(point, self._score(known[str(point)]))
        self._search(op, search, known, self._plan(points, known))
        return LayerResult(
            op,
            known.get(str(points[0])),
            self._best(known),
            tuple(known.values()),
            len(points),
            self.options.build,
        )

    def _search(
        self, op: Op, search: ScheduleSearch, known: dict[str, ScheduleTrial], planned: int
    ) -> None:
        running: dict[int, Schedule] = {}
        started = tried = 0
        wanted = self.options
        # before all others, the default second, to compare with
        first = remeasure_candidates(
            self.records,
            op,
            self.platform.core,
            self.compiler,
            wanted.build,
            wanted.cost,
            wanted.device_kind,
        )
        while True:
            while started < planned and len(running) < self.jobs.slots and not self._late():
                proposed, first = first[:1] or search.propose(1), first[1:]
                if not proposed:
                    started = planned
                elif str(proposed[0]) not in known and proposed[0] not in running.values():
                    running[self.jobs.submit((op, proposed[0]))] = proposed[0]
                    started += 1
            if not running:
                return
            for done in self.jobs.wait():
                schedule, trial = running.pop(done.number), done.result
                tried += 1
                if trial is not None:
                    known[trial.schedule] = trial
                    self.records.add(trial)
                    append_trials(self.file, [trial])
                search.learn(schedule, self._score(trial))
                self.report(Progress(op.name, tried, planned, self.total, self._best(known)))

    def _best(self, known: dict[str, ScheduleTrial]) -> ScheduleTrial | None:
        return best_of(known.values(), self.options.build, self.options.cost)

    def _late(self) -> bool:
        return self.layer_end is not None and monotonic() >= self.layer_end

    def _score(self, trial: ScheduleTrial | None) -> float:
        limit = self.options.build.max_scratch
        if trial is None or not trial.exact or trial.version != VERSION:
            return float("inf")
        if limit is not None and trial.scratch_bytes > limit:
            return float("inf")
        return trial.score(self.options.build, self.options.cost)
