"""Parameters of an accelerator: declared once, read from text, checked."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from covp.errors import AcceleratorError, UsageError, near_misses

Value = bool | int | float | str
_TRUE, _FALSE = frozenset({"true", "yes", "on", "1"}), frozenset({"false", "no", "off", "0"})


@dataclass(frozen=True)
class Parameter:
    """A setting of an accelerator.

    Attributes:
        name: a Python identifier.
        default: its type is the parameter's: bool, int, float or str.
        description: one line with the unit.
        minimum, maximum: of numbers, both allowed; None where there is no limit.
        choices: the texts allowed, where only some are.
        timing: it changes nothing but how long the hardware takes: neither the layers that the
            accelerator accepts nor what its driver does. Designs that differ in such parameters
            alone are retimed without a run (`covp.exploration.retiming.retime`).
        other: makes a value of a text that is not a choice, or raises ValueError; None: none is.
    """

    name: str
    default: Value
    description: str
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()
    timing: bool = False
    other: Callable[[str], str] | None = None

    def text(self, value: Value) -> str:
        """Return the value as a user writes it."""
        return str(value).lower() if isinstance(self.default, bool) else str(value)

    def read(self, given: str | Value) -> Value:
        """Return a value of the parameter's type.

        Raises:
            ValueError: it is none, or outside the limits; the text says what is allowed.
        """
        value = _convert(given, type(self.default))
        if self.choices and value not in self.choices:
            if self.other is not None:
                return self.other(str(value))
            raise ValueError(f"must be one of {', '.join(self.choices)}")
        if not isinstance(value, (str, bool)):
            if self.minimum is not None and not value >= self.minimum:
                raise ValueError(f"must be at least {self.minimum:g}")
            if self.maximum is not None and not value <= self.maximum:
                raise ValueError(f"must be at most {self.maximum:g}")
        return value


def _convert(given: str | Value, kind: type) -> Value:
    if kind is bool:
        text = str(given).lower()
        if text not in _TRUE | _FALSE:
            raise ValueError("must be true or false")
        return text in _TRUE
    if kind is int:
        try:
            number = given if isinstance(given, float) else int(str(given), 0)
        except ValueError:
            raise ValueError("must be an integer") from None
        if isinstance(given, bool) or not math.isfinite(number) or number != int(number):
            raise ValueError("must be an integer")
        return int(number)
    if kind is float:
        try:
            return float(given)
        except ValueError:
            raise ValueError("must be a number") from None
    return str(given)


def _check_declarations(owner: str, declared: Sequence[object]) -> None:
    names: set[str] = set()
    for parameter in declared:
        if not isinstance(parameter, Parameter):
            raise AcceleratorError(f"accelerator {owner}: {parameter!r} is not a Parameter")
        name = parameter.name
        if name in names or not name.isidentifier():
            twice = "is declared twice" if name in names else "is not a valid identifier"
            raise AcceleratorError(f"accelerator {owner}: parameter {name!r} {twice}")
        names.add(name)
        try:
            parameter.read(parameter.default)
        except ValueError as error:
            raise AcceleratorError(
                f"accelerator {owner}: parameter {name}'s default {parameter.default!r} {error}"
            ) from None


def read_parameters(
    owner: str, declared: Sequence[Parameter], given: Mapping[str, str | Value]
) -> dict[str, Value]:
    """Return the value of every declared parameter: as given, else the default.

    Args:
        owner: name of the accelerator, for errors.
        declared: the parameters.
        given: values by name; text is converted.

    Raises:
        UsageError: an unknown name or a value that the parameter does not allow.
        AcceleratorError: the declarations themselves are wrong.
    """
    _check_declarations(owner, declared)
    known = {parameter.name: parameter for parameter in declared}
    for name in given:
        if name not in known:
            raise UsageError(
                f"accelerator {owner} has no parameter {name!r}:", hint=near_misses(name, known)
            )
    values = {parameter.name: parameter.default for parameter in declared}
    for name, text in given.items():
        try:
            values[name] = known[name].read(text)
        except ValueError as error:
            raise UsageError(f"accelerator {owner}: {name}={text} {error}") from None
    return values


def split_parameters(owner: str, text: str) -> dict[str, str]:
    """Return the text "key=value,key=value" as a mapping; ``owner`` is the accelerator, for errors.

    Raises:
        UsageError: a part without "=", or a name given twice.
    """
    values: dict[str, str] = {}
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not name:
            raise UsageError(f"accelerator {owner}: {part!r} is not of the form key=value")
        if name in values:
            raise UsageError(f"accelerator {owner}: parameter {name} is given twice")
        values[name] = value
    return values
