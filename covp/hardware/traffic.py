"""`TrafficLedger`: the bytes that bus masters move, by phase of the program and memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple


class Entry(NamedTuple):
    """What bytes are added up by.

    Attributes:
        phase: of the running program.
        master: its name.
        memory: name of the region; `UNKNOWN`.
        is_write: stored, else loaded.
    """

    phase: int
    master: str
    memory: str
    is_write: bool


UNKNOWN = "unknown"
"""The memory of bytes of which a model says that they are moved, and not where."""


class TrafficLedger:
    """Counts what buses report, while it is on.

    Args:
        phase: returns the phase of the running program.

    Attributes:
        is_on: it counts.
        moved: bytes.
        on_move: called with what `add` is, whether it counts or not.
    """

    on_move: Callable[[str, str, bool, int], None] | None = None

    def __init__(self, phase: Callable[[], int]) -> None:
        self.is_on = False
        self.moved: Counter[Entry] = Counter()
        self._phase = phase

    def add(self, master: str, memory: str, is_write: bool, size: int) -> None:
        """Some bytes were moved.

        Args:
            master, memory, is_write: see `Entry`.
            size: how many bytes.
        """
        if self.on_move is not None and size:
            self.on_move(master, memory, is_write, size)
        if self.is_on and size:
            self.moved[Entry(self._phase(), master, memory, is_write)] += size
