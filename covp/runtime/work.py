"""`Work`: what an accelerator reports that it did of a layer, beside what the layer needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from covp.codegen.program import ProgramLayer
from covp.hardware.custom_instruction import InstructionUnit
from covp.hardware.job_unit import JobRecord


@dataclass(frozen=True)
class Work:
    """The work that an accelerator did for one layer.

    Attributes:
        jobs: that were over; None of units in the core.
        macs: multiply-accumulates; None where the unit does not say.
        bytes_read, bytes_written: moved by its jobs; None of units in the core.
        share: of the layer: of its multiply-accumulates, more than 1 where the unit reports more
            than the layer has; or of the bytes of its output, up to 1, where the layer or the unit
            counts none. Of a unit in the core up to 1: lanes of its instructions may be padding.
    """

    jobs: int | None
    macs: int | None
    bytes_read: int | None
    bytes_written: int | None
    share: float


def of_jobs(layer: ProgramLayer, jobs: Sequence[JobRecord]) -> Work:
    """Return the work of a unit on the bus.

    Args:
        layer: on that unit.
        jobs: of the unit, started in the layer.
    """
    counted = [job.macs for job in jobs if job.macs is not None]
    macs = sum(counted) if len(counted) == len(jobs) and counted else None
    stored = sum(job.stored for job in jobs)
    return Work(
        jobs=len(jobs),
        macs=macs,
        bytes_read=sum(job.traffic.read for job in jobs),
        bytes_written=sum(job.traffic.written for job in jobs),
        share=_share(layer, macs, stored),
    )


def _share(layer: ProgramLayer, macs: int | None, stored: int) -> float:
    if layer.work and macs is not None:
        return macs / layer.work
    needed = sum(tensor.nbytes for tensor in layer.outputs)
    return min(1.0, stored / needed) if needed else float(stored > 0)


def of_instructions(
    layers: Sequence[ProgramLayer], unit: InstructionUnit, uses: Mapping[str, int]
) -> Work:
    """Return the work of a unit in the core, over all of its layers: it has no jobs.

    Args:
        layers: on that unit.
        unit: whose instructions they use.
        uses: how often each instruction was executed.
    """
    if not any(instruction.macs for instruction in unit.instructions):
        return Work(None, None, None, None, float(any(uses.values())))
    macs = sum(instruction.macs * uses[instruction.name] for instruction in unit.instructions)
    work = sum(layer.work for layer in layers)
    return Work(None, macs, None, None, min(1.0, macs / work) if work else float(macs > 0))
