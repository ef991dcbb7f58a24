"""`Call`: a function call that waits on the host, runs on the device and keeps its result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from covp.codegen.program import ProgramLayer
from covp.errors import DeviceError
from covp.hardware.custom_instruction import InstructionUnit
from covp.hardware.job_unit import JobRecord
from covp.runtime.abi import decode_result
from covp.runtime.signature import Signature


class Call:
    """A queued call.

    Args:
        signature: of the function.
        task: function and arguments as the calling convention wants them: `struct covp_task`.
        arguments: kept alive until the call has run, as `arguments`.
        sync: runs the queue that the call is in.
    """

    def __init__(
        self,
        signature: Signature,
        task: bytes,
        arguments: Sequence[Any] = (),
        sync: Callable[[], object] = lambda: None,
    ) -> None:
        self.signature = signature
        self.task = task
        self.arguments: tuple[Any, ...] = tuple(arguments)
        self._sync = sync
        self._words: tuple[int, int] | None = None
        self._dropped = False

    def result(self) -> int | float | bool | None:
        """Run the queue and return the function's value (pointers as addresses, None for void).

        Raises:
            DeviceFault: this or an earlier queued call faulted.
            DeviceError: an earlier fault kept the call from running.
        """
        if self._words is None and not self._dropped:
            self._sync()
        if self._words is None:
            raise DeviceError(f"{self.signature.name} did not run: a call queued before it faulted")
        return decode_result(self.signature.result, *self._words)

    def finish(self, low: int, high: int) -> None:
        """Take the words of the result registers, ``low`` and ``high``, when the call has run."""
        self._words = (low, high)
        self.arguments = ()

    def drop(self) -> None:
        """Mark a call that will not run any more; no effect on one that has run."""
        self._dropped = self._words is None
        self.arguments = ()

    def __repr__(self) -> str:
        state = "done" if self._words else "dropped" if self._dropped else "queued"
        return f"<Call {self.signature.name} {state}>"


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
