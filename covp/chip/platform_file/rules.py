"""`first_problem`: the rules on a platform that types cannot express."""

from __future__ import annotations

import re
from collections.abc import Collection

from covp.chip.cores import find_core
from covp.chip.platform_file.caches import MAX_CACHES, cache_problem
from covp.chip.platform_file.further_cores import cores_problem
from covp.chip.platform_file.memory import Region, continues, parse_size
from covp.chip.platform_file.model import Platform
from covp.errors import PlatformError, near_misses

_NAME = re.compile(r"^[A-Za-z][A-Za-z0-9_.+-]*$")


def first_problem(platform: Platform) -> str | None:
    """Return the first broken rule that types cannot express, as "key: reason"; or None."""
    for key, name in (("name", platform.name), *(("aliases", name) for name in platform.aliases)):
        if not _NAME.match(name):
            return f"{key}: {name!r} must start with a letter and hold no spaces"
    try:
        find_core(platform.core_name)
    except PlatformError as error:
        return f"core: {error}"
    problem = _memory_problem(platform) or _caches_problem(platform) or _cores_problem(platform)
    if problem:
        return problem
    problem = platform.energy.problem() if platform.energy else None
    if problem:
        return f"energy{problem}"
    return _bus_problem(platform)


def _cores_problem(platform: Platform) -> str | None:
    kinds = {region.name: region.kind for region in platform.memory}
    problem = cores_problem(
        platform.further_cores, platform.shared_memory, kinds, platform.clock_hz
    )
    if problem:
        return problem
    cached = next((r for r in platform.cached_ram if r.name in platform.named_memory), None)
    if cached is not None:
        return (
            f"memory[{platform.memory.index(cached)}].caches: {cached.name} is RAM of further "
            "cores; the first core's data cache alone holds data, so it may hold no other RAM than "
            "that core's own: leave the data cache out"
        )
    for position, name in enumerate(platform.core_names):
        problem = _stack_problem(platform.seen_by(name), platform.named_memory)
        if problem:
            return problem if position == 0 else f"further_cores[{position - 1}].{problem}"
    return None


def _stack_problem(platform: Platform, apart: Collection[str]) -> str | None:
    """Return the broken rule on the first core's stack; regions ``apart`` are joined with none."""
    try:
        stack = parse_size(platform.stack)
    except ValueError as error:
        return f"stack: {error}"
    if stack < 512 or stack % 16 or stack >= platform.ram.bytes:
        return f"stack: {stack} bytes; it must be a multiple of 16, at least 512 and below the ram"
    return _unguarded_stack(platform, apart)


def _memory_problem(platform: Platform) -> str | None:
    for position, region in enumerate(platform.memory):
        problem = (
            _extent_problem(region)
            or _clash(region, platform.memory[:position])
            or _clocks_problem(region, platform.clock_hz)
        )
        if problem:
            return f"memory[{position}]{problem}"
    return _missing_kind(platform.memory)


def _caches_problem(platform: Platform) -> str | None:
    if len(platform.caches) > MAX_CACHES:
        return f"caches: {len(platform.caches)} of them; at most {MAX_CACHES} are possible"
    for position, cache in enumerate(platform.caches):
        key = f"caches[{position}]"
        if not _is_name(cache.name):
            return f"{key}.name: {cache.name!a:.80} must be one line, 60 characters at most"
        if cache.name in (other.name for other in platform.caches[:position]):
            return f"{key}.name: {cache.name!r} is used twice"
        try:
            problem = cache_problem(cache, parse_size(cache.size))
        except ValueError as error:
            problem = f".size: {error}"
        if problem:
            return key + problem
    return _cached_twice(platform)


