"""`build`: a model compiled for a platform, with where it comes from and what it needs."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Unpack

from covp.accelerator.backend import AcceleratorBackend
from covp.accelerator.registry import find_backends
from covp.base.debug import follow_environment
from covp.base.request import DEFAULT_BUILD, BuildChanges, BuildOptions, change_options
from covp.building.core_costs import simulated_cycles
from covp.building.overlap import Overlap, plan_overlap
from covp.building.patches import count_of, describe_patches, plan_patches
from covp.building.platform_costs import measure_recorded
from covp.building.ram_weights import IN_QUESTION, fast_flash, plan_ram_weights
from covp.building.schedules import (
    UNTUNED,
    RecordedSchedules,
    Schedules,
    ScheduleSource,
    recorded_schedules,
    schedules_of,
)
from covp.building.tune.records import ScheduleTrial
from covp.chip.platform_file import Platform, load_platform
from covp.codegen.generate import ScheduleChoice, generate
from covp.codegen.lifetimes import arena_tensors
from covp.codegen.program import Program
from covp.codegen.schedule import Schedule
from covp.errors import AcceleratorError, UsageError, near_misses
from covp.graph.graph import Graph, Op
from covp.graph.models import as_graph
from covp.graph.passes import run_passes
from covp.graph.passes.patches import Patches, patch
from covp.runtime.profile import MemoryUse
from covp.runtime.session import Session

_placement = logging.getLogger("covp.placement")
_memory = logging.getLogger("covp.memory")
_code = logging.getLogger("covp.code")


def log_build(program: Program) -> None:
    """Log where layers run and what lies in the arena at INFO, the C at DEBUG.

    Nothing is made that no handler wants.
    """
    name = program.name
    if _placement.isEnabledFor(logging.INFO):
        for layer in program.layers:
            how = f", {layer.schedule}" * bool(layer.schedule)
            _placement.info(
                "%s: layer %d %s %s: on %s%s",
                *(name, layer.index, layer.op, layer.name, layer.target, how),
            )
    if _memory.isEnabledFor(logging.INFO):
        numbers = [layer.index for layer in program.layers] or [0]
        for one in arena_tensors(program):
            _memory.info(
                "%s: %s %s: bytes %d to %d, layers %d to %d",
                *(name, one.kind, one.name, one.offset, one.end),
                *(numbers[one.first], numbers[one.last]),
            )
    if _code.isEnabledFor(logging.DEBUG):
        for file, text in program.sources.items():
            _code.debug("/* %s */\n%s", file, text)


Pass = Callable[[Graph], Graph]


@dataclass(frozen=True, eq=False)
class _RecordedSchedules:
    """Recorded schedules of a build and their use in it.

    Attributes:
        schedules: the records.
        used: the operators that got one, with the record it comes from.
        again: builds the same with what the records say then.
    """

    schedules: RecordedSchedules
    used: tuple[tuple[Op, ScheduleTrial], ...]
    again: Callable[[], Build]


@dataclass(frozen=True, eq=False)
class Build:
    """A compiled program and how it came about. Builds pickle.

    Attributes:
        program: what was compiled.
        accelerators: as they were requested.
        options: how it was compiled.
        schedules: where the layers' schedules come from.
        notes: what the user should know of the schedules, one line each.
        recorded: None without recorded schedules, and in a copy from a pickle.
        overlap: which schedules of core and units were considered; None where none were.
    """

    program: Program
    accelerators: tuple[str, ...]
    options: BuildOptions = DEFAULT_BUILD
    schedules: ScheduleSource = UNTUNED
    notes: tuple[str, ...] = ()
    recorded: _RecordedSchedules | None = None
    overlap: Overlap | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "recorded": None}

    @property
    def graph(self) -> Graph:
        """The model as it was read."""
        return self.program.graph

    @property
    def platform(self) -> Platform:
        """Platform that the program is compiled for."""
        return self.program.platform

    @property
    def toolchain(self) -> str:
        """The compiler of its C."""
        return self.options.toolchain

    @property
    def model(self) -> str:
        """The zoo name, or the file's stem as a C identifier."""
        return self.graph.name

    @property
    def source(self) -> str:
        """Origin of the model, see `Graph.source`."""
        return self.graph.source

    @property
    def planned_coverage(self) -> float:
        """The share of the model's MACs in layers that are for accelerators, 0 to 1.

        What accelerators did of it is `Evaluation.mac_coverage`.
        """
        total = sum(layer.macs for layer in self.program.layers)
        offloaded = sum(layer.macs for layer in self.program.layers if layer.target != "cpu")
        return offloaded / total if total else 0.0

    def memory(self, device: str = "virtual") -> MemoryUse:
        """Return the memory that the linked program takes, found without running it.

        Args:
            device: where it is loaded to, as for `Session`.

        Raises:
            ToolchainError: its C does not compile or link.
            CapacityError: it does not fit the platform.
        """
        with Session(self.platform, device=device, toolchain=self.toolchain) as session:
            session.load(self.program)
            return session.memory()


