"""A target's registers (target description) and memory map as XML, for GDB.

Formats: GDB manual, appendix G "Target Descriptions" (feature names in G.5) and 20.12 "Memory Map
Format".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from covp.chip.cores import Core
from covp.chip.isa import ARCHITECTURES
from covp.chip.isa.arm import ARM
from covp.chip.isa.riscv import (
    COUNTER_CSRS,
    FLOAT_CSRS,
    IDENTITY_CSRS,
    MISA,
    RISCV,
    STATE_CSRS,
)
from covp.chip.platform_file import Platform
from covp.hardware.peripheral import Peripheral

FLASH_BLOCK = 1024
"""Bytes that GDB erases together; the sizes of memory regions are multiples of it."""

_RISCV_CSRS = dict(sorted((STATE_CSRS | {MISA: "misa"} | COUNTER_CSRS | IDENTITY_CSRS).items()))


@dataclass(frozen=True)
class GdbRegister:
    """A register of the remote protocol; its number is its position in `gdb_registers`.

    Attributes:
        name: GDB's.
        feature: the part of the target description that it belongs to.
        parts: the 32-bit registers of `DebugTarget` that make it up, lowest bits first.
        type: GDB's type, or "" for an integer.
    """

    name: str
    feature: str
    parts: tuple[str, ...]
    type: str = ""

    @property
    def bytes(self) -> int:
        """The size in packets, in bytes."""
        return 4 * len(self.parts)


def gdb_registers(core: Core, known: Iterable[str]) -> list[GdbRegister]:
    """Return the registers that GDB sees, general ones first.

    Args:
        known: names that the target has; what is not among them is left out.
    """
    names = set(known)
    every = _arm(core) if core.architecture == "arm" else _riscv(core)
    return [register for register in every if names.issuperset(register.parts)]


def general_registers(registers: Iterable[GdbRegister]) -> list[GdbRegister]:
    """Return the registers of packet g; GDB reads the others one by one when needed."""
    every = list(registers)
    return [register for register in every if register.feature == every[0].feature]


def _arm(core: Core) -> list[GdbRegister]:
    feature = "org.gnu.gdb.arm.m-profile"
    types = {"sp": "data_ptr", "pc": "code_ptr"}
    found = [GdbRegister(name, feature, (name,), types.get(name, "")) for name in ARM.shown]
    if core.has("fpu"):
        # single precision or not: GDB requires all d registers and derives the s registers
        feature = "org.gnu.gdb.arm.vfp"
        for number in range(16):
            parts = (f"s{2 * number}", f"s{2 * number + 1}")
            found.append(GdbRegister(f"d{number}", feature, parts, "ieee_double"))
        found.append(GdbRegister("fpscr", feature, ("fpscr",), "int"))
    for name in ("msp", "psp"):
        found.append(GdbRegister(name, "org.gnu.gdb.arm.m-system", (name,), "data_ptr"))
    for name in ("control", "primask", "basepri", "faultmask"):
        found.append(GdbRegister(name, "org.gnu.gdb.arm.m-system", (name,)))
    return found


def _riscv(core: Core) -> list[GdbRegister]:
    feature = "org.gnu.gdb.riscv.cpu"
    types = {"ra": "code_ptr", "sp": "data_ptr", "pc": "code_ptr"}
    found = [GdbRegister(name, feature, (name,), types.get(name, "")) for name in RISCV.shown]
    if core.has("fpu"):
        feature = "org.gnu.gdb.riscv.fpu"
        for number, name in enumerate(RISCV.floats):
            found.append(GdbRegister(name, feature, (f"f{number}",), "ieee_single"))
        for number, name in FLOAT_CSRS.items():
            found.append(GdbRegister(name, feature, (f"csr0x{number:x}",), "int"))
    for number, name in _RISCV_CSRS.items():
        found.append(GdbRegister(name, "org.gnu.gdb.riscv.csr", (f"csr0x{number:x}",), "int"))
    return found


def target_description(core: Core, registers: Iterable[GdbRegister]) -> str:
    """Return the document ``target.xml``."""
    lines = [
        '<?xml version="1.0"?>',
        '<!DOCTYPE target SYSTEM "gdb-target.dtd">',
        '<target version="1.0">',
        f"<architecture>{ARCHITECTURES[core.architecture].gdb}</architecture>",
    ]
    feature = ""
    for number, register in enumerate(registers):
        if register.feature != feature:
            lines += ["</feature>"] if feature else []
            feature = register.feature
            lines.append(f'<feature name="{feature}">')
        kind = f' type="{register.type}"' if register.type else ""
        bits = 8 * register.bytes
        lines.append(f'<reg name="{register.name}" bitsize="{bits}" regnum="{number}"{kind}/>')
    return "\n".join([*lines, "</feature>", "</target>", ""])


def memory_map(platform: Platform, peripherals: Mapping[str, tuple[int, Peripheral]]) -> str:
    """Return the document of qXfer:memory-map: flash, RAM, and peripherals as RAM.

    GDB takes what is not listed for inaccessible.
    """
    lines = [
        '<?xml version="1.0"?>',
        '<!DOCTYPE memory-map PUBLIC "+//IDN gnu.org//DTD GDB Memory Map V1.0//EN" '
        '"http://sourceware.org/gdb/gdb-memory-map.dtd">',
        "<memory-map>",
    ]
    for region in platform.memory:
        head = f'<memory type="{region.kind}" start="0x{region.start:x}" '
        head += f'length="0x{region.bytes:x}"'
        if region.kind == "flash":
            lines.append(f'{head}><property name="blocksize">0x{FLASH_BLOCK:x}</property></memory>')
        else:
            lines.append(f"{head}/>")
    for base, model in peripherals.values():
        lines.append(f'<memory type="ram" start="0x{base:x}" length="0x{model.size:x}"/>')
    return "\n".join([*lines, "</memory-map>", ""])
