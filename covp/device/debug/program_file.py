"""An ELF file into a device's memory, as a programmer or GDB's ``load`` does it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from covp.base.arguments import read_file
from covp.chip.isa import ARCHITECTURES
from covp.chip.platform_file import Platform
from covp.compilers.elf import ElfImage, Symbol
from covp.device.virtual import VirtualDevice
from covp.errors import DeviceError, UsageError


def load_elf(device: VirtualDevice, path: Path) -> ProgramFile:
    """Write the file's sections to their load addresses and name code in faults by it.

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
    device.add_debug_info(str(path))
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
    """Return the first RAM's addresses past all that a program has there; None: all is taken."""
    ram = platform.ram
    ends = [start + size for _, start, size in program.places if ram.start <= start < ram.end]
    end = (max(ends, default=ram.start) + 15) // 16 * 16
    return range(end, ram.end) if end < ram.end else None
