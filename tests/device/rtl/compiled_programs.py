"""Random programs made of what compilers make, for a core's RTL: see `compiled_program`."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

DATA = 0x2000
"""Of what the program reads and writes, from the start of RAM."""
_VALUES = [f"a{n}" for n in range(6)]
_COUNTERS = ["s2", "s3", "s4", "s5"]
_FREE = ["a6", "a7", "t1", "t3", "t4"]
_BRANCHES = ("beq", "bne", "blt", "bge", "bltu", "bgeu")
_LEAVES = 3
_TEXT = """
start:
 li s1, {data}
 li sp, {stack}
 mv t1, s1
 li t2, 64
1:
 sw s1, 0(t1)
 addi t1, t1, 4
 addi t2, t2, -1
 bnez t2, 1b
 {values}
{body}
 j end
{leaves}
 .balign 16
end:
 j end
"""


def compiled_program(source: random.Random, ram: int, compressed: bool = True) -> str:
    """Loops that are entered at their top, in their middle or at their condition, at any halfword.

    In them are ifs and elses, loads before branches and into their own base register, calls with
    and without a frame, jump tables, multiplications and divisions. The labels are ``start`` and
    ``end``.

    Args:
        source: of chance.
        ram: where RAM starts; the program itself is in flash.
        compressed: with instructions of two bytes.
    """
    text = _Writer(source).program(ram + DATA)
    if compressed:
        return text
    text = re.sub(r"c\.add (\w+),", r"add \1, \1,", text).replace(" c.", " ")
    return text.replace("slli a6, a6, 1", "slli a6, a6, 2")  # in tables of jumps


class _Writer:
    """Writes one program."""

    def __init__(self, source: random.Random) -> None:
        self._source, self._labels = source, 0
        self._deepest = source.randint(0, 2)

    def program(self, data: int) -> str:
        """All of it; it may use 4096 bytes of memory from ``data`` on."""
        body = [line for _ in range(self._source.randint(1, 3)) for line in self._loop(0)]
        leaves = [line for number in range(_LEAVES) for line in self._leaf(number)]
        values = (f"li {name}, {self._source.getrandbits(8)}" for name in (*_VALUES, *_FREE))
        return _TEXT.format(
            data=data,
            stack=data + 0x800,
            values="\n ".join(values),
            body="\n".join(body),
            leaves="\n".join(leaves),
        )

    def _label(self) -> str:
        self._labels += 1
        return f".L{self._labels}"

    def _aligned(self) -> list[str]:
        """Code goes on at any halfword: what alignment compilers leave to chance."""
        return [" .balign 4", *[" c.nop"] * self._source.randint(0, 1)]

    def _loop(self, depth: int) -> list[str]:
        """It counts down; entered at the top, by a jump to its condition, or in the middle."""
        source, counter = self._source, _COUNTERS[depth]
        top, middle, end = self._label(), self._label(), self._label()
        first, second = self._statements(depth), self._statements(depth)
        step = [f" addi {counter}, {counter}, -1"]
        rounds = source.randint(3, 6) if depth else source.randint(20, 60)
        enter = source.choice(["top", "middle", "condition"])
        condition = self._label()
        lines = [f" li {counter}, {rounds}"]
        lines += [f" j {middle}"] if enter == "middle" else []
        lines += [f" j {condition}"] if enter == "condition" else []
        lines += self._aligned() if source.random() < 0.7 else []
        lines += [f"{top}:", *first]
        if source.random() < 0.3:  # the loop has another end
            lines += [f" bltz {counter}, {end}"]
        lines += [f"{middle}:", *second]
        lines += [*step, f"{condition}:"] if enter == "condition" else [f"{condition}:", *step]
        lines += [f" lw {source.choice(_VALUES)}, 4(s1)"] * (source.random() < 0.3)
        close = source.choice(["bnez {0}, {1}", "bgtz {0}, {1}", "blt x0, {0}, {1}"])
        return [*lines, " " + close.format(counter, top), f"{end}:"]

    def _statements(self, depth: int) -> list[str]:
        kinds: list[Callable[[int], list[str]]] = [self._if, self._if, self._calls, self._table]
        kinds += [self._straight] * 6
        kinds += [self._inner] if depth < self._deepest else []
        chosen = (self._source.choice(kinds) for _ in range(self._source.randint(1, 3)))
        return [line for kind in chosen for line in kind(depth)]

    def _inner(self, depth: int) -> list[str]:
        return self._loop(depth + 1)

    def _straight(self, depth: int) -> list[str]:
        count = self._source.randint(1, 4)
        return [line for _ in range(count) for line in self._line()]

    def _line(self) -> list[str]:
        source = self._source
        to, one, other = (source.choice(_VALUES) for _ in range(3))
        far = source.choice([*_FREE, *_VALUES])
        offset = 4 * source.randint(0, 15)
        cell = source.choice([f" lw {to}, {offset}(s1)", f" lw {far}, {offset}(s1)"])
        choices: list[list[str]] = [
            [f" c.add {to}, {one}"],
            [f" add {to}, {one}, {other}"],
            [f" addi {to}, {to}, {source.randint(1, 9)}"],
            [f" xori {to}, {one}, {source.randint(1, 99)}"],
            [f" c.mv {far}, {one}"],
            [f" slli {to}, {one}, {source.randint(1, 3)}", f" srli {to}, {to}, 1"],
            [cell],
            [cell],
            [cell, f" add {other}, {to}, {one}"],
            [f" mv {to}, s1", *[f" lw {to}, {offset}({to})"] * source.randint(1, 3)],
            [f" mv {to}, s1", *[f" c.lw {to}, {offset}({to})"] * source.randint(1, 3)],
            [f" lbu {to}, {source.randint(0, 255)}(s1)"],
            [f" sw {to}, {256 + offset}(s1)"],
            [f" sh {far}, {256 + offset}(s1)", f" lh {to}, {256 + offset}(s1)"],
            [f" mul {to}, {one}, {other}"],
            [" c.nop"],
        ]
        rare = [
            [f" mulh {to}, {one}, {other}"],
            [f" divu {to}, {one}, {other}"],
            [f" rem {to}, {one}, {far}"],
        ]
        return source.choice(rare if source.random() < 0.04 else choices)

    def _condition(self, label: str) -> list[str]:
        """A branch to a label that is sometimes taken, perhaps of what was just loaded."""
        source = self._source
        one, other = source.sample(_VALUES, 2)
        counter = _COUNTERS[0]
        kind = source.choice(_BRANCHES)
        return source.choice(
            [
                [f" {kind} {one}, {other}, {label}"],
                [f" lw {one}, {4 * source.randint(0, 9)}(s1)", f" {kind} {one}, {other}, {label}"],
                [f" lbu {one}, {source.randint(0, 99)}(s1)", f" bnez {one}, {label}"],
                [f" lw {one}, 0(s1)", f" c.beqz {one}, {label}"],
                [f" andi {one}, {counter}, {source.choice([1, 3, 4])}", f" c.beqz {one}, {label}"],
                [f" andi {one}, {counter}, {source.choice([1, 3, 4])}", f" c.bnez {one}, {label}"],
                [f" c.bnez {one}, {label}"],
            ]
        )

    def _if(self, depth: int) -> list[str]:
        """One or several conditions with one end, or an else."""
        source, end = self._source, self._label()
        kind = source.choice(["if", "and", "or", "else"])
        if kind == "else":
            other = self._label()
            first, second = self._straight(depth), self._straight(depth)
            return [*self._condition(other), *first, f" j {end}", f"{other}:", *second, f"{end}:"]
        lines = []
        if kind == "or":
            inside = self._label()
            lines += [*self._condition(inside), *self._condition(end), f"{inside}:"]
        else:
            for _ in range(1 if kind == "if" else source.randint(2, 4)):
                lines += self._condition(end)
                lines += self._line() if source.random() < 0.3 else []
        return [*lines, *self._straight(depth), f"{end}:"]

    def _calls(self, depth: int) -> list[str]:
        leaf = f"leaf{self._source.randrange(_LEAVES)}"
        if self._source.random() < 0.3:
            return self._source.choice(
                [[f" la t0, {leaf}", " jalr t0"], [f" la ra, {leaf}", " jalr ra, 0(ra)"]]
            )
        return [f" jal ra, {leaf}"]

    def _table(self, depth: int) -> list[str]:
        """A switch: a jump into a row of jumps."""
        base, end = self._label(), self._label()
        cases = [self._label() for _ in range(2)]
        lines = [f" la t0, {base}", f" andi a6, {_COUNTERS[0]}, 1", " slli a6, a6, 1"]
        lines += [" add t0, t0, a6", " jr t0", f"{base}:"]
        lines += [f" c.j {label}" for label in cases]
        for label in cases:
            lines += [f"{label}:", *self._straight(depth), f" j {end}"]
        return [*lines[:-1], f"{end}:"]

    def _leaf(self, number: int) -> list[str]:
        """A function, with or without a frame, that may return early."""
        lines = [*self._aligned(), f"leaf{number}:"]
        has_frame = self._source.random() < 0.5
        frame = [" addi sp, sp, -16", " sw ra, 12(sp)", " sw s0, 8(sp)"] if has_frame else []
        undo = [" lw ra, 12(sp)", " lw s0, 8(sp)", " addi sp, sp, 16"] if has_frame else []
        out = self._label()
        lines += [*frame, *self._condition(out), *self._straight(0), f"{out}:", *undo, " ret"]
        return lines
