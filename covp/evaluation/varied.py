"""`vary_design`: a platform and its accelerators with other values, by the names that sweeps use.

`gemm.size` is a parameter of the accelerator instance gemm. Names that begin with `platform.`
change the platform: `platform.clock_hz`, `platform.core`, `platform.timing`; a parameter of the
core's RTL, such as `platform.core.WRITEBACK_STAGE`; and of a memory region such as flash
`platform.flash.size` and `platform.flash.wait_states`, or one of
`platform.flash.wait_states.fetch` and `platform.flash.wait_states.data`: as stated, or as the
region's `clocks` say for the clock. A cache has a size, the bytes of a line, and ways:
`platform.icache.size`, `platform.icache.line`, `platform.icache.ways`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from covp.accelerator.backend import AcceleratorBackend
from covp.accelerator.parameters import Value
from covp.accelerator.registry import find_backends
from covp.chip.platform_file import Platform, Region, first_problem, load_platform
from covp.errors import PlatformError, UsageError, near_misses

PLATFORM = "platform"
CORE_PARAMETER = f"{PLATFORM}.core."
"""What names of parameters of the core's RTL begin with."""
_OWN = {"clock_hz": "clock_hz", "core": "core_name", "timing": "timing"}
WAITS = ("wait_states", "wait_states.fetch", "wait_states.data")
"""Of a memory region: of both, of fetches, and of loads and stores."""
SHAPE = ("size", "line", "ways")
"""Of a cache: bytes, bytes of a line, and lines of a set."""
_OF_REGIONS = ("size", *WAITS)


def vary_design(
    platform: Platform | str,
    accelerators: Sequence[str | AcceleratorBackend],
    values: Mapping[str, Value],
) -> tuple[Platform, list[AcceleratorBackend]]:
    """Return a platform and accelerators with other values.

    Args:
        platform: a name, a path or a platform.
        accelerators: as for `covp.compile`.
        values: by name, see the module.

    Raises:
        UsageError: there is no such name, or the accelerator's parameter does not allow a value.
        PlatformError: the platform does not allow a value.
    """
    changed, units = load_platform(platform), find_backends(accelerators)
    own: dict[str, dict[str, Value]] = {}
    of_core: dict[str, Value] = {}
    for name, value in values.items():
        owner, _, parameter = name.partition(".")
        if name.startswith(CORE_PARAMETER):
            of_core[name.removeprefix(CORE_PARAMETER)] = value
        elif owner == PLATFORM:
            changed = _with(changed, name, parameter, value)
        elif owner in (unit.name for unit in units) and parameter:
            own.setdefault(owner, {})[parameter] = value
        else:
            known = [PLATFORM, *(unit.name for unit in units)]
            raise UsageError(
                f"{name}: a parameter is named OWNER.NAME, such as gemm.size or platform.clock_hz; "
                f"no owner {owner!r} is here:",
                hint=near_misses(owner, known),
            )
    stated = [
        f"{name}={value}" for name, value in values.items() if name.startswith(f"{PLATFORM}.")
    ]
    if stated:  # all at once: of a cache the size, line and ways have to fit together
        changed = _check_platform(changed, ", ".join(stated))
    if of_core:
        from covp.evaluation.core_variants import vary_core  # with the emulator and RTL

        changed = vary_core(changed, of_core)
    return changed, [_change_unit(unit, own.get(unit.name, {})) for unit in units]


def _change_unit(unit: AcceleratorBackend, values: Mapping[str, Value]) -> AcceleratorBackend:
    if not values:
        return unit
    other = type(unit)({**unit.values, **values})
    return other if other.name == unit.name else other.with_name(unit.name)


def _with(platform: Platform, name: str, key: str, value: Value) -> Platform:
    """Return the platform with one other value, unchecked; ``name``: the parameter, for errors."""
    region = next((one for one in platform.memory if key.startswith(one.name + ".")), None)
    if region is not None:
        other = _region(region, name, key.removeprefix(region.name + "."), value)
        memory = tuple(other if one is region else one for one in platform.memory)
        return msgspec.structs.replace(platform, memory=memory)
    if key in _of_caches(platform):
        owner, _, part = key.rpartition(".")
        caches = tuple(
            msgspec.structs.replace(one, **{part: value}) if one.name == owner else one
            for one in platform.caches
        )
        return msgspec.structs.replace(platform, caches=caches)
    if key == "clock_hz":
        return _at_clock(platform, value)
    if key in _OWN:
        return msgspec.structs.replace(platform, **{_OWN[key]: value})
    of_regions = [f"{one.name}.{part}" for one in platform.memory for part in _OF_REGIONS]
    raise UsageError(
        f"{name}: no such value of platform {platform.name}:",
        hint=near_misses(key, [*_OWN, *of_regions, *_of_caches(platform)]),
    )


def _of_caches(platform: Platform) -> list[str]:
    return [f"{cache.name}.{part}" for cache in platform.caches for part in SHAPE]


def _at_clock(platform: Platform, hertz: Any) -> Platform:
    """Return the platform at another clock, its memory with the wait states that belong to it."""
    memory = platform.memory
    if isinstance(hertz, int):  # else the check of the whole platform says what is wrong
        memory = tuple(region.at_clock(hertz) for region in memory)
    return msgspec.structs.replace(platform, clock_hz=hertz, memory=memory)


def _region(region: Region, name: str, key: str, value: Any) -> Region:
    if key not in _OF_REGIONS:
        raise UsageError(
            f"{name}: no such value of a memory region:", hint=near_misses(key, _OF_REGIONS)
        )
    first, _, part = key.partition(".")
    if part:
        value = msgspec.structs.replace(region.waits, **{part: value})
    stated = {"clocks": ()} if first == "wait_states" else {}  # whatever the clock
    return msgspec.structs.replace(region, **{first: value}, **stated)


def _check_platform(platform: Platform, where: str) -> Platform:
    """Return a platform that is as a file could state it. Raises PlatformError."""
    try:
        checked = msgspec.convert(msgspec.to_builtins(platform), Platform)
    except msgspec.ValidationError as error:
        raise PlatformError(f"{where}: {error}") from None
    problem = first_problem(checked)
    if problem:
        raise PlatformError(f"{where}: {problem}")
    return checked
