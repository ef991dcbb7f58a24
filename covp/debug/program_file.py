"""An ELF file into a device's memory, as a programmer or GDB's ``load`` does it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile

from covp.device.virtual import VirtualDevice
from covp.errors import DeviceError, UsageError
from covp.platform_file import Platform

_ALLOC = 0x2
_MACHINES = {"arm": "EM_ARM", "riscv": "EM_RISCV"}


def load_elf(device: VirtualDevice, path: Path) -> int:
    """Write the file's sections to their load addresses and name code in faults by it.

    Returns:
        the entry point, without Thumb's bit 0.

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
            raise DeviceError(f"{path}: section {name}: {error} of {platform.name}") from None
    device.add_debug_info(str(path))
    return program.entry


@dataclass(frozen=True)
class ProgramFile:
    """What a programmer reads of an ELF file.

    Attributes:
        entry: the first instruction, without Thumb's bit 0.
        pieces: name, load address and content of every section that has one.
        places: name, first address and size of every section in memory while it runs.
    """

    entry: int
    pieces: tuple[tuple[str, int, bytes], ...]
    places: tuple[tuple[str, int, int], ...]


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
        with path.open("rb") as stream:
            elf = ELFFile(stream)
            if elf["e_machine"] != _MACHINES.get(core.architecture) or elf.elfclass != 32:
                raise UsageError(f"{path}: not for the {core.name} of {platform.name}")
            pieces, places = tuple(_pieces(elf)), tuple(_places(elf))
            entry = int(elf["e_entry"])
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (ELFError, ValueError, KeyError) as error:
        raise UsageError(f"{path}: not an ELF file that can be loaded: {error}") from None
    return ProgramFile(entry & ~1 if core.architecture == "arm" else entry, pieces, places)


def _places(elf: Any) -> Iterator[tuple[str, int, int]]:
    for section in elf.iter_sections():
        if section["sh_flags"] & _ALLOC and section["sh_size"]:
            yield section.name, int(section["sh_addr"]), int(section["sh_size"])


def free_ram(platform: Platform, path: Path) -> range | None:
    """The addresses of the first RAM behind all that a program has there; None: all is taken.

    Args:
        platform: whose program it is.
        path: the ELF file, which `load_elf` accepts.
    """
    ram, end = platform.ram, platform.ram.start
    with path.open("rb") as stream:
        for section in ELFFile(stream).iter_sections():
            start = int(section["sh_addr"])
            if section["sh_flags"] & _ALLOC and ram.start <= start < ram.end:
                end = max(end, start + int(section["sh_size"]))
    end = (end + 15) // 16 * 16
    return range(end, ram.end) if end < ram.end else None


def _pieces(elf: Any) -> list[tuple[str, int, bytes]]:
    """Name, load address and content of every section that has one."""
    segments = [segment for segment in elf.iter_segments() if segment["p_type"] == "PT_LOAD"]
    found = []
    for section in elf.iter_sections():
        stored = section["sh_flags"] & _ALLOC and section["sh_type"] != "SHT_NOBITS"
        if not stored or not section["sh_size"]:
            continue
        address = int(section["sh_addr"])
        for segment in segments:
            if segment.section_in_segment(section):
                address += int(segment["p_paddr"]) - int(segment["p_vaddr"])
                break
        found.append((section.name, address, section.data()))
    return found
