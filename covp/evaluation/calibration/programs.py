"""`LoopProgram`: a loop over a body, entered with few rounds or with many.

What a program costs is the difference of both: what lies before and after the loop, a debugger's
share and a first pass through cold caches are in neither.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

from covp.chip.cores import Core
from covp.evaluation.calibration import riscv, thumb

SHORT, LONG = 10, 60
ROUNDS = LONG - SHORT
"""Rounds of the loop that a program's cost stands for."""
DATA_BYTES = 96
"""Bytes that a program reads and writes."""
_DIVISIONS = ("div", "rem", "sdiv", "udiv")


@dataclass(frozen=True)
class LoopProgram:
    """A loop; `assembly` makes code of it.

    Attributes:
        name: of the hazard.
        body: lines of assembly; labels end with @, which stands for the program's suffix.
        registers: values before the loop.
        is_skewed: the loop starts in the middle of a word, not with one.
        is_random: a mix of instructions, of no hazard in particular.
    """

    name: str
    body: tuple[str, ...]
    registers: tuple[tuple[str, int], ...]
    is_skewed: bool = False
    is_random: bool = False


def hazard_programs(core: Core) -> list[LoopProgram]:
    """Return a program for each hazard that a core can meet, at each possible code alignment."""
    language = riscv if core.architecture == "riscv" else thumb
    skews = (False, True) if core.architecture == "arm" or core.isa.has("c") else (False,)
    return [
        LoopProgram(name, tuple(body.split("; ")), language.VALUES, is_skewed)
        for name, body in language.hazards(core.isa, core.allows_misaligned).items()
        for is_skewed in skews
    ]


def random_program(core: Core, source: random.Random, name: str = "random") -> LoopProgram:
    """Return a loop over 50 to 90 mixed instructions.

    Args:
        core: the instruction set.
        source: of chance.
        name: of the program.
    """
    language = riscv if core.architecture == "riscv" else thumb
    lines = [
        language.random_line(source, core.isa, core.allows_misaligned)
        for _ in range(source.randint(50, 90))
    ]
    return LoopProgram(name, tuple(lines), language.RANDOM_VALUES, is_random=True)


def without_divisions(program: LoopProgram) -> LoopProgram:
    """Return a random program without divisions; a hazard as it is.

    What comes after a division is fetched meanwhile, as long as that takes with its operands.
    """
    if not program.is_random:
        return program
    body = (line for line in program.body if not line.startswith(_DIVISIONS))
    return replace(program, body=tuple(body))


def assembly(core: Core, program: LoopProgram, data: int, suffix: str = "") -> str:
    """Return code with the labels ``start`` (few rounds), ``long`` (many) and ``end``.

    Args:
        core: the instruction set.
        program: the loop.
        data: address of `DATA_BYTES` that the program may use.
        suffix: after the labels, so that several programs fit one file.
    """
    language = riscv if core.architecture == "riscv" else thumb
    text: str = language.TEMPLATE.format(
        short=SHORT,
        long=LONG,
        data=data,
        words=DATA_BYTES // 4,
        setup="\n ".join(language.set_register(name, value) for name, value in program.registers),
        prologue=language.prologue(core.isa),
        skew=language.SKEW if program.is_skewed else "",
        body="\n ".join(program.body),
    )
    return text.replace("@", suffix)
