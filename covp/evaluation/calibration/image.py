"""All programs as one piece of code for a device's memory."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass

from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from covp.chip.platform_file import Platform
from covp.compilers.toolchain import SourceText, get_toolchain
from covp.device.base import LowLevelDevice
from covp.errors import CapacityError
from covp.evaluation.calibration.programs import DATA_BYTES, LoopProgram, assembly

_HEADS = {"arm": ".syntax unified\n.thumb", "riscv": ".option norelax"}
_SCRIPT = """ENTRY(start)
SECTIONS {{ . = 0x{:x}; .text : {{ KEEP(*(.text*)) }} /DISCARD/ : {{ *(.ARM.*) }} }}
"""


@dataclass(frozen=True)
class Entries:
    """Addresses of a program: where few rounds start, where many do, and its end."""

    short: int
    long: int
    end: int


@dataclass(frozen=True)
class Image:
    """Programs, linked.

    Attributes:
        base: address of the code.
        code: bytes.
        entries: of each program.
    """

    base: int
    code: bytes
    entries: tuple[Entries, ...]

    def load(self, device: LowLevelDevice) -> None:
        """Write the code into a device's memory. Raises DeviceError."""
        device.write(self.base, self.code)


def link(platform: Platform, programs: Sequence[LoopProgram]) -> Image:
    """Return programs as code for the flash of a platform; their data follow the stack in its RAM.

    Args:
        platform: core and memory map.
        programs: in this order.

    Raises:
        ToolchainError: an instruction is rejected.
        CapacityError: the flash is too small.
    """
    base, data = platform.flash.start, platform.ram.start + platform.stack_bytes
    parts = [_HEADS[platform.core.architecture], ".text", ".balign 16", ".global start"]
    parts += ["start:"]
    parts += [assembly(platform.core, one, data, f"_{n}") for n, one in enumerate(programs)]
    toolchain = get_toolchain("zig", platform.core)
    objects = toolchain.compile([SourceText("calibration.S", "\n".join(parts) + "\n")])
    elf = ELFFile(io.BytesIO(toolchain.link(objects, _SCRIPT.format(base)).read_bytes()))
    code, table = elf.get_section_by_name(".text"), elf.get_section_by_name(".symtab")
    assert code is not None and isinstance(table, SymbolTableSection)
    _check_size(platform, len(code.data()))
    labels = {symbol.name: symbol["st_value"] & ~1 for symbol in table.iter_symbols()}
    entries = (
        Entries(labels[f"start_{n}"], labels[f"long_{n}"], labels[f"end_{n}"])
        for n in range(len(programs))
    )
    return Image(base, bytes(code.data()), tuple(entries))


def _check_size(platform: Platform, size: int) -> None:
    room = platform.flash.bytes
    if size > room:
        raise CapacityError(
            f"{platform.name}: the programs take {size:,} bytes of flash, {platform.flash.name} "
            f"has {room:,}; use fewer with --programs",
            size,
            room,
            "flash",
        )
    assert platform.stack_bytes + DATA_BYTES + 64 <= platform.ram.bytes
