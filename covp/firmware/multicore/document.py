"""The JSON document ``covp.multicore/1``."""

from __future__ import annotations

from typing import Annotated

import msgspec

from covp.base.document import Count, Cycles, Instructions, Seconds, unit
from covp.device.stop import Source
from covp.evaluation.documents import Fetched


class LayerCost(msgspec.Struct, frozen=True, kw_only=True):
    """The cost of a layer.

    Attributes:
        target: `cpu`, or the accelerator
        instructions: over all inferences
        cycles: likewise
    """

    index: int
    name: str
    op: str
    target: str
    instructions: Instructions
    cycles: Cycles


class FunctionCost(msgspec.Struct, frozen=True, kw_only=True):
    """The cost of a function.

    Attributes:
        name: empty: outside of functions, or asleep
        instructions: without those that it calls
        cycles: all of them add up to the core's `cycles`
    """

    name: str
    instructions: Instructions
    cycles: Cycles


class CoreRunRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of a core.

    Attributes:
        name: of the core
        core: instruction set and microarchitecture
        instructions: exact
        cycles: of its own clock, asleep or not, until it had finished or the run was over
        cycles_source: as in `covp.run/1`
        busy_cycles: `cycles` without `asleep_cycles`
        asleep_cycles: waiting for an interrupt or a peripheral
        halted_cycles: from its end to that of the run; not in `cycles`
        finished: it has come to the end of its firmware
        status: what `main` returned
        cycles_by_cause: all of them add up to `cycles`
        layers: of the model in its firmware
        functions: the most expensive first
    """

    name: str
    core: str
    clock_hz: Annotated[Count, unit("Hz")]
    instructions: Instructions
    cycles: Cycles
    cycles_source: Source | None
    busy_cycles: Cycles
    asleep_cycles: Cycles
    halted_cycles: Cycles
    finished: bool
    status: int | None
    cycles_by_cause: dict[str, Cycles]
    layers: list[LayerCost]
    functions: list[FunctionCost]


class Multicore(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="schema", tag="covp.multicore/1"
):
    """The output of ``covp multicore --json``.

    Attributes:
        platform: the platform's name
        seconds: from reset to the end of the run, by the platform's clock
        cores: in the platform's order
        bytes_by_master: by core, DMA controller and accelerator, then by memory; for masters that
            are no cores by peripheral too; None: not counted
    """

    platform: str
    seconds: Seconds
    cores: list[CoreRunRecord]
    bytes_by_master: dict[str, dict[str, Fetched]] | None