def _cached_twice(platform: Platform) -> str | None:
    caches = {cache.name: cache for cache in platform.caches}
    for position, region in enumerate(platform.memory):
        key = f"memory[{position}].caches"
        for name in region.caches:
            if name not in caches:
                return f"{key}: there is no cache {name!r}: {near_misses(name, list(caches))}"
        used = [caches[name] for name in region.caches]
        for kind in ("fetches", "has_data"):
            if sum(getattr(cache, kind) for cache in used) > 1:
                return f"{key}: two of {', '.join(region.caches)} hold the same kind of content"
    return None


def _extent_problem(region: Region) -> str | None:
    """Return the broken rule on name, start and size, as the text after the region's key."""
    if not _is_name(region.name):
        return f".name: {region.name!a:.80} must be one line of printable characters, 60 at most"
    try:
        size = region.bytes
    except ValueError as error:
        return f".size: {error}"
    if size <= 0 or size % 1024 or region.start % 1024:
        return ": start and size must be multiples of 1024 and size above 0"
    if region.end > 1 << 32:
        return f": 0x{region.start:08x} + {size} bytes leaves the 32-bit address space"
    return None


def _clocks_problem(region: Region, hertz: int) -> str | None:
    """Return the broken rule on a region's clocks, as the text after the region's key."""
    if list(region.clocks) != sorted({*region.clocks}):
        return f".clocks: {', '.join(map(str, region.clocks))} do not rise"
    if region.clocks and hertz > region.clocks[-1]:
        return (
            f".clocks: {region.name} works up to {region.clocks[-1]} Hz, and clock_hz is {hertz}: "
            "lower it, or state wait_states in place of clocks"
        )
    return None


def _is_name(text: str) -> bool:
    return text.isprintable() and 0 < len(text) <= 60


def _clash(region: Region, earlier: tuple[Region, ...]) -> str | None:
    """Return the name or address that an earlier region has too, as text after the region's key."""
    for other in earlier:
        if region.name == other.name:
            return f".name: {region.name!r} is used twice"
        if region.overlaps(other):
            return (
                f": {region.name} 0x{region.start:08x}-0x{region.end - 1:08x} overlaps "
                f"{other.name} 0x{other.start:08x}-0x{other.end - 1:08x}"
            )
    return None


def _missing_kind(memory: tuple[Region, ...]) -> str | None:
    for kind in ("flash", "ram"):
        if not any(region.kind == kind for region in memory):
            return f"memory: there is no region of kind {kind}"
    return None


def _unguarded_stack(platform: Platform, apart: Collection[str]) -> str | None:
    region = platform.region_of(platform.ram.start - 1)
    if region is None:
        return None
    if continues(region, platform.ram) and not {region.name, platform.ram.name} & set(apart):
        return None  # they will be one
    return (
        f"memory: {region.name} lies directly below {platform.ram.name}, so that a stack "
        "overflow would not be seen; list another ram first"
    )


def _bus_problem(platform: Platform) -> str | None:
    names: set[str] = set()
    for position, peripheral in enumerate(platform.peripherals):
        key = f"peripherals[{position}]"
        if not _is_name(peripheral.name):
            return f"{key}.name: {peripheral.name!a:.80} must be one line, 60 characters at most"
        if peripheral.name in names:
            return f"{key}.name: {peripheral.name!r} is used twice"
        names.add(peripheral.name)
        if peripheral.core not in platform.core_names:
            known = near_misses(peripheral.core, list(platform.core_names))
            return f"{key}.core: there is no core {peripheral.core!r}: {known}"
        if peripheral.base % 4:
            return f"{key}.base: 0x{peripheral.base:x} is not a multiple of 4"
        region = platform.region_of(peripheral.base)
        if region is not None:
            return f"{key}.base: 0x{peripheral.base:08x} lies inside memory {region.name}"
    slot = platform.accelerators
    if slot is not None:
        if slot.base % 0x1000 or slot.stride % 0x1000:
            return "accelerators: base and stride must be multiples of 0x1000"
        region = platform.region_of(slot.base)
        if region is not None:
            return f"accelerators.base: 0x{slot.base:08x} lies inside memory {region.name}"
    return None
