"""`Architecture`: the registers and the calling convention of instruction sets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Architecture:
    """A family of instruction sets that share registers and calling convention.

    Attributes:
        name: "arm", "riscv" or "x86".
        registers: names of the general registers by their number: that of DWARF, of GDB and in
            encodings; the pc is none of them, but on Arm.
        sp, link: DWARF's numbers of the stack pointer and of the return address.
        word: bytes of a register that a function saves.
        elf_machine: number in ELF files (e_machine).
        arguments: names of the registers of the first integer arguments; results are in the first.
        follows_call: whether the ``longest_call`` bytes before an address end in a call.
        longest_call: bytes of the longest call instruction.
        kept: names of the registers that a function has to leave as they were, the sp among them.
        scratch: names of those that hold nothing when a function is entered.
        floats: names of the single-precision registers by number.
        kept_floats: names of those that a function has to leave as they were.
        status: name of the flags' register that debuggers show beside the general ones, or "".
        gdb: GDB's name of it, or "".
        emulator: what names of the emulator's constants begin with, or "".
        emulator_names: the rest of those that are not the register's name in capitals.
        code_bit: of the addresses of code: Arm's Thumb bit.
    """

    name: str
    registers: tuple[str, ...]
    sp: int
    link: int
    word: int
    elf_machine: int
    arguments: tuple[str, ...]
    follows_call: Callable[[bytes], bool]
    longest_call: int
    kept: tuple[str, ...] = ()
    scratch: tuple[str, ...] = ()
    floats: tuple[str, ...] = ()
    kept_floats: tuple[str, ...] = ()
    status: str = ""
    gdb: str = ""
    emulator: str = ""
    emulator_names: Mapping[str, str] = field(default_factory=dict, hash=False)
    code_bit: int = 0

    @property
    def shown(self) -> tuple[str, ...]:
        """The registers that every debugger shows: general ones, the pc, the flags."""
        pc = () if "pc" in self.registers else ("pc",)
        return (*self.registers, *pc, *filter(None, [self.status]))

    def emulator_name(self, register: str) -> str:
        """Return the emulator's name of a register's constant, such as UC_RISCV_REG_X2 of "sp"."""
        return self.emulator + self.emulator_names.get(register, register.upper())
