"""`Range`: equally spaced values of a parameter, by difference or by ratio."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from covp.accelerator.parameters import Value


class Range(
    msgspec.Struct,
    frozen=True,
    forbid_unknown_fields=True,
    rename={"first": "from", "last": "to"},
):
    """Values from `from` to `to`, both included; whole numbers between whole numbers."""

    first: int | float
    last: int | float
    steps: Annotated[int, Meta(ge=2, le=100_000, description="How many values.")]
    log: Annotated[bool, Meta(description="Equal ratios instead of equal differences.")] = False

    def values(self) -> tuple[int | float, ...]:
        """Return the values in order, each once.

        Raises:
            ValueError: equal ratios from or to 0 or less.
        """
        first, last, parts = self.first, self.last, self.steps - 1
        if self.log:
            if min(first, last) <= 0:
                raise ValueError("from and to must be above 0 where log is true")
            found = [first * (last / first) ** (step / parts) for step in range(self.steps)]
        else:
            found = [first + (last - first) * step / parts for step in range(self.steps)]
        found[-1] = last
        if isinstance(first, int) and isinstance(last, int):
            return tuple(dict.fromkeys(round(value) for value in found))
        return tuple(dict.fromkeys(found))


def values_of(given: tuple[Value, ...] | Range) -> tuple[Value, ...]:
    """Return the values of a parameter, each once. Raises ValueError: the range has none."""
    if isinstance(given, Range):
        return given.values()
    # 1 and True are equal, and different values
    return tuple({(type(value), value): value for value in given}.values())
