"""Estimated cycles of instructions: published tables as data. No measurement."""

from __future__ import annotations

from dataclasses import dataclass

from covp.cores import Core


@dataclass(frozen=True)
class Rule:
    """What holds for the instructions with ``bits & mask == match``.

    Attributes:
        bytes: 2 or 4.
        mask, match: over the instruction's bits; Arm 32-bit: first halfword on top.
        cycles: estimated cycles.
        list: one more cycle for each of these bits that is set (register lists).
        taken: extra cycles when a conditional branch is taken.
        flags: SPECIAL, PIPELINED, PAIRED.
    """

    bytes: int
    mask: int
    match: int
    cycles: int = 1
    list: int = 0
    taken: int = 0
    flags: int = 0


SPECIAL = 1
PIPELINED = 2
PAIRED = 4


def core_rules(core: Core) -> tuple[Rule, ...]:
    """The core's timing table; empty means one cycle an instruction."""
    return TABLES.get(core.timing or "", ())


TABLES: dict[str, tuple[Rule, ...]] = {}
