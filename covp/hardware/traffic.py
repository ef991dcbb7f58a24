"""`TrafficLedger`: the bytes that hardware moves, by phase of the program and memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from covp.hardware.observer import Observer


class TrafficEntry(NamedTuple):
    """The key under which bytes are added up.

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
"""Name of the memory for bytes that a model reports as moved without an address."""


class TrafficLedger(Observer):
    """An observer of a bus that counts the bytes that hardware moves.

    Args:
        phase: returns the phase of the running program.

    Attributes:
        bytes_moved: by what they are added up by.
    """

    def __init__(self, phase: Callable[[], int]) -> None:
        self.bytes_moved: Counter[TrafficEntry] = Counter()
        self._phase = phase

    def moved(self, master: str, place: str, is_write: bool, size: int) -> None:
        """Count ``size`` bytes of ``master`` and ``place`` by ``is_write``."""
        self.bytes_moved[TrafficEntry(self._phase(), master, place, is_write)] += size

    def restarted(self) -> None:
        """Clear all counts."""
        self.bytes_moved.clear()
