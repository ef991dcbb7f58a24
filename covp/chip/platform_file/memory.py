"""`Region`: a stretch of memory of a platform; sizes, wait states, regions that are one."""

from __future__ import annotations

import bisect
import functools
import re
from collections.abc import Collection
from typing import Annotated, Literal

import msgspec

Address = Annotated[int, msgspec.Meta(ge=0, le=0xFFFFFFFF)]
Wait = Annotated[int, msgspec.Meta(ge=0, le=255)]
Hertz = Annotated[int, msgspec.Meta(ge=1, le=10**12)]
_LARGEST = 1 << 48
_SIZE = re.compile(r"^\s*([0-9]{1,12})\s*([KkMm]i?[Bb]?)\s*$")


Kind = Literal["flash", "ram"]


class WaitStates(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Wait states of a memory, apart for instructions and data."""

    fetch: Wait = 0
    data: Wait = 0


class FetchInterface(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a memory lets of the core's instruction fetch, beside its wait states.

    Attributes:
        ahead: fetches that are requested or held before their instructions issue, at most; 0: as
            many as the core can.
        crossing: instructions of 4 bytes in a row of which each crosses a word, up to the first
            that issues a cycle later; 0: any number.
    """

    ahead: Annotated[int, msgspec.Meta(ge=0, le=7)] = 0
    crossing: Annotated[int, msgspec.Meta(ge=0, le=255)] = 0


class Region(msgspec.Struct, frozen=True, forbid_unknown_fields=True, dict=True):
    """A stretch of memory.

    ``kind`` "flash" holds code and constants and cannot be written by the program; "ram" holds
    the rest. ``size`` is bytes, or text such as "320K" or "1M" (powers of 1024). ``wait_states``
    are the cycles that an access to a word takes beyond the least; a number is for both kinds,
    None where they are not known: none are counted then, and of a flash every figure says so.
    ``clocks`` says in their place how many there are by the clock: the highest core clock in Hz
    with none, with one, two ...; a platform's reader and `vary_design` keep the two alike.
    ``caches`` names those that it is read through; ``interface``: how instructions come from it.
    """

    name: str
    kind: Kind
    start: Address
    size: int | str
    wait_states: Wait | WaitStates | None = None
    clocks: tuple[Hertz, ...] = ()
    caches: tuple[str, ...] = ()
    interface: FetchInterface | None = None

    # cached: every access to memory asks for them
    @functools.cached_property
    def bytes(self) -> int:
        """The size in bytes."""
        return parse_size(self.size)

    @functools.cached_property
    def end(self) -> int:
        """First address past the end of the region."""
        return self.start + self.bytes

    @functools.cached_property
    def waits(self) -> WaitStates:
        """The wait states of fetches and of loads and stores; zero where they are not known."""
        both = self.wait_states or 0
        return both if isinstance(both, WaitStates) else WaitStates(both, both)

    def at_clock(self, hertz: int) -> Region:
        """Return the region with the wait states that ``clocks`` gives for a core clock in Hz."""
        if not self.clocks:
            return self
        waits = bisect.bisect_left(self.clocks, hertz)
        return msgspec.structs.replace(self, wait_states=waits)

    def holds(self, address: int, size: int = 1) -> bool:
        """Return whether all of ``size`` bytes from ``address`` lie in the region."""
        return self.start <= address and address + size <= self.end

    def overlaps(self, other: Region) -> bool:
        """Return whether the two have bytes in common."""
        return self.start < other.end and other.start < self.end


@functools.lru_cache(maxsize=256)
def parse_size(size: int | str) -> int:
    """Return the bytes of a size such as 4096, "320K", "1M" or "64 KiB".

    Raises:
        ValueError: not a size.
    """
    if isinstance(size, int):
        if abs(size) > _LARGEST:
            raise ValueError("more than 2^48 bytes")
        return size
    match = _SIZE.match(size)
    if match is None:
        raise ValueError(f"{size!r:.40} is not a size; write bytes or such as 320K, 1M")
    return int(match[1]) * (1024 if match[2][0] in "Kk" else 1024 * 1024)


def join_regions(
    memory: tuple[Region, ...], apart: Collection[str] = frozenset()
) -> tuple[Region, ...]:
    """Join regions that are adjacent and alike, such as two banks of a flash.

    It stands where its first part was listed; its name is those of the parts in the order of their
    addresses, joined by "_".

    Args:
        memory: of a platform.
        apart: names of regions that stay alone.
    """
    rest = list(memory)
    for left in sorted(memory, key=lambda region: region.start):
        lower = next((r for r in rest if continues(r, left)), None)
        if lower is None or {lower.name, left.name} & set(apart):
            continue
        name, size = f"{lower.name}_{left.name}", lower.bytes + left.bytes
        one = msgspec.structs.replace(lower, name=name, size=size)
        first = min(rest.index(lower), rest.index(left))
        rest[first] = one
        rest = [region for region in rest if region not in (lower, left)]
    return tuple(rest)


def continues(lower: Region, upper: Region) -> bool:
    """Return whether the second one follows the first without a gap or a difference."""
    return _likeness(lower) == _likeness(upper) and lower.end == upper.start


def _likeness(region: Region) -> tuple[object, ...]:
    return (
        region.kind,
        region.wait_states is None,
        region.waits,
        region.clocks,
        region.caches,
        region.interface,
    )