@dataclass(frozen=True)
class _Noted:
    """Recorded schedules; each that is taken is noted in ``used``."""

    schedules: RecordedSchedules
    used: list[tuple[Op, ScheduleTrial]]

    def __call__(self, op: Op) -> Schedule | None:
        trial = self.schedules.trial(op)
        if trial is None:
            return None
        self.used.append((op, trial))
        return Schedule.parse(trial.schedule)


def compile(
    model: Graph | str | Path,
    platform: Platform | str | Path,
    accelerators: Sequence[str | AcceleratorBackend] = (),
    options: BuildOptions = DEFAULT_BUILD,
    *,
    schedules: Schedules = "recorded",
    passes: Sequence[Pass] = (),
    **changes: Unpack[BuildChanges],
) -> Program:
    """Compile a model ahead of time for a platform, as the command line does.

    Args:
        model: a graph, a zoo name or the path of a model file.
        platform: a platform, its name or the path of its YAML file.
        accelerators: names ("qconv2d", "qconv2d:requantize=false", "small=gemm:size=8",
            "file.py:Class") or backends, see `covp.accelerator.registry.find_backends`. Layers go
            where they need the fewest cycles by the estimates, see
            `covp.accelerator.partition.partition`.
        options: how it is compiled.
        schedules: of the layers on the core. "recorded": the best of the tuner's records, those
            that come with covp and those of this machine, by the options; see
            `covp.evaluation.recorded_schedules`. None: the kernels' own choice. A function: gives
            the schedule of an operator, or None for the kernel's own choice.
        passes: graph passes of one's own, in their order, after covp's and before accelerators are
            considered. Each takes a graph, which it may change, and returns the graph to go on
            with, as often as programs are weighed. The reference stays that of the model as it was
            read.
        changes: other values of the options, such as ``overlap=True`` or
            ``shapes={"image": (1, 3, 32, 32)}``.

    Raises:
        ModelError, PlatformError, UsageError, AcceleratorError: with one line each.
    """
    options = change_options(options, changes)
    return build(model, platform, accelerators, options, schedules=schedules, passes=passes).program


def build(
    model: Graph | str | Path,
    platform: Platform | str | Path,
    accelerators: Sequence[str | AcceleratorBackend] = (),
    options: BuildOptions = DEFAULT_BUILD,
    *,
    schedules: Schedules = "recorded",
    passes: Sequence[Pass] = (),
    name: str = "",
    **changes: Unpack[BuildChanges],
) -> Build:
    """Compile a model.

    Args:
        model, platform, accelerators, options, schedules, passes, changes: as for `covp.compile`.
        name: what names in C begin with; empty: the model's.

    Raises:
        AcceleratorError: a layer of ``require_offload`` runs on the core.
        ModelError, PlatformError, UsageError: with one line each.
    """
    follow_environment()
    options = change_options(options, changes)
    platform = load_platform(platform)
    find_backends(accelerators)  # before the model: their files may register its operators
    graph, read = as_graph(model, options), options.for_graph()
    if schedules == "recorded":
        schedules = schedules_of(platform, options)
    if isinstance(schedules, RecordedSchedules):
        schedules = measure_recorded(
            schedules,
            run_passes(graph, passes),
            partial(generate, graph, schedules.platform, options=read.core_alone(), passes=passes),
        )
    used: list[tuple[Op, ScheduleTrial]] = []
    choice = _Noted(schedules, used) if isinstance(schedules, RecordedSchedules) else schedules
    make = partial(
        generate,
        platform=platform,
        accelerators=accelerators,
        schedules=choice,
        passes=passes,
        name=name,
        measure=partial(simulated_cycles, toolchain=options.toolchain),
    )
    program, considered = make(graph, options=read), None
    if options.overlap and not accelerators:
        raise UsageError(
            "overlap needs an accelerator: name one with --accel, or leave out --overlap"
        )
    if options.overlap and any(layer.target != "cpu" for layer in program.layers):
        graph = program.graph
        plan, considered = plan_overlap(
            lambda plan: make(graph, options=read, plan=plan), options.toolchain
        )
        if plan is not None:
            program = make(graph, options=read, plan=plan)
    if options.patches:
        program = _in_patches(program, make, accelerators, options, passes)
    if options.ram_weights:
        program = _in_ram(program, make, choice, options, passes)
    for kind in options.require_offload:
        _demand_offload(program, kind)
    names = tuple(a if isinstance(a, str) else a.spec for a in accelerators)
    # kernels were also chosen to be measured, or in programs of other overlaps
    last = {op.name: (op, trial) for op, trial in used}
    on_core = [
        name for layer in program.layers if layer.target == "cpu" for name in layer.operators
    ]
    used = [last[name] for name in on_core if name in last]
    recorded = None
    if isinstance(schedules, RecordedSchedules):
        again = partial(
            build, program.graph, platform, accelerators, read, schedules=schedules, passes=passes
        )
        recorded = _RecordedSchedules(schedules, tuple(used), again)
    log_build(program)
    return Build(program, names, options, ScheduleSource.of(used), (), recorded, considered)


