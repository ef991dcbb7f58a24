"""x86-64 with pointers of 32 bits (the x32 ABI): the machine that covp runs on.

Sources: System V ABI, AMD64 supplement (DWARF's numbers); Intel SDM volume 2A.
"""

from covp.chip.isa.architecture import Architecture


def _follows_call(before: bytes) -> bool:
    """Return whether the bytes before end in CALL rel32 (E8), or FF /2 of 2 to 7 bytes."""
    indirect = (before[-n] == 0xFF and before[1 - n] >> 3 & 7 == 2 for n in range(2, 8))
    return before[-5] == 0xE8 or any(indirect)


X86 = Architecture(
    name="x86",
    registers=(
        *("rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp"),
        *(f"r{number}" for number in range(8, 16)),
    ),
    sp=7,
    link=16,
    word=8,
    elf_machine=62,
    arguments=("rdi", "rsi", "rdx", "rcx", "r8", "r9"),
    follows_call=_follows_call,
    longest_call=7,
)
