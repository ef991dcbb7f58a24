"""The reason of a trap that clang's undefined-behaviour sanitizer compiled in, on x86-64.

The trap is UD1 with a number as displacement: the position of the failed check in clang's list
LIST_SANITIZER_CHECKS (clang/lib/CodeGen/SanitizerHandler.h).
"""

from __future__ import annotations

TRAP_BYTES = 5
"""The longest trap, in bytes."""

_UD1 = b"\x0f\xb9"
_ADDRESS_SIZE = b"\x67"  # prefix of addresses with 32 bits
_CHECKS = {
    0: "addition overflows",
    1: "code that cannot be reached",
    3: "division by zero, or a quotient that does not fit",
    5: "a float that does not fit the integer type",
    6: "call through a pointer to another type of function",
    8: "a builtin function's argument is out of range",
    10: "a value that its type does not have",
    11: "no return value",
    12: "multiplication overflows",
    13: "negation overflows",
    18: "index outside the array",
    19: "pointer arithmetic overflows",
    20: "shift by a count out of range, or of a value that does not fit",
    21: "subtraction overflows",
    22: "misaligned address, or a null pointer",
    23: "an assumed alignment does not hold",
    24: "length of an array is not positive",
}


def undefined_behaviour(code: bytes) -> str | None:
    """Return the failed check of a trap; None where the instruction is no such trap.

    Args:
        code: `TRAP_BYTES` of the program from the faulting instruction on.
    """
    code = code.removeprefix(_ADDRESS_SIZE)
    if not code.startswith(_UD1) or len(code) < 4:
        return None
    # ModRM: [eax], where the number is 0, or [eax + one byte]
    number = {0x00: 0, 0x40: code[3]}.get(code[2])
    if number is None:
        return None
    return f"undefined behaviour: {_CHECKS.get(number, f'check {number} of the sanitizer')}"
