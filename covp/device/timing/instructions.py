"""Instruction sets as timing models see them: classes of instructions and their operands.

The files are in ``instructions``. A pattern is an instruction's bits as the manuals write them; the
letters in it say what lies there.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar

import msgspec
import yaml

from covp.errors import PlatformError, near_misses

_Kind = TypeVar("_Kind")
_FOLDER = Path(__file__).parent / "instructions"
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
LETTERS = "01xrnkstuvdeabcfwSTUDA"
"""0 and 1 are fixed bits, x is any bit; r: a register of a list; n: a bit of a count; k: of the
places of a shift. The others are bits of a register's number: s, t: a source; u, v: a source that
some cores need late (data to store, an accumulator); d, e: a destination; a, b: both; c, f: both,
needed late, as A; w: a base that is written back; capitals: floats."""


class InstructionClass(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"name": "class"}
):
    """A class of instructions.

    Attributes:
        name: by which timing models give cycles; several classes may share it.
        patterns: bits, see `LETTERS`.
        like: a class whose times they have where a timing model gives them none of their own.
        access: whether they access memory.
        unit: that executes them, for cores that issue several instructions in a cycle.
        shares: a further unit that they use in their cycle.
        cause: of the cycles after the first one.
        also_reads, also_writes: integer registers that the encoding implies.
        jumps: unconditional: what they lead to was jumped to, even if it comes next.
        operands: what their values may decide the time of, on some cores.
    """

    name: str
    patterns: tuple[str, ...]
    like: str = ""
    access: Literal["", "load", "store"] = ""
    unit: str = ""
    shares: str = ""
    cause: Literal["issue", "branch", "multiply", "access", "custom"] = "issue"
    also_reads: tuple[int, ...] = ()
    also_writes: tuple[int, ...] = ()
    operands: Literal["", "division", "shift"] = ""
    jumps: bool = False

    @property
    def by_places(self) -> bool:
        """True if the instructions shift by a constant that some cores take cycles for."""
        return any("k" in text for text in self.patterns)

    @property
    def has_floats(self) -> bool:
        """True if all of the instructions read or write float registers."""
        return all(any(letter in "STUDA" for letter in text) for text in self.patterns)


class InstructionSet(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of a file in ``instructions``.

    Attributes:
        classes: the first pattern that matches an instruction decides.
        short_registers: added to the numbers of registers of 3 bits.
        zero_register: number of the register that is always zero; None: there is none.
    """

    classes: tuple[InstructionClass, ...]
    short_registers: int = 0
    zero_register: int | None = None

    @property
    def class_names(self) -> list[str]:
        """Names of the classes, each once."""
        return list(dict.fromkeys(one.name for one in self.classes))

    @property
    def with_operands(self) -> list[str]:
        """Names of the classes whose time may depend on operands, in order."""
        return list(dict.fromkeys(one.name for one in self.classes if one.operands))

    @property
    def units(self) -> list[str]:
        """Names of the units that the classes name, in order."""
        names = (name for one in self.classes for name in (one.unit, one.shares))
        return list(dict.fromkeys(name for name in names if name))


NO_INSTRUCTIONS = InstructionSet(())


@dataclass(frozen=True)
class InstructionField:
    """The bits of an instruction that hold a register's number.

    Attributes:
        letter: one of `LETTERS`.
        mask: the bits, the highest first.
    """

    letter: str
    mask: int

    @property
    def is_float(self) -> bool:
        """True if the field is a float register's."""
        return self.letter.isupper()

    @property
    def is_rotated(self) -> bool:
        """True if the lowest bit is the number's highest, as in N:Vn of Arm's float operands."""
        rest = self.mask & (self.mask - 1)
        return self.is_float and rest != 0 and rest >> 1 & self.mask & ~rest == 0


@dataclass(frozen=True)
class InstructionPattern:
    """A pattern of instructions, as parsed.

    Attributes:
        bytes: 2 or 4.
        mask, match: the instruction matches if ``bits & mask == match``; Arm 32-bit: first
            halfword on top.
        list, counted: bits of a register list, or (counted) of a count.
        optional: these take time only where the timing model says so.
        reads, writes: up to four, up to two.
    """

    bytes: int
    mask: int
    match: int
    list: int
    counted: bool
    optional: bool
    reads: tuple[InstructionField, ...]
    writes: tuple[InstructionField, ...]

    @classmethod
    def of(cls, text: str) -> InstructionPattern:
        """Return a pattern of 16 or 32 of `LETTERS`; spaces mean nothing."""
        bits = text.replace(" ", "")
        return cls(
            bytes=len(bits) // 8,
            mask=_bits(bits, "01"),
            match=_bits(bits, "1"),
            list=_bits(bits, "rnk"),
            counted="n" in bits or "k" in bits,
            optional="k" in bits,
            reads=_fields(bits, "stuvabcfwSTUA"),
            writes=_fields(bits, "deabcfwDA"),
        )


def _fields(bits: str, letters: str) -> tuple[InstructionField, ...]:
    found = (InstructionField(letter, _bits(bits, letter)) for letter in letters)
    return tuple(field for field in found if field.mask)


def _bits(pattern: str, digits: str) -> int:
    """Return the bits of a pattern that are one of the digits."""
    return int("".join("1" if digit in digits else "0" for digit in pattern), 2)


@functools.cache
def load_instructions(name: str) -> InstructionSet:
    """Return the instruction set of that name. Raises PlatformError: there is none."""
    path = _FOLDER / f"{name}.yaml"
    if not path.is_file():
        known = [file.stem for file in _FOLDER.glob("*.yaml")]
        raise PlatformError(f"instructions: {name!r} is unknown:", hint=near_misses(name, known))
    return read_yaml(path, InstructionSet)


def read_yaml(path: Path, kind: type[_Kind]) -> _Kind:
    """Return the content of a YAML file.

    Args:
        path: of the file.
        kind: a msgspec structure that it is checked against.

    Raises:
        PlatformError: every mistake, on one line.
    """
    try:
        content = yaml.load(path.read_text(encoding="utf-8"), _LOADER)
        return msgspec.convert(content, kind)
    except FileNotFoundError:
        raise PlatformError("no such timing model file", where=path) from None
    except (OSError, UnicodeDecodeError) as error:
        raise PlatformError(f"cannot be read: {error}", where=path) from None
    except RecursionError:
        raise PlatformError("not valid YAML: nested too deeply", where=path) from None
    except (yaml.YAMLError, ValueError, KeyError) as error:
        if isinstance(error, msgspec.ValidationError):
            raise PlatformError(f"{error}", where=path) from None
        raise PlatformError(f"not valid YAML: {' '.join(str(error).split())}", where=path) from None
