"""Measure programs: cycles on a device that counts them, and traces that any model can time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from covp.chip.platform_file import Platform
from covp.device.base import LowLevelDevice
from covp.device.stop import Source, Stop
from covp.device.timing.trace import Trace
from covp.device.virtual import VirtualDevice
from covp.errors import DeviceError, DeviceFault, UsageError
from covp.evaluation.calibration.image import Entries, Image, link
from covp.evaluation.calibration.programs import LoopProgram

Report = Callable[[str], None]


@dataclass(frozen=True)
class Measured:
    """A program, what ran of it, and the cycles that it took.

    Attributes:
        program: a loop.
        few, many: traces of an entry with few rounds, and of one with many.
        cycles: of many rounds without those of few.
    """

    program: LoopProgram
    few: Trace
    many: Trace
    cycles: int


@dataclass(frozen=True)
class MeasuredPrograms:
    """Measured programs of a device.

    Attributes:
        programs: those that ran.
        rejected: names of those with an instruction that the device's core does not have.
        source: of the cycles.
    """

    programs: tuple[Measured, ...]
    rejected: tuple[str, ...]
    source: Source


def measure(
    platform: Platform,
    device: LowLevelDevice,
    programs: Sequence[LoopProgram],
    report: Report = lambda text: None,
) -> MeasuredPrograms:
    """Run programs on a device and, for their traces, on the virtual one.

    Args:
        platform: of both.
        device: measures cycles.
        programs: any.
        report: is called with a line for each program.

    Raises:
        UsageError: the device does not measure cycles.
        DeviceError: the way to it failed, or a program did.
    """
    image = link(platform, programs)
    image.load(device)
    first = image.entries[0]
    source = _source(platform, device.execute(first.short, first.end))
    found, rejected = [], []
    for program, entries in zip(programs, image.entries, strict=True):
        report(program.name)
        try:
            cycles = _cycles(platform, device, entries, program.name)
        except DeviceFault as fault:
            if fault.kind != "illegal instruction" or program.is_random:
                raise
            rejected.append(program.name)
            continue
        found.append(Measured(program, *record(platform, image, entries), cycles))
    return MeasuredPrograms(tuple(found), tuple(dict.fromkeys(rejected)), source)


def _source(platform: Platform, stop: Stop) -> Source:
    """Return the source of the cycles. Raises an error where the device does not count them."""
    source = stop.sources.cycles
    if source is None or stop.cycles is None or source.kind == "estimated":
        raise no_counter(platform, "estimates cycles" if source else "has no cycle counter")
    return source


def no_counter(platform: Platform, why: str) -> UsageError:
    """Return the error of a device that measures nothing; `why` continues "this device"."""
    return UsageError(
        f"{platform.name}: this device {why}, so there is nothing to fit a timing model to; use "
        "--device rtl, or a board whose core counts cycles: Cortex-M3 and later, RISC-V with mcycle"
    )


def _cycles(platform: Platform, device: LowLevelDevice, entries: Entries, name: str) -> int:
    """Return the cycles of many rounds minus few, after a run that warms caches up."""
    device.execute(entries.short, entries.end)
    spent = [device.execute(entry, entries.end).cycles for entry in (entries.short, entries.long)]
    few, many = spent
    if few is None or many is None:
        raise no_counter(platform, "has no cycle counter")
    if many <= few:
        raise DeviceError(
            f"program {name}: {few:,} cycles of few rounds, {many:,} of many: the cycle counter "
            "does not count"
        )
    return many - few


def record(platform: Platform, image: Image, entries: Entries) -> tuple[Trace, Trace]:
    """Return traces of few rounds of a program, and of many.

    They are those of a device of its own, so that they hold nothing else.

    Args:
        platform: of the device.
        image: with the program.
        entries: of the program.
    """
    with VirtualDevice(platform) as device:
        device.core.counter.trace_edges()  # operands are recorded then
        image.load(device)
        device.execute(entries.short, entries.end)
        few = device.counts.trace()
        device.execute(entries.long, entries.end)
        return few, device.counts.trace().since(few)
