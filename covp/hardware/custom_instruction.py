"""`CustomInstruction`: an instruction of a tightly coupled unit, as its author declares it.

Encoding: RISC-V unprivileged ISA 20191213, table 24.1 (the opcodes custom-0 to custom-3) and
section 2.2 (R-type: funct7, rs2, rs1, funct3, rd, opcode).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from covp.errors import AcceleratorError

_OPCODES = (0x0B, 0x2B, 0x5B, 0x7B)
_MOST_CYCLES = 10_000
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class CustomInstruction:
    """An R-type instruction: rd = f(rs1, rs2), which may change its unit's state.

    Attributes:
        name: a C identifier.
        funct3, funct7: 0..7 and 0..127.
        compute: its model: uint32 of rs1 and rs2 to the uint32 of rd. Not called by the device.
        native: the same in C, for the machine covp runs on: an expression of `a` (rs1), `b` (rs2)
            and `state->word[0..15]`, or statements with a `return`. `static` variables would
            survive a reset; use the state.
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
    native: str
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
    def source(self) -> str:
        """The C function of the instruction."""
        statements = re.search(r"\breturn\b", self.native)
        body = self.native if statements else f"return (uint32_t)({self.native});"
        unused = "(void)a, (void)b, (void)state;"
        return (
            f"EXPORT uint32_t covp_{self.name}(uint32_t a, uint32_t b, CfuState *state) {{\n"
            f'{unused}\n#line 1 "{self.name}"\n{body}\n}}\n'
        )


@dataclass(frozen=True)
class InstructionUnit:
    """A tightly coupled unit: what an accelerator's ``make_peripheral`` gives for one.

    Attributes:
        instructions: that the core has with it.
    """

    instructions: tuple[CustomInstruction, ...]
