"""Tables that stay in a unit's own memory from one job to the next."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

PLACE_BYTES = 4
"""The number KEEP of a job counts places in such units, from 1 on; 0: the table does not stay."""


class KeptTables:
    """A unit's memory for tables, each at the place that the program gives it.

    A table is known again by its address and size, as constants do not change: it is loaded by
    the first job that needs it and stays until another one is loaded over it, or a reset.

    Args:
        nbytes: of the memory.
    """

    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes
        self._tables: dict[int, tuple[int, NDArray[Any]]] = {}

    def has_room(self, keep: int, nbytes: int) -> bool:
        """Return whether a table of ``nbytes`` lies in the memory at the place ``keep``."""
        return (keep - 1) * PLACE_BYTES + nbytes <= self.nbytes

    def fetch(
        self, keep: int, address: int, nbytes: int, load: Callable[[], NDArray[Any]]
    ) -> tuple[NDArray[Any], bool]:
        """Return a table, and whether it was in the memory already.

        Args:
            keep: its place.
            address, nbytes: of the table in the core's memory.
            load: reads it from there.
        """
        first = (keep - 1) * PLACE_BYTES
        known = self._tables.get(first)
        if known is not None and known[0] == address and known[1].nbytes == nbytes:
            return known[1], True
        loaded = load()
        others = {
            place: entry
            for place, entry in self._tables.items()
            if place + entry[1].nbytes <= first or first + nbytes <= place
        }
        self._tables = {**others, first: (address, loaded)}
        return loaded, False

    def clear(self) -> None:
        """Forget all tables."""
        self._tables = {}
