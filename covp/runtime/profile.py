"""`Profile`: what one inference cost, by layer; `MemoryUse`: what it takes of the memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, TypeVar

from covp.base.table_text import html_table
from covp.codegen.program import ProgramLayer
from covp.device.phase_count import Causes, FunctionCount, Traffic, add_causes, add_traffic
from covp.device.stop import NO_FIGURES, Sources, Stop
from covp.hardware.job_unit import JobRecord
from covp.runtime.call import Work
from covp.runtime.transfers import Transfers


@dataclass(frozen=True)
class Cost:
    """The cost of something; None where the device cannot give it.

    Attributes:
        instructions: retired.
        cycles: of the core, estimated on the virtual device, else by the core's own counter.
        seconds: of run time, measured.
        sources: where these figures come from.
        causes: all of ``cycles`` by cause; None where the device cannot tell.
        functions: the same by function, where it was requested.
        traffic: bytes moved, where they were requested.
    """

    instructions: int | None
    cycles: int | None
    seconds: float | None = None
    sources: Sources = NO_FIGURES
    causes: Causes | None = None
    functions: tuple[FunctionCount, ...] = ()
    traffic: Traffic | None = None

    @staticmethod
    def of(stops: Sequence[Stop]) -> Cost:
        """Add up the costs of several executions."""
        return Cost(
            _sum(stop.instructions for stop in stops),
            _sum(stop.cycles for stop in stops),
            _sum(stop.seconds for stop in stops),
            stops[0].sources if stops else NO_FIGURES,
        )


_Number = TypeVar("_Number", int, float)


def _sum(values: Iterable[_Number | None]) -> _Number | None:
    """Add up the values; None if one of them is not known."""
    known = list(values)
    return None if None in known else sum(value for value in known if value is not None)


@dataclass(frozen=True)
class Offload:
    """The split of the cycles of a layer on an accelerator, estimated by the models involved.

    ``setup``, the jobs' time and ``rest`` add up to the layer's cycles where the core stays in the
    layer until it is over. Of the jobs' time the core is stalled for ``waiting``; in what is left
    it does something else.

    Attributes:
        jobs: how many the unit was given.
        setup: core cycles before the jobs: the driver writes registers.
        startup, compute, memory: of the unit, summed over the jobs; the last two overlap.
        waiting: cycles in which the core is stalled.
        rest: core cycles after the last job: the part that stays on the core.
        gaps: of the unit, in which computing and memory wait for one another.
    """

    jobs: int
    setup: int
    startup: int
    compute: int
    memory: int
    waiting: int
    rest: int
    gaps: int = 0

    @property
    def busy(self) -> int:
        """Cycles of the unit in its jobs, each as if it were alone."""
        return self.startup + max(self.compute, self.memory) + self.gaps

    @staticmethod
    def of(records: Sequence[JobRecord], cycles: int) -> Offload:
        """Split ``cycles`` of a layer by the ``records`` of the jobs started in it, in order."""
        starts = [record.start for record in records]
        ends = [0, *(record.end for record in records)]
        return Offload(
            jobs=len(records),
            setup=sum(max(0, start - end) for start, end in zip(starts, ends, strict=False)),
            startup=sum(record.timing.startup for record in records),
            compute=sum(record.timing.compute for record in records),
            memory=sum(record.timing.memory for record in records),
            waiting=sum(record.waited for record in records),
            rest=max(0, cycles - ends[-1]),
            gaps=sum(record.timing.gaps for record in records),
        )


@dataclass(frozen=True)
class LayerProfile:
    """The cost of one layer, with all that it calls.

    ``offload`` splits the cycles of a layer on an accelerator that keeps a record of its jobs,
    ``work`` is what an accelerator reports that it did; None on the core. ``causes`` are all of
    ``cycles`` by cause, None where the device cannot tell; ``functions`` the same by function
    and ``traffic`` the bytes moved, where they were requested.
    What describes the layer is in ``layer``, and here too: ``entry.name`` is ``entry.layer.name``.
    """

    layer: ProgramLayer
    instructions: int | None
    cycles: int | None
    offload: Offload | None = None
    work: Work | None = None
    causes: Causes | None = None
    functions: tuple[FunctionCount, ...] = ()
    traffic: Traffic | None = None

    @property
    def offloaded_macs(self) -> float:
        """Multiply-accumulates of the layer that an accelerator did."""
        return self.layer.macs * self.work.share if self.work else 0.0

    @property
    def index(self) -> int:
        """The operator's position in the model file."""
        return self.layer.index

    @property
    def name(self) -> str:
        """The operator's name in the graph."""
        return self.layer.name

    @property
    def op(self) -> str:
        """The operator's kind, e.g. "CONV_2D"."""
        return self.layer.op

    @property
    def target(self) -> str:
        """ "cpu", or the name of an accelerator."""
        return self.layer.target

    @property
    def macs(self) -> int:
        """Multiply-accumulates of the layer as the model states it."""
        return self.layer.macs

    @property
    def schedule(self) -> str:
        """The choice the kernel made, short."""
        return self.layer.schedule


