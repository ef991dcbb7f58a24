"""`Limit`: a condition on which an accelerator accepts a layer, as data that reports can print."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Limit:
    """A requirement on one value of a layer. All the bounds given have to hold.

    Attributes:
        name: of the value, e.g. "kernel height".
        value: of the layer.
        at_least, at_most: of numbers, both allowed.
        one_of: the values allowed.
    """

    name: str
    value: Any
    at_least: float | None = None
    at_most: float | None = None
    one_of: tuple[Any, ...] = ()

    @property
    def holds(self) -> bool:
        """True if the layer fits."""
        if self.at_least is not None and not self.value >= self.at_least:
            return False
        if self.at_most is not None and not self.value <= self.at_most:
            return False
        return not self.one_of or self.value in self.one_of

    @property
    def allowed(self) -> str:
        """The bound in words."""
        words = []
        if self.at_least is not None:
            words.append(f"at least {self.at_least}")
        if self.at_most is not None:
            words.append(f"at most {self.at_most}")
        if self.one_of:
            words.append(f"only {' or '.join(map(str, self.one_of))}")
        return " and ".join(words)

    def __str__(self) -> str:
        return f"{self.name} {self.value}; {self.allowed}"


def broken_limits(limits: Iterable[Limit]) -> tuple[Limit, ...]:
    """Return the limits that do not hold."""
    return tuple(limit for limit in limits if not limit.holds)
