"""The states of memory, byte by byte, and the access that a program may not make."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntFlag


class Forbidden(IntFlag):
    """The state of a byte; 0: it may be loaded and stored, and has a value.

    Bits without a value may be loaded, stored and computed with as long as they decide nothing.

    Attributes:
        UNWRITTEN: nothing was stored there.
        CARRIED: bits without a value were stored there.
    """

    NOTHING = 0
    LOAD = 1
    STORE = 2
    UNWRITTEN = 4
    CARRIED = 8
    ACCESS = LOAD | STORE
    UNDEFINED = UNWRITTEN | CARRIED


@dataclass(frozen=True)
class ForbiddenAccess:
    """An access that was not allowed, before which the core stopped.

    Attributes:
        pc: of the instruction.
        address, size: of the access, in bytes.
        is_store: else it is a load.
        is_unwritten: bits of the bytes have no value, and they decide something.
        is_gone: the bytes are of a frame of the stack that is gone.
        sp: the stack pointer.
        decides: what they decide: "a branch" ...; "" of other findings.
        loaded_at: the pc of their load.
    """

    pc: int
    address: int
    size: int
    is_store: bool
    is_unwritten: bool
    is_gone: bool
    sp: int
    decides: str
    loaded_at: int
