"""`Coefficient` and `CoefficientTable`: chips and technologies from data files, with sources.

``microcontrollers.yaml`` has what a cycle of a chip costs, ``technologies.yaml`` what operations,
bytes and area cost in a technology. A figure without a source is not a coefficient.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import yaml

from covp.errors import PlatformError, near_misses

Positive = Annotated[float, msgspec.Meta(gt=0, le=1e9)]
Unit = Literal["pJ", "pJ/cycle", "pJ/byte", "uA/MHz", "um2", "um2/KB"]
_FOLDER = Path(__file__).parent
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Figure(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    value: Positive
    unit: Unit
    low: Positive | None = None
    high: Positive | None = None
    note: str = ""


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    about: str
    source: Annotated[str, msgspec.Meta(min_length=10)]
    coefficients: dict[str, _Figure]
    node: str | None = None
    volts: Positive | None = None


@dataclass(frozen=True)
class Coefficient:
    """A published figure.

    Attributes:
        value: in ``unit``.
        unit: "pJ" of an operation, "pJ/cycle", "pJ/byte", "uA/MHz", "um2" or "um2/KB" (1024 bytes).
        low, high: the least and the greatest of other published figures of the same thing; None
            where there is only one.
        node: the technology, e.g. "45 nm"; None where the source does not say.
        volts: of the supply; None where the source does not say.
        source: the paper and table, data sheet or published result.
        note: how it follows from what the source has; may be empty.
    """

    value: float
    unit: Unit
    low: float | None
    high: float | None
    node: str | None
    volts: float | None
    source: str
    note: str = ""

    @property
    def per_cycle(self) -> Coefficient:
        """The coefficient in pJ/cycle: uA/MHz times volts, as charge a cycle times voltage."""
        if self.unit != "uA/MHz":
            return self
        assert self.volts is not None, "read_tables demands it"
        value, low, high = (
            None if x is None else x * self.volts for x in (self.value, self.low, self.high)
        )
        assert value is not None
        note = f"{self.value:g} uA/MHz at {self.volts:g} V"
        return Coefficient(value, "pJ/cycle", low, high, self.node, self.volts, self.source, note)


@dataclass(frozen=True)
class CoefficientTable:
    """The coefficients of one chip or technology.

    Attributes:
        name: as users write it.
        about: what was measured or synthesized, under which conditions.
        coefficients: by key, e.g. "run", "mac_int8".
    """

    name: str
    about: str
    coefficients: dict[str, Coefficient]


@functools.cache
def microcontrollers() -> dict[str, CoefficientTable]:
    """Read the cost of a cycle (key "run"), by the name of the chip and its supply."""
    return read_tables(_FOLDER / "microcontrollers.yaml")


@functools.cache
def technologies() -> dict[str, CoefficientTable]:
    """Read the cost of operations, bytes and area, by technology."""
    return read_tables(_FOLDER / "technologies.yaml")


def read_tables(path: Path) -> dict[str, CoefficientTable]:
    """Read and check a file of tables.

    Raises:
        PlatformError: a key or value is wrong, a source is missing, or uA/MHz has no voltage.
    """
    content = yaml.load(path.read_text(encoding="utf-8"), _LOADER)
    try:
        tables = msgspec.convert(content, dict[str, _Table])
    except msgspec.ValidationError as error:
        raise PlatformError(f"{error}", where=path) from None
    for name, table in tables.items():
        if table.volts is None and any(f.unit == "uA/MHz" for f in table.coefficients.values()):
            raise PlatformError(f"{name}: uA/MHz needs volts", where=path)
    return {name: _table(name, table) for name, table in tables.items()}


def _table(name: str, table: _Table) -> CoefficientTable:
    return CoefficientTable(
        name,
        table.about,
        {
            key: Coefficient(
                one.value,
                one.unit,
                one.low,
                one.high,
                table.node,
                table.volts,
                table.source,
                one.note,
            )
            for key, one in table.coefficients.items()
        },
    )


def find_microcontroller(name: str) -> CoefficientTable:
    """Return a table of `microcontrollers`.

    Raises:
        PlatformError: there is none of this name; the text has the nearest.
    """
    if name not in microcontrollers():
        known = near_misses(name, microcontrollers())
        raise PlatformError(f"there is no table {name!r}: {known}")
    return microcontrollers()[name]
