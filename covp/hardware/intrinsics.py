"""Multiply-accumulate instructions as data: the matrix kernel's inner loop is built from them.

An instruction that covp does not know, of a user's own core, is one `register` away::

    from covp.hardware.intrinsics import DotProduct, register

    register(DotProduct(
        "dot4", requires=frozenset({"xdot"}), lanes=4, operand="int8",
        expression="dot4({x}, {w}, {sum})",
        definitions="static inline int32_t dot4(uint32_t x, uint32_t w, int32_t sum) {...}\\n",
    ))

Every core with the feature then has tiles of that name in its schedule spaces. On the command
line a file that does so is given with ``--operators FILE.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from covp.chip.cores import Core
from covp.errors import UsageError


@dataclass(frozen=True)
class DotProduct:
    """An instruction that adds one or several products to a 32-bit sum.

    Attributes:
        name: of the tile in schedules.
        requires: features of `covp.chip.cores.Core` that it needs.
        lanes: products of one use: 1 (operands are int32 variables), 2 or 4 (a uint32_t word each).
        operand: type of a lane: "int8" (1 or 4 lanes) or "int16" (2 lanes).
        expression: C of the new sum, from {x} (activations), {w} (weights) and {sum}.
        definitions: C text that the expression needs: an #include, an inline function.
        widen: for int16 lanes, C function that sign-extends the bytes 0 and 2 of a word.
        better: features with which another instruction is always better.
        accumulators: number of sums that the unit itself holds; ``expression`` is then a statement
            that adds to number {number} and has no {sum}. 0: sums are variables.
        initialize: C statement that puts {value} into accumulator {number}.
        read: C expression of accumulator {number}.
        modular: as ``expression``, for sums that may leave int32: modulo 2**32, defined in C. ""
            where ``expression`` is so itself.
    """

    name: str
    requires: frozenset[str]
    lanes: Literal[1, 2, 4]
    operand: Literal["int8", "int16"]
    expression: str
    definitions: str = ""
    widen: str = ""
    better: frozenset[str] = frozenset()
    accumulators: int = 0
    initialize: str = ""
    read: str = ""
    modular: str = ""

    def __post_init__(self) -> None:
        if (self.lanes, self.operand) not in ((1, "int8"), (4, "int8"), (2, "int16")):
            raise UsageError(
                f"intrinsic {self.name}: {self.lanes} lanes of {self.operand} are not supported; "
                "1 or 4 of int8 and 2 of int16 are"
            )
        if self.operand == "int16" and not self.widen:
            raise UsageError(f"intrinsic {self.name}: int16 lanes need `widen`")
        total = "{number}" if self.accumulators else "{sum}"
        for part in ("{x}", "{w}", total):
            if part not in self.expression:
                raise UsageError(f"intrinsic {self.name}: its expression lacks {part}")

    @property
    def step(self) -> int:
        """k of one step of the inner loop; a word of weights holds four, widened or not."""
        return 1 if self.lanes == 1 else 4

    def fits(self, core: Core) -> bool:
        """Return whether a core has the instruction and no better one."""
        return self.requires <= core.features and self.better.isdisjoint(core.features)

    @property
    def most_sums(self) -> int:
        """Sums that a register block may have: beyond 16 they spill on every core."""
        return self.accumulators or 16

    def add(self, total: str, x: str, w: str, wraps: bool = False) -> str:
        """Return the C statement that adds a product.

        Args:
            total: the variable it is added to, or the number of the accumulator.
            x, w: the factors.
            wraps: the sum may leave int32.
        """
        if self.accumulators:
            return f"{self.expression.format(x=x, w=w, number=total)};"
        expression = self.modular if wraps and self.modular else self.expression
        return f"{total} = {expression.format(x=x, w=w, sum=total)};"


@dataclass(frozen=True)
class RequantizeInstruction:
    """An instruction that turns an int32 sum into an int8 as TFLM does, clamped.

    Attributes:
        name: for reports.
        requires: features of `covp.chip.cores.Core` that it needs.
        definitions: C text that the expressions need.
        expression: C of the result from {acc}, {multiplier} and {packed_scale}, each int32_t.
            ``packed_scale`` holds, from the lowest byte, the shift (positive to the left), the
            output's zero point and the lowest and highest result, each as an int8.
        of_accumulator: the same from the accumulator {number} of a `DotProduct` of the same unit.
    """

    name: str
    requires: frozenset[str]
    definitions: str
    expression: str
    of_accumulator: str = ""


_DOT_PRODUCTS: dict[str, DotProduct] = {}


def register(instruction: DotProduct) -> DotProduct:
    """Make an instruction known. Registering the same one again has no effect.

    Raises:
        UsageError: another one has that name.
    """
    if _DOT_PRODUCTS.setdefault(instruction.name, instruction) != instruction:
        raise UsageError(f"intrinsic {instruction.name}: another instruction has that name")
    return instruction


def replace_instruction(instruction: DotProduct) -> None:
    """Make an instruction known in the place of an earlier one of that name."""
    _DOT_PRODUCTS[instruction.name] = instruction


def unregister(name: str) -> None:
    """Forget an instruction. Raises KeyError."""
    del _DOT_PRODUCTS[name]


def dot_products() -> tuple[DotProduct, ...]:
    """Return all that are registered."""
    return tuple(_DOT_PRODUCTS.values())


def find_dot_product(name: str) -> DotProduct | None:
    """Return the instruction of that name, or None."""
    return _DOT_PRODUCTS.get(name)


_REQUANTIZE: dict[str, RequantizeInstruction] = {}


def register_requantize(instruction: RequantizeInstruction) -> RequantizeInstruction:
    """Make an instruction known. Registering the same one again has no effect.

    Raises:
        UsageError: another one has that name.
    """
    if _REQUANTIZE.setdefault(instruction.name, instruction) != instruction:
        raise UsageError(f"intrinsic {instruction.name}: another instruction has that name")
    return instruction


def requantize_instructions() -> tuple[RequantizeInstruction, ...]:
    """Return all that are registered."""
    return tuple(_REQUANTIZE.values())


def requantize_instruction(core: Core) -> RequantizeInstruction | None:
    """Return the requantizing instruction of a core, or None."""
    fitting = (i for i in _REQUANTIZE.values() if i.requires <= core.features)
    return next(fitting, None)