@dataclass(frozen=True)
class Profile:
    """One inference, from the first instruction of the program's run function to its return.

    Attributes:
        program: name of the program.
        instructions: retired in all; None on devices that do not count.
        cycles: core cycles in all, an estimate on the virtual device; None without a timing model.
        clock_hz: of the core.
        layers: in the order they run; empty on devices that do not measure them.
        between: what the run function itself did. ``layers`` and ``between`` add up to the total.
        jobs: how many jobs (of tightly coupled units: instructions) each accelerator received, by
            name of the instance; those whose model keeps no record are left out.
        busy: cycles of each accelerator in its jobs, by name; of those that keep a record of them.
        transfers: round trips to the device, inputs and outputs included.
        measured: run time in seconds that the device measured itself; None where it cannot.
        sources: where instructions, cycles and measured seconds come from.
    """

    program: str
    instructions: int | None
    cycles: int | None
    clock_hz: int
    layers: tuple[LayerProfile, ...] = ()
    between: Cost = Cost(None, None)
    jobs: Mapping[str, int] = field(default_factory=dict)
    busy: Mapping[str, int] = field(default_factory=dict)
    transfers: Transfers = field(default_factory=Transfers)
    measured: float | None = None
    sources: Sources = NO_FIGURES

    @property
    def causes(self) -> Causes | None:
        """All of the cycles by cause; None where the device cannot tell."""
        if not self.layers:
            return None
        return add_causes([*(entry.causes for entry in self.layers), self.between.causes])

    @property
    def traffic(self) -> Traffic | None:
        """All bytes moved, where they were requested."""
        if not self.layers:
            return None
        return add_traffic([*(entry.traffic for entry in self.layers), self.between.traffic])

    @property
    def seconds(self) -> float | None:
        """Run time: measured, else the cycles at the platform's clock; None where not known."""
        if self.measured is not None:
            return self.measured
        return None if self.cycles is None else self.cycles / self.clock_hz

    def records(self) -> list[dict[str, Any]]:
        """Return one flat dict per layer, as for ``pandas.DataFrame``.

        The keys are those of `ProgramLayer` that describe the layer, ``instructions``, ``cycles``,
        those of `Offload` with the prefix ``offload_`` (None for layers on the core) and the causes
        of cycles with the prefix ``cycles_``, where the device knows them.
        """
        return [_record(entry) for entry in self.layers]

    def _table(self) -> list[tuple[str, ...]]:
        """Return the titles, a row per layer, what lies between them, the total."""
        rows: list[tuple[str, ...]] = [("layer", "op", "on", "instructions", "cycles")]
        for entry in self.layers:
            layer = entry.layer
            name = f"{layer.index} {layer.name}"
            rows.append((name, layer.op, layer.target, *_cells(entry.instructions, entry.cycles)))
        if self.layers:
            rows.append(
                ("between", "", "", *_cells(self.between.instructions, self.between.cycles))
            )
        return [*rows, (self.program, "", "", *_cells(self.instructions, self.cycles))]

    def __str__(self) -> str:
        rows = self._table()
        widths = [max(len(row[column]) for row in rows) for column in range(5)]
        return "\n".join(
            "  ".join(
                cell.ljust(width) if column < 3 else cell.rjust(width)
                for column, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in rows
        )

    def _repr_html_(self) -> str:
        head, *rows = self._table()
        if self.sources.cycles is not None:
            head = (*head[:-1], f"cycles ({self.sources.cycles.kind})")
        return html_table(head, rows, text_columns=3)


def _record(entry: LayerProfile) -> dict[str, Any]:
    layer = entry.layer
    parts = asdict(entry.offload) if entry.offload else dict.fromkeys(_OFFLOAD)
    return {
        "index": layer.index,
        "name": layer.name,
        "op": layer.op,
        "target": layer.target,
        "macs": layer.macs,
        "schedule": layer.schedule,
        "instructions": entry.instructions,
        "cycles": entry.cycles,
        **{f"offload_{name}": value for name, value in parts.items()},
        **{f"cycles_{cause}": cycles for cause, cycles in (entry.causes or {}).items()},
    }


_OFFLOAD = tuple(f.name for f in fields(Offload))


def _cells(*values: int | None) -> list[str]:
    return ["-" if value is None else f"{value:,}" for value in values]


@dataclass(frozen=True)
class MemoryUse:
    """Bytes that a session's code and data take.

    Attributes:
        flash_bytes: machine code, constants and the initial values of variables, of the runtime
            and everything that is loaded.
        ram_bytes: the variables of all of them (``arena_bytes`` among these) and the stack.
        arena_bytes: activations and scratch of the loaded programs.
        stack_bytes: kept for the stack.
        tensor_bytes: held by `Session.tensor`; not part of ``ram_bytes``.
        state_bytes: what the programs keep between inferences; part of ``arena_bytes``.
    """

    flash_bytes: int
    ram_bytes: int
    arena_bytes: int
    stack_bytes: int
    tensor_bytes: int
    state_bytes: int = 0

    def _repr_html_(self) -> str:
        rows = [(name.removesuffix("_bytes"), f"{size:,}") for name, size in asdict(self).items()]
        return html_table(("memory", "bytes"), rows)
