"""`TimingModel`: estimated cycles of a core's instructions, read from data files.

A file in ``models`` gives cycles for classes of instructions; a file in ``instructions`` says which
instructions each class of an instruction set has. Every figure is an estimate: a static cost of
each instruction plus the cost of branches that are taken. Caches, wait states, bus contention and
most data hazards are left out.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, TypeVar

import msgspec
import yaml

from covp.cores import Core
from covp.errors import PlatformError, near_misses

_Kind = TypeVar("_Kind")
Cycles = Annotated[int, msgspec.Meta(ge=0, le=1000)]
_FOLDER = Path(__file__).parent
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_UNITS = {"": 0, "alu": 1, "mac": 2, "port": 3}
_REGISTER, _NUMBER = "r", "n"


@dataclass(frozen=True)
class Rule:
    """The cycles of the instructions with ``bits & mask == match``.

    Attributes:
        bytes: 2 or 4.
        mask, match: over the instruction's bits; Arm 32-bit: first halfword on top.
        cycles: estimated cycles.
        list: one more cycle for each of these bits that is set (register lists); with ``counted``
            the value of these low bits instead.
        counted: see ``list``.
        taken: extra cycles when a conditional branch is taken.
        loads: the next instruction, if it accesses memory, takes a cycle less.
        accesses: accesses memory.
        unit: neighbours with different units other than 0 issue together.
    """

    bytes: int
    mask: int
    match: int
    cycles: int = 1
    list: int = 0
    counted: bool = False
    taken: int = 0
    loads: bool = False
    accesses: bool = False
    unit: int = 0


@dataclass(frozen=True)
class TimingModel:
    """The timing model of a microarchitecture.

    Attributes:
        name: of its file.
        source: where the figures come from.
        assumes: what they leave out, e.g. "zero wait states".
        error: largest known relative error, e.g. 0.003; None where it was never checked.
        rules: the first one that matches an instruction decides; without one it takes a cycle.
    """

    name: str
    source: str
    assumes: str
    error: float | None
    rules: tuple[Rule, ...]


class _Class(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"name": "class"}):
    """One class of ``instructions/*.yaml``."""

    name: str
    patterns: tuple[str, ...]
    access: Literal["", "load", "store"] = ""
    unit: Literal["", "alu", "mac", "port"] = ""


class _Model(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of ``models/*.yaml``.

    Attributes:
        instructions: the instruction set; None: all instructions take a cycle.
        cycles: class to cycles, where it is not 1.
        taken: class of branches to extra cycles when one is taken.
        pipelined_accesses: a load or store directly after a load takes a cycle less.
        dual_issue: two neighbours of different units issue together.
    """

    source: str
    assumes: str
    error: float | None = None
    instructions: str | None = None
    cycles: dict[str, Cycles] = {}
    taken: dict[str, Cycles] = {}
    pipelined_accesses: bool = False
    dual_issue: bool = False


def model_names() -> list[str]:
    """Names of the timing models that come with covp."""
    return sorted(path.stem for path in (_FOLDER / "models").glob("*.yaml"))


@functools.cache
def load_timing(name: str) -> TimingModel:
    """A timing model by name, or by the path of its YAML file.

    Raises:
        PlatformError: unknown name, unreadable file, or a wrong key; the text says which.
    """
    if name.endswith((".yaml", ".yml")):
        return read_model(Path(name))
    path = _FOLDER / "models" / f"{name}.yaml"
    if not path.is_file():
        raise PlatformError(f"unknown timing model {name!r}: {near_misses(name, model_names())}")
    return read_model(path)


def core_timing(core: Core) -> TimingModel:
    """The timing model of a core; one cycle per instruction where there is none."""
    return load_timing(core.timing or "unit")


def read_model(path: Path) -> TimingModel:
    """Read and check the file of a timing model. Raises PlatformError."""
    model = _read(path, _Model)
    classes = _instruction_classes(path, model.instructions)
    names = [one.name for one in classes]
    for key, costs in (("cycles", model.cycles), ("taken", model.taken)):
        for name in costs.keys() - set(names):
            raise PlatformError(
                f"{path}: {key}.{name}: no such class of instructions: {near_misses(name, names)}"
            )
    rules = tuple(_rule(model, one, pattern) for one in classes for pattern in one.patterns)
    return TimingModel(path.stem, model.source, model.assumes, model.error, rules)


def _instruction_classes(path: Path, instructions: str | None) -> tuple[_Class, ...]:
    if instructions is None:
        return ()
    there = _FOLDER / "instructions" / f"{instructions}.yaml"
    if not there.is_file():
        known = [file.stem for file in there.parent.glob("*.yaml")]
        raise PlatformError(
            f"{path}: instructions: {instructions!r} is unknown: {near_misses(instructions, known)}"
        )
    return _classes(there)


@functools.cache
def _classes(path: Path) -> tuple[_Class, ...]:
    return _read(path, tuple[_Class, ...])


def _read(path: Path, kind: type[_Kind]) -> _Kind:
    try:
        content = yaml.load(path.read_text(encoding="utf-8"), _LOADER)
        return msgspec.convert(content, kind)
    except FileNotFoundError:
        raise PlatformError(f"{path}: no such timing model file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise PlatformError(f"{path}: cannot be read: {error}") from None
    except yaml.YAMLError as error:
        raise PlatformError(f"{path}: not valid YAML: {' '.join(str(error).split())}") from None
    except msgspec.ValidationError as error:
        raise PlatformError(f"{path}: {error}") from None


def _rule(model: _Model, one: _Class, pattern: str) -> Rule:
    text = pattern.replace(" ", "")
    listed = _REGISTER if _REGISTER in text else _NUMBER
    return Rule(
        bytes=len(text) // 8,
        mask=_bits(text, "01"),
        match=_bits(text, "1"),
        cycles=model.cycles.get(one.name, 1),
        list=_bits(text, listed),
        counted=_NUMBER in text,
        taken=model.taken.get(one.name, 0),
        loads=model.pipelined_accesses and one.access == "load",
        accesses=model.pipelined_accesses and one.access != "",
        unit=_UNITS[one.unit] if model.dual_issue else 0,
    )


def _bits(pattern: str, digits: str) -> int:
    """The bits of a pattern that are one of the digits."""
    return int("".join("1" if digit in digits else "0" for digit in pattern), 2)
