"""Numbers of the semihosting specification, and the instructions that make a call."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum


class Operation(IntEnum):
    """Operation numbers (Arm's chapter 6); a program passes one in r0 or a0."""

    OPEN = 0x01
    CLOSE = 0x02
    WRITEC = 0x03
    WRITE0 = 0x04
    WRITE = 0x05
    READ = 0x06
    READC = 0x07
    ISERROR = 0x08
    ISTTY = 0x09
    SEEK = 0x0A
    FLEN = 0x0C
    TMPNAM = 0x0D
    REMOVE = 0x0E
    RENAME = 0x0F
    CLOCK = 0x10
    TIME = 0x11
    ERRNO = 0x13
    GET_CMDLINE = 0x15
    HEAPINFO = 0x16
    EXIT = 0x18
    EXIT_EXTENDED = 0x20
    ELAPSED = 0x30
    TICKFREQ = 0x31


APPLICATION_EXIT = 0x20026
"""ADP_Stopped_ApplicationExit, the reason of a program that ended as it meant to."""
REASONS = {
    0x20000: "branch through zero",
    0x20001: "undefined instruction",
    0x20002: "software interrupt",
    0x20003: "prefetch abort",
    0x20004: "data abort",
    0x20005: "address exception",
    0x20006: "interrupt",
    0x20007: "fast interrupt",
    0x20020: "breakpoint",
    0x20021: "watchpoint",
    0x20022: "step complete",
    0x20023: "run-time error",
    0x20024: "internal error",
    0x20025: "user interruption",
    APPLICATION_EXIT: "application exit",
    0x20027: "stack overflow",
    0x20028: "division by zero",
    0x20029: "operating system specific",
}
"""Reason codes of EXIT and EXIT_EXTENDED to their names, without ADP_Stopped."""

FEATURES = b"SHFB\x03"
"""Content of ``:semihosting-features``: EXIT_EXTENDED is there, and stderr is a file of its own."""

_BKPT_AB = bytes.fromhex("abbe")  # T32: BKPT 0xAB
_SLLI_EBREAK_SRAI = bytes.fromhex("1310f001 73001000 13507040")


def call_bytes(architecture: str, pc: int, read: Callable[[int, int], bytes]) -> int:
    """Return the bytes of the semihosting call at ``pc``; 0 where the instruction is another.

    Args:
        architecture: of the core.
        pc: of the instruction that trapped.
        read: memory at an address: bytes of a size; it may raise.

    A RISC-V call is an EBREAK between ``slli x0, x0, 0x1f`` and ``srai x0, x0, 7``.
    """
    if architecture == "arm":
        return 2 if read(pc, 2) == _BKPT_AB else 0
    return 4 if read(pc - 4, 12) == _SLLI_EBREAK_SRAI else 0
