"""Programs whose accesses may be misaligned, and where by plain integers the first one is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

BASE, DATA = 0x100, 0x40
"""Of pointers in RAM, from its start; and of what they point to, from there."""
SIZES = {"lw": 4, "lh": 2, "lhu": 2, "lb": 1, "sw": 4, "sh": 2, "sb": 1}
POINTERS = 8


@dataclass(frozen=True)
class Step:
    """An address, and an access there.

    ``kind``: of what the address comes from: "loaded" (a pointer in memory), "masked" and
    "multiplied" (an index of the round), "added" (to the address before).
    """

    kind: str
    number: int
    access: str

    def address(self, base: int, before: int, turn: int) -> int:
        """Where the access goes in the round ``turn``."""
        if self.kind == "loaded":
            return base + pointer(self.number)
        if self.kind == "masked":
            return base + DATA + (turn & self.number)
        if self.kind == "multiplied":
            return base + DATA + turn * self.number
        return before + self.number


def pointer(number: int) -> int:
    """What the pointer of that number in memory points to, from `BASE` on."""
    return DATA + (7 if number % 2 else 4) * number


RISCV = {
    "loaded": "lw a0, {n4}(s0)",
    "masked": "andi t0, s1, {n}\n add a0, s2, t0",
    "multiplied": "li t0, {n}\n mul t0, t0, s1\n add a0, s2, t0",
    "added": "addi a0, a0, {n}",
}
ARM = {
    "loaded": "ldr r0, [r4, #{n4}]",
    "masked": "movs r1, #{n}\n ands r1, r5\n adds r0, r6, r1",
    "multiplied": "movs r1, #{n}\n muls r1, r5, r1\n adds r0, r6, r1",
    "added": "adds r0, #{n}",
}
ARM_ACCESS = {"lw": "ldr r2, [r0]", "lh": "movs r3, #0\n ldrsh r2, [r0, r3]",
              "lhu": "ldrh r2, [r0]", "lb": "ldrb r2, [r0]", "sw": "str r2, [r0, #0]",
              "sh": "strh r2, [r0, #0]", "sb": "strb r2, [r0, #0]"}  # fmt: skip


def text_of(steps: list[Step], rounds: int, ram: int, is_arm: bool) -> str:
    """A loop over the steps; the access of step n is at the label `access_n`.

    Args:
        steps: of a round.
        rounds: how often.
        ram: where it starts.
        is_arm: else RISC-V.
    """
    base = ram + BASE
    names = ("r4", "r5", "r6", "r0") if is_arm else ("s0", "s1", "s2", "a0")
    set_up = "ldr {}, ={}" if is_arm else "li {}, {}"
    values = (base, 0, base + DATA, base + DATA)
    lines = [
        "start:",
        *(set_up.format(*pair) for pair in zip(names, values, strict=True)),
        "again:",
    ]
    for n, step in enumerate(steps):
        source = (ARM if is_arm else RISCV)[step.kind]
        lines.append(source.format(n=step.number, n4=4 * step.number))
        access = ARM_ACCESS[step.access] if is_arm else f"{step.access} a1, 0(a0)"
        *before, last = access.split("\n")
        lines += [*before, f"access_{n}: {last}"]
    if is_arm:
        lines += ["adds r5, #1", f"cmp r5, #{rounds}", "bne again", "end: b end", ".ltorg"]
    else:
        lines += ["addi s1, s1, 1", f"li t0, {rounds}", "bne s1, t0, again", "end: j end"]
    return "\n".join(lines)


class Writable(Protocol):
    """A device."""

    def write(self, address: int, data: bytes) -> None:
        """Into memory."""


def write_pointers(device: Writable, ram: int) -> None:
    """Put the pointers into memory."""
    for number in range(POINTERS):
        where, value = ram + BASE + 4 * number, ram + BASE + pointer(number)
        device.write(where, value.to_bytes(4, "little"))


def first_misaligned(steps: list[Step], rounds: int, ram: int) -> tuple[int, int, int] | None:
    """(round, step, address) of the first access that is misaligned."""
    base = ram + BASE
    address = base + DATA
    for turn in range(rounds):
        for n, step in enumerate(steps):
            address = step.address(base, address, turn)
            if address % SIZES[step.access]:
                return turn, n, address
    return None


FORMS = {
    "direct": [Step("added", 1, "lw")],
    "loaded": [Step("loaded", 1, "lw")],
    "masked": [Step("masked", 7, "lw")],
    "multiplied": [Step("multiplied", 3, "sw")],
    "later": [Step("added", 4, "lw")] * 2 + [Step("multiplied", 12, "lw"), Step("masked", 6, "lw")],
}
