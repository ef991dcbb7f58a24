"""`run_firmware`: an ELF file on a virtual device, from reset to its end."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from covp.device.debug.program_file import ProgramFile, load_elf
from covp.device.virtual import VirtualDevice
from covp.errors import ProgramExit

_NOWHERE = 1 << 32  # no instruction lies there: a run without an end
_END, _STATUS = "covp_exit", "covp_exit_status"


@dataclass(frozen=True)
class FirmwareRun:
    """The end of a firmware's run.

    Attributes:
        status: of a semihosting exit, or what `main` returned to covp's start-up code.
        instructions: retired from reset to the end: exact.
        cycles: an estimate, waiting included.
    """

    status: int
    instructions: int
    cycles: int


def run_firmware(device: VirtualDevice, elf: Path, timeout: float | None = None) -> FirmwareRun:
    """Load a firmware, reset the device and run until it ends.

    It ends with a semihosting exit (see `Board.set_semihosting`), or at the symbol ``covp_exit``
    of covp's start-up code.

    Args:
        device: its peripherals take part.
        elf: a linked program for its platform.
        timeout: seconds of host time; None: the device's default.

    Raises:
        UsageError, DeviceError: see `load_elf`.
        DeviceFault: the program faulted, or its time was over.
    """
    program = load_elf(device, elf)
    entry, end = program.entry, _end(device, program)
    device.reset()
    if device.platform.core.architecture == "arm":  # sp and pc from the vectors, as a core does
        vectors = device.read(device.platform.flash.start, 8)
        device.write_register("sp", int.from_bytes(vectors[:4], "little"))
        entry = int.from_bytes(vectors[4:], "little") & ~1
    before = device.core.totals
    try:
        device.execute(entry, _NOWHERE if end is None else end[0], timeout)
        status = 0 if end is None else int.from_bytes(device.read(end[1], 4), "little", signed=True)
    except ProgramExit as end:
        status = end.status
    now = device.core.totals
    return FirmwareRun(status, now.instructions - before.instructions, now.cycles - before.cycles)


def _end(device: VirtualDevice, program: ProgramFile) -> tuple[int, int] | None:
    """Return the address where covp's start-up code ends, and its status's; None without it."""
    end, status = program.symbols.get(_END), program.symbols.get(_STATUS)
    if end is None or status is None or not device.bus.is_memory(status.address, 4):
        return None
    return end.address, status.address
