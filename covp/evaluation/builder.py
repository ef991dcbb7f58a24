"""`build`: a model compiled for a platform, with where it comes from and what it needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from covp.accelerator.backend import AcceleratorBackend
from covp.chip.platform_file import Platform, load_platform
from covp.codegen.compile import compile as generate
from covp.codegen.overlap import OverlapPlan
from covp.codegen.program import Program
from covp.codegen.schedule import Schedule
from covp.errors import AcceleratorError, UsageError, near_misses
from covp.evaluation.overlap import Overlap, plan_overlap
from covp.evaluation.schedules import (
    UNTUNED,
    RecordedSchedules,
    Schedules,
    ScheduleSource,
    recorded_schedules,
)
from covp.evaluation.tune.records import Trial
from covp.graph.graph import Graph, Op
from covp.graph.readers import Shapes
from covp.runtime.profile import MemoryUse
from covp.runtime.session import Session

Pass = Callable[[Graph], Graph]


@dataclass(frozen=True, eq=False)
class Recorded:
    """How a build came by recorded schedules.

    Attributes:
        schedules: the records.
        used: the operators that got one, with the record it comes from.
        again: builds the same with what the records say then.
    """

    schedules: RecordedSchedules
    used: tuple[tuple[Op, Trial], ...]
    again: Callable[[], Build]


@dataclass(frozen=True, eq=False)
class Build:
    """A compiled program and how it came about. Builds pickle.

    Attributes:
        program: what was compiled.
        accelerators: as they were requested.
        toolchain: that compiles its C, "zig" or "gcc".
        schedules: where the layers' schedules come from.
        require_offload: operator kinds whose layers accelerators have to do wholly.
        notes: what the user should know of the schedules, one line each.
        recorded: None without recorded schedules, and in a copy from a pickle.
        overlap: which schedules of core and units were considered; None where none were.
    """

    program: Program
    accelerators: tuple[str, ...]
    toolchain: str
    schedules: ScheduleSource = UNTUNED
    require_offload: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    recorded: Recorded | None = None
    overlap: Overlap | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "recorded": None}

    @property
    def graph(self) -> Graph:
        """The model as it was read."""
        return self.program.graph

    @property
    def platform(self) -> Platform:
        """What the program is for."""
        return self.program.platform

    @property
    def model(self) -> str:
        """The zoo name, or the file's stem as a C identifier."""
        return self.graph.name

    @property
    def source(self) -> str:
        """Where the model comes from, see `Graph.source`."""
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
        """The memory that the linked program takes, found without running it.

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
    used: list[tuple[Op, Trial]]

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
    *,
    allow_unused: bool = False,
    allow_slower: bool = False,
    schedules: Schedules = "recorded",
    toolchain: str = "zig",
    passes: Sequence[Pass] = (),
    shapes: Shapes | None = None,
    states: Mapping[str, str] | None = None,
    streaming: bool | int = False,
    overlap: bool = False,
) -> Program:
    """Compile a model ahead of time for a platform, as the command line does.

    Args:
        model: a graph, a zoo name or the path of a model file.
        platform: a platform, its name or the path of its YAML file.
        accelerators: names ("qconv2d", "qconv2d:requantize=false", "small=gemm:size=8",
            "file.py:Class") or backends, see `covp.accelerator.registry.find_backends`. Layers go
            where they need the fewest cycles by the estimates, see
            `covp.accelerator.partition.partition`.
        allow_unused: whether an accelerator may end up without any layer; else that is an error.
        allow_slower: give accelerators also what the core does more than twice as fast.
        schedules: of the layers on the core. "recorded": the fastest of the tuner's records, those
            that come with covp and those of this machine, see
            `covp.evaluation.recorded_schedules` for other choices. None: the kernels' own choice.
            A function: gives the schedule of an operator, or None for the kernel's own choice.
        toolchain: "zig" or "gcc", whose records count first. It compiles nothing here: that is the
            session's.
        passes: graph passes of one's own, in their order, after covp's and before accelerators are
            considered. Each takes a graph, which it may change, and returns the graph to go on
            with. The reference stays that of the model as it was read.
        shapes: of inputs by name, for those that an ONNX file leaves open, e.g.
            ``{"image": (1, 3, 32, 32)}``.
        states: inputs with the output that each is in the next inference, by name, such as
            ``{"h0": "hn"}``; the program keeps them, see `GraphModule.reset`.
        streaming: for a network that runs on overlapping windows of a stream: new rows of each
            inference (True: 1). The program takes these alone and computes what is new.
        overlap: let the core go on with other layers, or other rows of them, while units work, in
            the order that takes the fewest cycles; programs run on the virtual device to find it.

    Raises:
        ModelError, PlatformError, UsageError, AcceleratorError: with one line each.
    """
    made = build(
        model,
        platform,
        accelerators,
        toolchain=toolchain,
        schedules=schedules,
        allow_unused=allow_unused,
        passes=passes,
        allow_slower=allow_slower,
        shapes=shapes,
        states=states,
        streaming=streaming,
        overlap=overlap,
    )
    return made.program


def build(
    model: Graph | str | Path,
    platform: Platform | str | Path,
    accelerators: Sequence[str | AcceleratorBackend] = (),
    *,
    toolchain: str = "zig",
    schedules: Schedules = "recorded",
    allow_unused: bool = False,
    allow_slower: bool = False,
    require_offload: Sequence[str] = (),
    passes: Sequence[Pass] = (),
    shapes: Shapes | None = None,
    states: Mapping[str, str] | None = None,
    streaming: bool | int = False,
    name: str = "",
    overlap: bool = False,
) -> Build:
    """Compile a model.

    Args:
        model, platform, accelerators, schedules, allow_unused, allow_slower, passes, shapes,
            states, streaming, overlap: as for `covp.compile`.
        name: what names in C begin with; empty: the model's.
        toolchain: "zig" or "gcc".
        require_offload: operator kinds, such as "CONV_2D", of which every layer has to be on an
            accelerator. That the accelerators do all of them is held when the program runs.

    Raises:
        AcceleratorError: a layer of ``require_offload`` runs on the core.
        ModelError, PlatformError, UsageError: with one line each.
    """
    platform = load_platform(platform)
    if schedules == "recorded":
        schedules = recorded_schedules(platform, toolchain)
    used: list[tuple[Op, Trial]] = []
    choice = _Noted(schedules, used) if isinstance(schedules, RecordedSchedules) else schedules
    make = partial(
        generate,
        platform=platform,
        accelerators=accelerators,
        allow_unused=allow_unused,
        allow_slower=allow_slower,
        schedules=choice,
        passes=passes,
        name=name,
    )
    program = make(model, shapes=shapes, states=states, streaming=streaming)
    considered = None
    if overlap and not accelerators:
        raise UsageError(
            "overlap is of the core and accelerators: name one with --accel, or leave out --overlap"
        )
    if overlap and any(layer.target != "cpu" for layer in program.layers):
        plan, considered = plan_overlap(partial(_planned, make, program.graph), toolchain)
        if plan is not None:
            used.clear()
            program = _planned(make, program.graph, plan)
    for kind in require_offload:
        _demand_offload(program, kind)
    names = tuple(a if isinstance(a, str) else a.spec for a in accelerators)
    source, kinds = ScheduleSource.of(used), tuple(require_offload)
    recorded = None
    if isinstance(schedules, RecordedSchedules):
        again = partial(
            build,
            program.graph,
            platform,
            accelerators,
            toolchain=toolchain,
            schedules=schedules,
            allow_unused=allow_unused,
            allow_slower=allow_slower,
            require_offload=require_offload,
            passes=passes,
            overlap=overlap,
        )
        recorded = Recorded(schedules, tuple(dict.fromkeys(used)), again)
    return Build(program, names, toolchain, source, kinds, (), recorded, considered)


def _planned(make: Callable[..., Program], graph: Graph, plan: OverlapPlan) -> Program:
    return make(graph, overlap=plan)


def _demand_offload(program: Program, kind: str) -> None:
    """Raises AcceleratorError: a layer of this kind is left to the core."""
    stated = {op.index: op.kind for op in program.graph.ops}
    if kind not in stated.values():
        raise UsageError(
            f"offload of {kind} is required: {program.graph.name} has no such operator; "
            f"{near_misses(kind, set(stated.values()))}"
        )
    for layer in program.layers:
        if layer.target == "cpu" and kind in (layer.op, stated.get(layer.index)):
            reasons = [r for r in program.refusals if r.layer == layer.name]
            why = "; ".join(f"{r.accelerator}: {r.reason}" for r in reasons)
            raise AcceleratorError(
                f"{layer.name} ({kind}) runs on the core: {why or 'no accelerator was named'}"
            )
