"""RISC-V, 32 bits.

Sources: RISC-V unprivileged ISA 20191213, privileged ISA 20211203, ELF psABI (calling convention,
DWARF's numbers).
"""

from covp.chip.isa.architecture import Architecture
from covp.errors import FaultKind

_SAVED = tuple(f"s{number}" for number in range(12))


def _follows_call(before: bytes) -> bool:
    """Return whether the bytes before end in JAL or JALR to ra or t0, C.JAL or C.JALR."""
    word, half = (int.from_bytes(before[-size:], "little") for size in (4, 2))
    is_jump = word & 0x7F in (0x6F, 0x67) and word >> 7 & 31 in (1, 5)
    return is_jump or half & 0xE003 == 0x2001 or (half & 0xF07F == 0x9002 and half & 0xF80 != 0)


_REGISTERS = (
    *("zero", "ra", "sp", "gp", "tp", "t0", "t1", "t2", *_SAVED[:2]),
    *(f"a{number}" for number in range(8)),
    *_SAVED[2:],
    *("t3", "t4", "t5", "t6"),
)
_FLOATS = (
    *(f"ft{number}" for number in range(8)), "fs0", "fs1",
    *(f"fa{number}" for number in range(8)), *(f"fs{number}" for number in range(2, 12)),
    *(f"ft{number}" for number in range(8, 12)),
)  # fmt: skip
RISCV = Architecture(
    name="riscv",
    registers=_REGISTERS,
    sp=2,
    link=1,
    word=4,
    elf_machine=243,
    arguments=tuple(f"a{number}" for number in range(8)),
    follows_call=_follows_call,
    longest_call=4,
    kept=("sp", "gp", "tp", *_SAVED),  # gp and tp belong to the program as a whole
    scratch=tuple(f"t{number}" for number in range(7)),
    floats=_FLOATS,
    kept_floats=tuple(f"fs{number}" for number in range(12)),
    gdb="riscv:rv32",
    emulator="UC_RISCV_REG_",
    emulator_names={
        **{name: f"X{number}" for number, name in enumerate(_REGISTERS)},
        **{name: f"F{number}" for number, name in enumerate(_FLOATS)},
        "mtval": "MBADADDR",
    },
)
FLOAT_CSRS = {0x001: "fflags", 0x002: "frm", 0x003: "fcsr"}
STATE_CSRS = {
    0x300: "mstatus", 0x304: "mie", 0x305: "mtvec", 0x306: "mcounteren",
    0x340: "mscratch", 0x341: "mepc", 0x342: "mcause", 0x343: "mtval", 0x344: "mip",
}  # fmt: skip
"""Of machine mode (privileged ISA, table 2.5), number to name."""
COUNTER_CSRS = {0xB00: "mcycle", 0xB02: "minstret", 0xB80: "mcycleh", 0xB82: "minstreth"}
MISA = 0x301
IDENTITY_CSRS = {0xF11: "mvendorid", 0xF12: "marchid", 0xF13: "mimpid", 0xF14: "mhartid"}
CAUSES: dict[int, tuple[FaultKind, str]] = {
    0: ("misaligned access", "the jump's target is not on an instruction boundary"),
    1: ("unmapped fetch", "the instruction cannot be fetched"),
    2: ("illegal instruction", "this core does not have it"),
    3: ("breakpoint", "EBREAK"),
    4: ("misaligned access", "load"),
    5: ("unmapped read", ""),
    6: ("misaligned access", "store"),
    7: ("unmapped write", ""),
    8: ("unhandled exception", "ecall, and there is no handler"),
    11: ("unhandled exception", "ecall, and there is no handler"),
}
"""mcause of exceptions (privileged ISA, table 3.6): the fault, and what else is to be said."""
