"""`CoresRun`: what a run of several cores cost, by core and function, and the bus between them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from covp.codegen.program import ProgramLayer
from covp.device.phase_count import Causes, FunctionCount, Traffic
from covp.device.stop import Sources
from covp.evaluation.documents import moved_by_master
from covp.firmware.multicore.document import CoreRunRecord, FunctionCost, LayerCost, Multicore

_MOST = 8
"""Functions of a core that the text has one by one."""


@dataclass(frozen=True)
class LayerRun:
    """Costs of a layer.

    Attributes:
        layer: of the program.
        instructions, cycles: with all that it calls, over all inferences of a run.
    """

    layer: ProgramLayer
    instructions: int
    cycles: int


@dataclass(frozen=True)
class CoreRun:
    """Figures of one core.

    Attributes:
        name, core: of the core, and what it is.
        clock_hz: its clock.
        instructions: retired: exact.
        cycles: of its own clock, until it had finished or the run was over: estimated.
        asleep: the part in which it waited for an interrupt or a peripheral.
        halted: cycles of its own clock from its end to that of the run.
        finished: it has come to the end of its firmware.
        status: what main returned; None where it did not.
        causes: all cycles by what they passed with.
        functions: those that spent something, the most expensive first.
        layers: of the model in its firmware, with all that they call, over all inferences; handlers
            that interrupted one are in it. Empty where there is no model.
        sources: where instructions and cycles come from.
    """

    name: str
    core: str
    clock_hz: int
    instructions: int
    cycles: int
    asleep: int
    halted: int
    finished: bool
    status: int | None
    causes: Causes
    functions: tuple[FunctionCount, ...]
    layers: tuple[LayerRun, ...]
    sources: Sources

    @property
    def busy(self) -> int:
        """Cycles in which it was not asleep."""
        return self.cycles - self.asleep

    def record(self) -> CoreRunRecord:
        """Return the same for JSON."""
        return CoreRunRecord(
            name=self.name,
            core=self.core,
            clock_hz=self.clock_hz,
            instructions=self.instructions,
            cycles=self.cycles,
            cycles_source=self.sources.cycles,
            busy_cycles=self.busy,
            asleep_cycles=self.asleep,
            halted_cycles=self.halted,
            finished=self.finished,
            status=self.status,
            cycles_by_cause=dict(self.causes),
            layers=[
                LayerCost(
                    index=one.layer.index,
                    name=one.layer.name,
                    op=one.layer.op,
                    target=one.layer.target,
                    instructions=one.instructions,
                    cycles=one.cycles,
                )
                for one in self.layers
            ],
            functions=[
                FunctionCost(name=one.name, instructions=one.instructions, cycles=one.cycles)
                for one in self.functions
            ],
        )


@dataclass(frozen=True)
class CoresRun:
    """A run of all cores of a platform.

    Attributes:
        platform: its name.
        seconds: from reset to the end, by the platform's clock.
        cores: in the platform's order.
        traffic: bytes by bus master (cores by name, DMA controllers and accelerators) and by memory
            or peripheral; None where they were not counted. Registers that cores access are not in
            it.
    """

    platform: str
    seconds: float
    cores: tuple[CoreRun, ...]
    traffic: Traffic | None

    def __getitem__(self, core: str) -> CoreRun:
        """Return the part of a core. Raises KeyError."""
        return {one.name: one for one in self.cores}[core]

    def __str__(self) -> str:
        parts = [_align(self._core_rows(), 2)]
        for core in self.cores:
            parts += [_align(_layer_rows(core), 2)] if core.layers else []
            parts += [_align(_function_rows(core), 2)] if core.functions else []
        if self.traffic is not None:
            parts.append(_align(list(_traffic_rows(self.traffic)), 2))
        return "\n\n".join([f"{self.platform}: {self.seconds * 1e3:,.3f} ms", *parts])

    def _core_rows(self) -> list[tuple[str, ...]]:
        rows: list[tuple[str, ...]] = [
            ("core", "", "MHz", "instructions", "cycles", "busy", "asleep", "main() returned")
        ]
        for one in self.cores:
            numbers = (one.instructions, one.cycles, one.busy, one.asleep)
            end = "-" if one.status is None else str(one.status)
            mhz = f"{one.clock_hz / 1e6:g}"
            rows.append((one.name, one.core, mhz, *(f"{n:,}" for n in numbers), end))
        return rows

    def document(self) -> Multicore:
        """Return the JSON document."""
        return Multicore(
            platform=self.platform,
            seconds=self.seconds,
            cores=[core.record() for core in self.cores],
            bytes_by_master=moved_by_master(self.traffic),
        )


def _layer_rows(core: CoreRun) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [(core.name, "layer", "on", "instructions", "cycles")]
    for one in core.layers:
        what = f"{one.layer.index} {one.layer.op}"
        rows.append(("", what, one.layer.target, f"{one.instructions:,}", f"{one.cycles:,}"))
    return rows


def _function_rows(core: CoreRun) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [(core.name, "function", "instructions", "cycles", "asleep")]
    for one in core.functions[:_MOST]:
        numbers = (one.instructions, one.cycles, one.causes.get("waited", 0))
        rows.append(("", _function_name(one), *(f"{number:,}" for number in numbers)))
    rest = core.functions[_MOST:]
    if rest:
        numbers = (
            sum(one.instructions for one in rest),
            sum(one.cycles for one in rest),
            sum(one.causes.get("waited", 0) for one in rest),
        )
        rows.append(("", f"{len(rest)} more", *(f"{number:,}" for number in numbers)))
    return rows


def _function_name(one: FunctionCount) -> str:
    if one.name:
        return one.name
    return "(asleep)" if one.cycles == one.causes.get("waited", 0) else "(none)"


def _traffic_rows(traffic: Traffic) -> Iterator[tuple[str, ...]]:
    yield "by", "bytes of", "read", "written", "fetched"
    for master, places in traffic.items():
        for place, moved in places.items():
            numbers = (moved.read, moved.written, moved.fetched)
            if any(numbers):
                yield master, place, *(f"{number:,}" for number in numbers)


def _align(rows: Sequence[tuple[str, ...]], left: int) -> str:
    """Return rows as a table; the first ``left`` columns are text."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if number < left else cell.rjust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )
