"""Arm's M profile: Thumb code.

Sources: Armv7-M Architecture Reference Manual (DDI 0403E), DWARF for the Arm Architecture
(IHI 0040), Procedure Call Standard for the Arm Architecture (IHI 0042).
"""

from covp.chip.isa.architecture import Architecture


def _follows_call(before: bytes) -> bool:
    """Return whether the bytes before end in BL or BLX (DDI0403E A7.7.18, A7.7.19)."""
    first, second = (int.from_bytes(before[at : at + 2], "little") for at in (0, 2))
    is_bl = first & 0xF800 == 0xF000 and second & 0xD000 == 0xD000
    return is_bl or second & 0xFF87 == 0x4780


ARM = Architecture(
    name="arm",
    registers=(*(f"r{number}" for number in range(13)), "sp", "lr", "pc"),
    sp=13,
    link=14,
    word=4,
    elf_machine=40,
    arguments=("r0", "r1", "r2", "r3"),
    follows_call=_follows_call,
    longest_call=4,
    kept=(*(f"r{number}" for number in range(4, 12)), "sp"),  # IHI 0042, 6.1.1
    scratch=("r12",),
    floats=tuple(f"s{number}" for number in range(32)),
    kept_floats=tuple(f"s{number}" for number in range(16, 32)),  # 6.1.2.1
    status="xpsr",
    gdb="arm",
    emulator="UC_ARM_REG_",
    code_bit=1,
)
EXCEPTION_FRAME = ("r0", "r1", "r2", "r3", "r12", "lr", "pc", "xpsr")
"""What the core stacks when an exception is entered (DDI0403E B1.5.6)."""
NO_FPU_FRAME, PADDED = 1 << 4, 1 << 9
"""Bits of EXC_RETURN and of the stacked xPSR (DDI0403E B1.5.6, B1.5.8)."""


def exception_frame_bytes(how: int, status: int) -> int:
    """Return the size in bytes of what was stacked.

    Args:
        how: EXC_RETURN; 0: it is not known, and the frame has no floats.
        status: the stacked xPSR.
    """
    size = 0x68 if how and not how & NO_FPU_FRAME else 0x20
    return size + (4 if status & PADDED else 0)
