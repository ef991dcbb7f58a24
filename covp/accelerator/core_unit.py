"""`CoreUnit`: custom instructions of a RISC-V core as an accelerator, in one class.

From the instructions come their C, the units that execute them and, with `dot_product`, the
kernels of convolutions and fully connected layers that use them::

    def dot4(a, b):
        '''Return the sum of the products of four signed bytes.'''
        x, w = (np.array(word, np.uint32).view(np.int8).astype(int) for word in ([a], [b]))
        return x @ w

    class Dot4(CoreUnit):
        '''Four 8-bit multipliers in the core.'''

        name = "dot4"
        instructions = (CustomInstruction("dot4", funct3=0, funct7=0, compute=dot4, macs=4),)
        dot_product = "{sum} + (int32_t)dot4({x}, {w})"
        rtl = UnitRtl(("dot4.v",))
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial, reduce
from operator import or_
from typing import Any, ClassVar, Self

from covp.accelerator.backend import AcceleratorBackend
from covp.accelerator.call import CoreKernel, Step
from covp.accelerator.limits import Limit
from covp.accelerator.parameters import Parameter
from covp.accelerator.rtl.choice import RTL, chosen_rtl, with_rtl
from covp.accelerator.rtl.instruction_code import RtlInstructionCode
from covp.accelerator.rtl.library import build_instructions
from covp.accelerator.rtl.sources import UnitRtl
from covp.errors import ModelError
from covp.graph.pattern import Match, Pattern, op
from covp.graph.typed_convolution import PRODUCTS, resolve
from covp.hardware.custom_instruction import CustomInstruction, InstructionUnit
from covp.hardware.intrinsics import DotProduct, replace_instruction

_MATRIX = Pattern("matrix", reduce(or_, map(op, PRODUCTS)))


class CoreUnit(AcceleratorBackend):
    """Custom instructions of a RISC-V core. Subclasses set `name` and `instructions`.

    In C each instruction is a function of its name, ``uint32_t NAME(uint32_t a, uint32_t b)``, of
    the header ``NAME.h`` that is named like the accelerator.

    Attributes:
        instructions: of the unit; a subclass whose parameters change them overrides
            `make_instructions`.
        dot_product: C of a sum of products, from {sum}, {x} (activations) and {w} (weights), the
            latter two a uint32_t of four int8; the kernels of int8 convolutions and fully connected
            layers are built of it. "": a subclass has patterns and `lower` of its own.
        rtl: Verilog with the port of CFU-Playground, for the parameter ``rtl=yes``; None: there is
            none.
    """

    instructions: ClassVar[tuple[CustomInstruction, ...]] = ()
    dot_product: ClassVar[str] = ""
    rtl: ClassVar[UnitRtl | None] = None
    patterns: ClassVar[Sequence[Pattern]] = (_MATRIX,)
    peripheral = InstructionUnit
    architectures = ("riscv",)
    parameters: ClassVar[Sequence[Parameter]] = ()

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        if RTL not in cls.parameters:
            cls.parameters = (*cls.parameters, RTL)
        if cls.dot_product:
            product = DotProduct(
                cls.name,
                requires=frozenset({cls.name}),
                lanes=4,
                operand="int8",
                expression=cls.dot_product,
                definitions=f'#include "{cls.name}.h"',
            )
            replace_instruction(product)

    def make_instructions(self) -> Sequence[CustomInstruction]:
        """Return new instructions, whose models begin with no state."""
        return self.instructions

    def operands(self, instruction: CustomInstruction) -> Any:
        """Return the operands of an instruction that `covp verify` tries.

        A Hypothesis strategy of pairs of unsigned words; None, the default: all words.
        """
        return None

    def supports(self, match: Match) -> bool | str | Sequence[Limit]:
        """Accept int8 with constant weights."""
        try:
            resolve(match.op)
        except ModelError as error:
            return str(error)
        types = {t.dtype.name for t in (match.op.input(0), match.op.input(1), match.op.output)}
        return [Limit("type", " and ".join(sorted(types)), one_of=("int8",))]

    def lower(self, match: Match) -> Step | Sequence[Step]:
        """Return the generated kernel with the unit's instructions."""
        return CoreKernel(frozenset({type(self).name}))

    def driver(self, base: int) -> Mapping[str, str]:
        """Return the header with the instructions as C functions."""
        name = type(self).name
        guard = f"{name.upper()}_H"
        functions = [_FUNCTION.format(i=one) for one in self.make_instructions()]
        text = "\n".join([f"#ifndef {guard}\n#define {guard}\n\n#include <stdint.h>\n", *functions])
        return {f"{name}.h": f"{text}\n#endif\n"}

    def make_peripheral(self) -> InstructionUnit:
        """Return the instructions, executed by their C, their models or their RTL.

        Raises:
            UsageError: there is no such Verilog, or no module in it.
            AcceleratorError: it has not the port.
            ToolchainError: Verilator is missing or rejects it.
        """
        instructions = tuple(self.make_instructions())
        chosen = chosen_rtl(self, self.rtl)
        if chosen is None:
            return InstructionUnit(instructions)
        library = build_instructions(self.name, *chosen)
        return InstructionUnit(instructions, partial(RtlInstructionCode, library, instructions))

    def against_rtl(self) -> Self:
        """Return the same unit as its RTL."""
        return with_rtl(self)


# The unit's state is no operand that the compiler knows of: volatile keeps the order.
_FUNCTION = """\
static inline __attribute__((unused)) uint32_t {i.name}(uint32_t a, uint32_t b)
{{
    uint32_t result;
    __asm__ volatile(".insn r 0x{i.opcode:02x}, {i.funct3}, {i.funct7}, %0, %1, %2"
                     : "=r"(result)
                     : "r"(a), "r"(b));
    return result;
}}
"""
