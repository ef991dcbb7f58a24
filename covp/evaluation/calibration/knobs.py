"""`Knob`: one integer of a timing model's file that can be fitted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from covp.device.timing.instructions import InstructionClass, InstructionPattern, InstructionSet
from covp.device.timing.model import OperandCycles, TimingFile
from covp.evaluation.calibration.costs import Classes

_LIMITS = {"cycles": 1000, "latency": 100, "early": 8, "late": 8, "taken": 50, "mispredicted": 50}
_DEFAULTS = {"cycles": 1}
_FIELDS = {"division": ("zero_divisor",), "shift": ("amount",)}
"""Fields of `OperandCycles`; those that count bits are a matter of structure."""
_MOST_BY_OPERANDS = 1000


@dataclass(frozen=True)
class Knob:
    """A number of a `TimingFile`.

    Attributes:
        key: of the file, e.g. "cycles".
        name: of the class, where the key has one number for each.
        field: of the class's `OperandCycles`, where it has several.
        least, most: of the number.
        default: that is left out of a file.
    """

    key: str
    name: str = ""
    field: str = ""
    least: int = 0
    most: int = 10
    default: int = 0

    @property
    def classes(self) -> Classes | None:
        """Classes of instructions whose time it changes; None: all."""
        if self.field:
            return frozenset()  # counted apart from blocks
        return frozenset({self.name}) if self.name else None

    def get(self, model: TimingFile) -> int:
        """Return its value in a model."""
        value: Any = getattr(model, self.key)
        if self.field:
            value = getattr(value.get(self.name, OperandCycles()), self.field)
        elif self.name:
            value = value.get(self.name, self.default)
        return int(value or 0)

    def put(self, model: TimingFile, value: int) -> TimingFile:
        """Return the model with another value."""
        if not self.name:
            return msgspec.structs.replace(model, **{self.key: value})
        content = dict(getattr(model, self.key))
        if self.field:
            content[self.name] = _operands(content.get(self.name), self.field, value)
        else:
            content[self.name] = value
        is_default = content[self.name] in (self.default, OperandCycles()) and (
            self.field or content[self.name] == self.default
        )
        if is_default:
            del content[self.name]
        return msgspec.structs.replace(model, **{self.key: content})


def _operands(before: OperandCycles | None, field: str, value: int) -> OperandCycles:
    special = value or None if field == "zero_divisor" else value
    return msgspec.structs.replace(before or OperandCycles(), **{field: special})


EVERYWHERE = (
    Knob("split"),
    Knob("misaligned"),
    Knob("after_store"),
    Knob("transfers", least=1, most=4, default=1),
)
"""Knobs of all instructions."""


def all_knobs(known: InstructionSet, names: Iterable[str]) -> list[Knob]:
    """Return the knobs that the time of some classes of instructions depends on.

    Args:
        known: the instruction set.
        names: of the classes that programs execute.
    """
    wanted = set(names)
    kinds = [kind for kind in known.classes if kind.name in wanted]
    knobs = list(EVERYWHERE)
    for kind in kinds:
        knobs += _of_class(kind)
    return list(dict.fromkeys(knobs))


def _of_class(kind: InstructionClass) -> Iterator[Knob]:
    patterns = [InstructionPattern.of(text) for text in kind.patterns]
    reads = {field.letter for pattern in patterns for field in pattern.reads}
    writes = any(pattern.writes for pattern in patterns) or kind.also_writes
    keys = ["cycles"]
    keys += ["latency"] * bool(writes)
    keys += ["early"] * bool(reads - {"u", "U"} or kind.also_reads)
    keys += ["late"] * bool(reads & {"u", "U"})
    keys += ["taken", "mispredicted"] * (kind.cause == "branch" and not kind.jumps)
    does_something = reads or writes or kind.access or kind.cause == "branch"
    does_something = does_something and not kind.by_places
    for key in keys:
        least = int(key == "cycles" and bool(does_something))
        yield Knob(key, kind.name, least=least, most=_LIMITS[key], default=_DEFAULTS.get(key, 0))
    for field in _FIELDS.get(kind.operands, ()):
        least = -_MOST_BY_OPERANDS if field == "zero_divisor" else 0
        yield Knob("operands", kind.name, field, least, _MOST_BY_OPERANDS)
