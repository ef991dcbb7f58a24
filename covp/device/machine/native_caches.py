"""Caches for the native side: caches.h's structures, made from a platform's."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, NamedTuple, get_args

import msgspec

from covp.chip.platform_file import Platform, parse_size
from covp.chip.platform_file.caches import Cache, GhostCache, Replacement
from covp.chip.platform_file.memory import FetchInterface
from covp.device.timing.native import RegionWaits, pointer, u32, u64

MAX_REGIONS = 16
GHOST_COUNTS = MAX_REGIONS + 2
"""Of a cache of another shape: misses by memory, sets that were gone through to empty it,
and loads among the misses of what was stored up to two instructions before."""
_FETCHES, _DATA, _ALLOCATES, _PREFETCHES = 1, 2, 4, 8
NO_LINE = 0xFFFFFFFF


class _CachedRegion(ctypes.Structure):
    _fields_ = (("start", u32), ("end", u32), ("miss", u32), ("store", u32))


class NativeCache(ctypes.Structure):
    """A Cache of counter_state.h."""

    _fields_ = (
        ("line_bits", u32), ("set_mask", u32), ("ways", u32), ("replacement", u32),
        ("flags", u32), ("region_count", u32), ("regions", _CachedRegion * MAX_REGIONS),
        ("tags", pointer), ("lookups", u64), ("misses", u64), ("prefetched_at", u64),
        ("prefetched", u32), ("latest", u32), ("random", u32), ("buffer", u32), ("written", u64),
        ("apart", pointer), ("kept", pointer), ("through", u32), ("through_bytes", u32),
        ("ram", u32),
    )  # fmt: skip


class CacheCounts(NamedTuple):
    """The number of lookups and of misses of a cache."""

    lookups: int
    misses: int


class CacheContents(NamedTuple):
    """The content of all caches; opaque."""

    items: bytes
    lines: tuple[tuple[bytes, ...], ...]


class _Lines:
    """The arrays of a `NativeCache`, which has to live as long.

    Args:
        slot: gets their addresses.
        count: lines that the cache can hold.
        size: bytes of a line.
        keeps_memory: memory may hold something else than the cache does.
    """

    def __init__(self, slot: NativeCache, count: int, size: int, keeps_memory: bool) -> None:
        tags = (u64 * count)()
        slot.tags = ctypes.addressof(tags)
        self.arrays: tuple[ctypes.Array[Any], ...] = (tags,)
        if keeps_memory:
            apart, kept = (u32 * count)(), (ctypes.c_uint8 * (count * size))()
            slot.apart, slot.kept = ctypes.addressof(apart), ctypes.addressof(kept)
            self.arrays = (tags, apart, kept)

    def save(self) -> tuple[bytes, ...]:
        """Return the content of the arrays."""
        return tuple(map(bytes, self.arrays))

    def load(self, saved: tuple[bytes, ...]) -> None:
        """Go back to saved content."""
        for array, content in zip(self.arrays, saved, strict=True):
            ctypes.memmove(array, content, len(content))


class NativeCaches:
    """The caches of a platform, empty at first.

    Args:
        platform: whose.
    """

    def __init__(self, platform: Platform) -> None:
        self.caches = platform.caches
        self.native = (NativeCache * max(1, len(self.caches)))()
        self._lines = [
            _pack(native, cache, platform, keeps_memory=True)
            for native, cache in zip(self.native, self.caches, strict=False)
        ]

    def __len__(self) -> int:
        return len(self.caches)

    @property
    def has_data(self) -> bool:
        """True if loads and stores go through one of the caches."""
        return any(cache.has_data for cache in self.caches)

    @property
    def counts(self) -> dict[str, CacheCounts]:
        """The counts of each cache, by its name."""
        return {
            cache.name: CacheCounts(native.lookups, native.misses)
            for cache, native in zip(self.caches, self.native, strict=False)
        }

    def save_state(self) -> CacheContents:
        """Return the content of the caches, and the counts."""
        return CacheContents(bytes(self.native), tuple(lines.save() for lines in self._lines))

    def load_state(self, state: CacheContents) -> None:
        """Go back to a saved state of these very caches."""
        if not self.caches:
            return
        ctypes.memmove(self.native, state.items, len(state.items))
        for lines, saved in zip(self._lines, state.lines, strict=True):
            lines.load(saved)


def _pack(slot: NativeCache, cache: Cache, platform: Platform, keeps_memory: bool) -> _Lines:
    sets = parse_size(cache.size) // (cache.line * cache.ways)
    slot.line_bits, slot.set_mask = cache.line.bit_length() - 1, sets - 1
    slot.ways, slot.replacement = cache.ways, get_args(Replacement).index(cache.replacement)
    slot.flags = (
        cache.fetches * _FETCHES
        | cache.has_data * _DATA
        | (cache.write == "back") * _ALLOCATES
        | cache.prefetch * _PREFETCHES
    )
    _pack_regions(slot, cache, platform)
    slot.prefetched = slot.latest = NO_LINE
    slot.random, slot.buffer = 1, cache.buffer
    keeps_memory = keeps_memory and cache.has_data and slot.ram != 0
    return _Lines(slot, sets * cache.ways, cache.line, keeps_memory)


def _pack_regions(slot: NativeCache, cache: Cache, platform: Platform) -> None:
    regions = [region for region in platform.memory if cache.name in region.caches]
    slot.region_count = len(regions)
    slot.ram = sum((region.kind == "ram") << place for place, region in enumerate(regions))
    for place, region in zip(slot.regions, regions, strict=False):
        waits = region.waits.data if cache.holds == "data" else region.waits.fetch
        place.start, place.end = region.start, region.end
        place.miss = cache.transfer_cycles(waits)
        place.store = 1 + region.waits.data


def uncached_waits(platform: Platform) -> list[RegionWaits]:
    """Return the wait states of each region that a core meets without caches.

    What goes through a cache waits for the cache instead.
    """
    found = []
    looks = any(cache.has_data for cache in platform.caches)
    for region in platform.memory:
        caches = [cache for cache in platform.caches if cache.name in region.caches]
        fetch = 0 if any(cache.fetches for cache in caches) else region.waits.fetch
        data = 0 if any(cache.has_data for cache in caches) else region.waits.data
        limits = region.interface or FetchInterface()
        waits = region.start, region.end, fetch, data
        found.append(RegionWaits(*waits, limits.ahead, limits.crossing, looks))
    return found


class Ghosts:
    """Caches of other shapes, empty at first, for `SegmentLog`; it has to live as long.

    Args:
        platform: whose caches they are like.
        wanted: which.
    """

    def __init__(self, platform: Platform, wanted: Sequence[GhostCache]) -> None:
        self.native = (NativeCache * max(1, len(wanted)))()
        caches = {cache.name: cache for cache in platform.caches}
        self._lines = [
            _pack(slot, msgspec.structs.replace(caches[one.name], **one.values), platform, False)
            for slot, one in zip(self.native, wanted, strict=False)
        ]
        self.count = len(wanted)


def miss_cycles(platform: Platform) -> dict[str, list[int]]:
    """Return the cycles of a miss by cache and memory: the caches that name it, in order."""
    caches = NativeCaches(platform)
    return {
        cache.name: [place.miss for place in native.regions[: native.region_count]]
        for cache, native in zip(caches.caches, caches.native, strict=False)
    }
