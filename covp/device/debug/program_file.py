"""An ELF file into a device's memory, as a programmer does it, and its run from reset on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from covp.base.arguments import read_file
from covp.chip.isa import ARCHITECTURES
from covp.chip.platform_file import Platform
from covp.compilers.elf import ElfImage, Symbol
from covp.device.virtual import VirtualDevice
from covp.errors import DeviceError, ProgramExit, UsageError


def load_elf(device: VirtualDevice, path: Path) -> ProgramFile:
    """Write the file's sections to their load addresses and name code in faults by it.

    Args:
        device: whose memory it is.
        path: of the ELF file.

    Returns:
        what was loaded.

    Raises:
        UsageError: it cannot be read, or is for another architecture.
        DeviceError: a section does not lie in the platform's memory.
    """
    platform = device.platform
    program = read_program(path, platform)
    for name, address, data in program.pieces:
        try:
            device.write(address, data)
        except DeviceError as error:
            raise DeviceError(f"section {name}: {error} of {platform.name}", where=path) from None
    device.board.names.symbols.add(str(path))
    return program


@dataclass(frozen=True)
class ProgramFile:
    """The parts of an ELF file that a programmer reads.

    Attributes:
        entry: the first instruction, without Thumb's bit 0.
        pieces: name, load address and content of every section that has one.
        places: name, first address and size of every section in memory while it runs.
        symbols: by name, those that can be read.
    """

    entry: int
    pieces: tuple[tuple[str, int, bytes], ...]
    places: tuple[tuple[str, int, int], ...]
    symbols: Mapping[str, Symbol]


def read_program(path: Path, platform: Platform) -> ProgramFile:
    """Read a program for a platform's first core.

    Args:
        path: of the ELF file.
        platform: whose core it is for.

    Raises:
        UsageError: it cannot be read, or is for another architecture.
    """
    core = platform.core
    try:
        elf = ElfImage(read_file(path))
        sections = elf.sections
    except OSError as error:
        raise UsageError(f"cannot be read: {error.strerror or error}", where=path) from None
    except ValueError as error:
        raise UsageError(f"not an ELF file that can be loaded: {error}", where=path) from None
    if elf.machine != ARCHITECTURES[core.architecture].elf_machine:
        raise UsageError(f"not for the {core.name} of {platform.name}", where=path)
    return ProgramFile(
        elf.entry & ~1 if core.architecture == "arm" else elf.entry,
        tuple((one.name, one.load_address, one.data) for one in sections if not one.zero),
        tuple((one.name, one.address, one.size) for one in sections),
        elf.symbols,
    )


def free_ram(platform: Platform, program: ProgramFile) -> range | None:
    """Return the first RAM's addresses past all that a program has there; None: all is taken.

    Args:
        platform: whose RAM it is.
        program: that is to be loaded.
    """
    ram = platform.ram
    ends = [start + size for _, start, size in program.places if ram.start <= start < ram.end]
    end = (max(ends, default=ram.start) + 15) // 16 * 16
    return range(end, ram.end) if end < ram.end else None


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
    end, entry = _end(device, program), start_firmware(device, program)
    before = device.core.totals
    try:
        device.execute(entry, _NOWHERE if end is None else end[0], timeout)
        status = 0 if end is None else int.from_bytes(device.read(end[1], 4), "little", signed=True)
    except ProgramExit as end:
        status = end.status
    now = device.core.totals
    return FirmwareRun(status, now.instructions - before.instructions, now.cycles - before.cycles)


def start_firmware(device: VirtualDevice, program: ProgramFile) -> int:
    """Reset a device with a loaded program; return where its core begins."""
    device.reset()
    if device.platform.core.architecture != "arm":
        return program.entry
    vectors = device.read(device.platform.flash.start, 8)  # sp and pc are there
    device.core.write_register("sp", int.from_bytes(vectors[:4], "little"))
    return int.from_bytes(vectors[4:], "little") & ~1


def _end(device: VirtualDevice, program: ProgramFile) -> tuple[int, int] | None:
    """Return the address where covp's start-up code ends, and its status's; None without it."""
    end, status = program.symbols.get(_END), program.symbols.get(_STATUS)
    if end is None or status is None or not device.board.bus.is_memory(status.address, 4):
        return None
    return end.address, status.address
