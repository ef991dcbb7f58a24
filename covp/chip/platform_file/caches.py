"""Caches and prefetch buffers between a core and its memory, as a platform file describes them."""

from __future__ import annotations

from typing import Annotated, Literal, NamedTuple

import msgspec

MAX_CACHES = 4
Cycles = Annotated[int, msgspec.Meta(ge=0, le=255)]
Contents = Literal["fetch", "data", "both"]
Replacement = Literal["lru", "fifo", "random"]


class Cache(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A cache, or a prefetch buffer, of one core.

    Regions of memory name the caches that they are read through (`Region.caches`). A miss stalls
    the core until the whole line is there: ``miss`` cycles and those of the transfers.

    Attributes:
        name: as regions call it.
        holds: instructions ("fetch"), what loads and stores move ("data"), or both.
        size: bytes.
        line: bytes of a line, a power of two.
        ways: lines of a set.
        replacement: of a line by another one: the least recently used, the first in, or any.
        write: "through": stores go on to memory and take no place in the cache; "back": they take
            a place as loads do, and lines that were written go back at no cost when another line
            takes their place. Bus masters see memory, not what the cache holds of RAM. A line that
            the program cleans stalls the core for as long as a miss.
        buffer: stores that go on to memory without stalling the core, while it is busy.
        bus: bytes of a transfer from memory.
        burst: only the first transfer of a line takes the region's wait states.
        miss: cycles of a miss beyond those of its transfers.
        prefetch: the line after the one that was read last is read in advance.
    """

    name: str
    holds: Contents
    size: Annotated[int, msgspec.Meta(gt=0, le=1 << 24)] | str
    line: Annotated[int, msgspec.Meta(ge=4, le=512)] = 32
    ways: Annotated[int, msgspec.Meta(ge=1, le=64)] = 1
    replacement: Replacement = "lru"
    write: Literal["through", "back"] = "through"
    buffer: Annotated[int, msgspec.Meta(ge=0, le=64)] = 2
    bus: Annotated[int, msgspec.Meta(ge=1, le=512)] = 4
    burst: bool = False
    miss: Cycles = 0
    prefetch: bool = False

    def transfer_cycles(self, wait_states: int) -> int:
        """Return the cycles until a missing line is there.

        Args:
            wait_states: of a transfer.
        """
        transfers = -(-self.line // self.bus)
        waits = wait_states if self.burst else wait_states * transfers
        return self.miss + transfers + waits

    @property
    def fetches(self) -> bool:
        """True if instructions are fetched through it."""
        return self.holds != "data"

    @property
    def has_data(self) -> bool:
        """True if loads and stores go through it."""
        return self.holds != "fetch"


class GhostCache(NamedTuple):
    """A cache of another shape that sees what a cache of the platform sees.

    Attributes:
        name: of the platform's cache.
        size: in bytes.
        line: bytes of a line.
        ways: lines of a set.
    """

    name: str
    size: int
    line: int
    ways: int

    @property
    def values(self) -> dict[str, int]:
        """The shape by the keys of a `Cache`."""
        return {"size": self.size, "line": self.line, "ways": self.ways}


def cache_problem(cache: Cache, size: int) -> str | None:
    """Return the rule that a cache's shape breaks, as the text after its key; or None.

    Args:
        cache: as in the platform file.
        size: its bytes.
    """
    if cache.line & (cache.line - 1):
        return f".line: {cache.line} is not a power of two"
    sets, rest = divmod(size, cache.line * cache.ways)
    if rest or not sets or sets & (sets - 1):
        return (
            f".size: {size} bytes are no power of two of sets of {cache.ways} lines of "
            f"{cache.line} bytes"
        )
    return None
