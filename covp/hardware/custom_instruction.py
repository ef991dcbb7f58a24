"""`CustomInstruction`: an instruction of a tightly coupled unit, as its author declares it.

`InstructionUnit` are those of one unit; `InstructionCode` is what executes them.

Encoding: RISC-V unprivileged ISA 20191213, table 24.1 (the opcodes custom-0 to custom-3) and
section 2.2 (R-type: funct7, rs2, rs1, funct3, rd, opcode).
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from covp.errors import AcceleratorError

STATE_HEADER = Path(__file__).with_name("instruction_state.h")
"""C of what the functions of instructions share with the core that calls them."""
STATE_WORDS = 16


class CfuState(ctypes.Structure):
    """The structure of that name in instruction_state.h."""

    _fields_ = (
        ("word", ctypes.c_uint32 * STATE_WORDS),
        ("now", ctypes.c_uint64),
        ("late", ctypes.c_int64),
        ("unit", ctypes.c_void_p),
    )


_OPCODES = (0x0B, 0x2B, 0x5B, 0x7B)
_MOST_CYCLES = 10_000
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class CustomInstruction:
    """An R-type instruction: rd = f(rs1, rs2), which may change its unit's state.

    Attributes:
        name: a C identifier.
        funct3, funct7: 0..7 and 0..127.
        compute: its model: uint32 of rs1 and rs2 to rd, of which the lowest 32 bits count. The
            device calls it where there is nothing else, about a microsecond each; it may then keep
            no state.
        native: the same in C, for the machine covp runs on: an expression of `a` (rs1), `b` (rs2)
            and `state->word[0..15]`, or statements with a `return`. `static` variables would
            survive a reset; use the state. "": there is none.
        cycles: that the core takes for it, 1..10000; it stalls for all of them.
        opcode: custom-0 (0x0b), custom-1 (0x2b), custom-2 (0x5b) or custom-3 (0x7b).
        macs: multiply-accumulates that it does, from which the share of a model on the unit is
            computed; 0 in all of a unit's instructions: any use counts.

    Raises:
        AcceleratorError: a field is out of range.
    """

    name: str
    funct3: int
    funct7: int
    compute: Callable[[int, int], int] = field(compare=False)
    native: str = ""
    cycles: int = 1
    opcode: int = 0x0B
    macs: int = 0

    def __post_init__(self) -> None:
        for what, value, least, most in (
            ("funct3", self.funct3, 0, 7),
            ("funct7", self.funct7, 0, 127),
            ("cycles", self.cycles, 1, _MOST_CYCLES),
        ):
            if not least <= value <= most:
                raise AcceleratorError(
                    f"custom instruction {self.name}: {what} {value} is not in {least}..{most}"
                )
        if self.opcode not in _OPCODES:
            raise AcceleratorError(
                f"custom instruction {self.name}: opcode 0x{self.opcode:02x} is not one of "
                + ", ".join(f"0x{opcode:02x}" for opcode in _OPCODES)
            )
        if not _NAME.fullmatch(self.name):
            raise AcceleratorError(
                f"custom instruction {self.name!r}: the name is not a C identifier"
            )

    @property
    def match(self) -> int:
        """The instruction with all registers zero."""
        return self.funct7 << 25 | self.funct3 << 12 | self.opcode

    def encode(self, rd: int, rs1: int, rs2: int) -> int:
        """Return the instruction's bits, for registers ``rd``, ``rs1`` and ``rs2`` in 0..31."""
        return self.match | rs2 << 20 | rs1 << 15 | rd << 7

    @property
    def number(self) -> int:
        """funct7 and funct3 together, as ports for custom instructions number them: 10 bits."""
        return self.funct7 << 3 | self.funct3

    @property
    def source(self) -> str:
        """The C function of the instruction."""
        statements = re.search(r"\breturn\b", self.native)
        body = self.native if statements else f"return (uint32_t)({self.native});"
        unused = "(void)a, (void)b, (void)state;"
        return (
            f"EXPORT uint32_t covp_{self.name}(uint32_t a, uint32_t b, CfuState *state) {{\n"
            f'{unused}\n#line 1 "{self.name}"\n{body}\n}}\n'
        )


class InstructionCode(Protocol):
    """What executes the instructions of a unit on a device: functions of the host, and state.

    Attributes:
        state: address of the `CfuState` (instruction_state.h) that its functions are called with.
        clocked: of a unit in simulation: addresses of the unit and of its functions ``settle`` and
            ``edge``, by which a simulated core drives its port cycle by cycle. None: the functions
            are all that there is.
    """

    @property
    def state(self) -> int: ...

    @property
    def clocked(self) -> tuple[int, int, int] | None: ...

    def function(self, instruction: CustomInstruction) -> int:
        """Return the host address of ``uint32_t f(uint32_t a, uint32_t b, CfuState *)``."""
        ...

    def reset(self) -> None:
        """Reset the unit: its state is zero."""
        ...

    def save_state(self) -> bytes:
        """Return the state."""
        ...

    def load_state(self, state: bytes) -> None:
        """Go back to a state that `save_state` returned."""
        ...

    def error(self) -> str:
        """Return what has gone wrong in a call, such as no answer, in one line; "": nothing."""
        ...


@dataclass(frozen=True)
class InstructionUnit:
    """A tightly coupled unit: what an accelerator's ``make_peripheral`` gives for one.

    Attributes:
        instructions: that the core has with it.
        code: makes what executes them; None: their C, or their model where there is none.
    """

    instructions: tuple[CustomInstruction, ...]
    code: Callable[[], InstructionCode] | None = field(default=None, compare=False)