def _in_ram(
    plain: Program,
    make: Callable[..., Program],
    choice: ScheduleChoice | None,
    options: BuildOptions,
    passes: Sequence[Pass],
) -> Program:
    """Return the program with constants in RAM, where that is faster; its last warning says so."""
    read, graph = options.for_graph(), plain.graph
    fast = fast_flash(plain.platform)
    best: RecordedSchedules | None = None
    # what runs at once with a unit, or strip by strip, was planned with its schedules
    if isinstance(choice, _Noted) and not (options.overlap or options.patches):
        best = measure_recorded(
            recorded_schedules(fast, options),
            run_passes(graph, passes),
            partial(generate, graph, fast, options=read.core_alone(), passes=passes),
            IN_QUESTION,
        )

    def make_in(names: Collection[str] | None) -> Program:
        if best is None or not isinstance(choice, _Noted) or names == set():
            return plain
        flash, ram = _Noted(choice.schedules, []), _Noted(best, [])

        def choose(op: Op) -> Schedule | None:
            return (ram if names is None or op.name in names else flash)(op)

        program = make(graph, options=read, schedules=choose)
        noted[program] = [*flash.used, *ram.used]
        return program

    noted: dict[Program, list[tuple[Op, ScheduleTrial]]] = {}
    found = plan_ram_weights(plain, options.ram_weights, options.toolchain, make_in)
    if isinstance(choice, _Noted):
        choice.used.extend(noted.get(found.made, ()))
    return replace(found.program, warnings=(*found.program.warnings, found.note))


def _in_patches(
    plain: Program,
    make: Callable[..., Program],
    accelerators: Sequence[str | AcceleratorBackend],
    options: BuildOptions,
    passes: Sequence[Pass],
) -> Program:
    """Return the program in strips, or the plain one; its last warning says which."""
    if accelerators:
        raise UsageError("patches are of the core alone: leave out --accel, or --patches")
    count, read, graph = count_of(options.patches), options.for_graph(), plain.graph
    lowered = run_passes(graph, passes)

    def make_in(patches: Patches) -> Program:
        return make(graph, options=read, passes=[*passes, partial(patch, patches=patches)])

    found = plan_patches(plain, lowered, count, make_in)
    note = describe_patches(plain, lowered, found)
    program = plain if found is None else found.program
    return replace(program, warnings=(*program.warnings, note))


def _demand_offload(program: Program, kind: str) -> None:
    """Raise AcceleratorError if a layer of this kind is left to the core."""
    stated = {op.index: op.kind for op in program.graph.ops}
    if kind not in stated.values():
        raise UsageError(
            f"offload of {kind} is required: {program.graph.name} has no such operator",
            hint=near_misses(kind, set(stated.values())),
        )
    for layer in program.layers:
        if layer.target == "cpu" and kind in (layer.op, stated.get(layer.index)):
            reasons = [r for r in program.refusals if r.layer == layer.name]
            why = "; ".join(f"{r.accelerator}: {r.reason}" for r in reasons)
            raise AcceleratorError(
                f"{layer.name} ({kind}) runs on the core: {why or 'no accelerator was named'}"
            )
