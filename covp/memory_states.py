"""What a program may do with memory, byte by byte, and the access that it may not make."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntFlag


class Forbidden(IntFlag):
    """The state of a byte; 0: it may be loaded and stored, and has a value.

    A store to an unwritten byte gives it a value; loads of it may be copies only.
    """

    NOTHING = 0
    LOAD = 1
    STORE = 2
    UNWRITTEN = 4
    ACCESS = LOAD | STORE


@dataclass(frozen=True)
class Finding:
    """An access that was not allowed, before which the core stopped.

    Attributes:
        pc: of the instruction.
        address, size: of the access, in bytes.
        is_store: else it is a load.
        is_unwritten: the bytes were never written, and something else than a copy is made of them.
        is_misaligned: the core faults at such an address.
        is_gone: the bytes are of a frame of the stack that is gone.
        sp: the stack pointer.
    """

    pc: int
    address: int
    size: int
    is_store: bool
    is_unwritten: bool
    is_misaligned: bool
    is_gone: bool
    sp: int
