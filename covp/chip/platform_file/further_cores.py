"""Further cores of a platform beside its first one, as its file describes them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated

import msgspec

from covp.chip.cores import find_core
from covp.errors import PlatformError, near_misses

FIRST = "main"
"""The name of a platform's first core."""
MAX_CORES = 8
_NAME = re.compile(r"^[a-z][a-z0-9_]{0,30}$")


class FurtherCore(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"core_name": "core"}
):
    """A core that runs an image of its own, in memory that no other image is placed in.

    Attributes:
        name: as reports and peripherals' lines call it; a C identifier in lower case.
        core_name: as the platform's (key ``core``).
        memory: the regions of its image: vectors and code in the first flash, data and stack in
            the first ram.
        clock_divider: cycles of the platform's clock per cycle of this core.
        stack: bytes, at the low end of its first ram.
    """

    name: str
    core_name: str
    memory: tuple[str, ...]
    clock_divider: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 1
    stack: int | str = "4K"


def cores_problem(
    cores: Sequence[FurtherCore], shared: Sequence[str], kinds: Mapping[str, str], clock_hz: int
) -> str | None:
    """Return the first broken rule on further cores and shared memory, as "key: reason"; or None.

    Args:
        cores, shared, clock_hz: of the platform.
        kinds: "flash" or "ram" by name of the region.
    """
    if len(cores) >= MAX_CORES:
        return f"further_cores: {len(cores)} of them; at most {MAX_CORES - 1} are possible"
    if shared and not cores:
        return "shared_memory: there are no further cores to share it with"
    taken: dict[str, str] = {}
    for position, core in enumerate(cores):
        key = f"further_cores[{position}]"
        problem = _name_problem(core.name, [FIRST, *(other.name for other in cores[:position])])
        if problem:
            return f"{key}.name: {problem}"
        try:
            find_core(core.core_name)
        except PlatformError as error:
            return f"{key}.core: {error}"
        if clock_hz % core.clock_divider:
            return f"{key}.clock_divider: clock_hz {clock_hz} is not a multiple of it"
        problem = _claim(taken, f"core {core.name}", core.memory, kinds)
        if problem:
            return f"{key}.memory: {problem}"
        problem = _missing_kind([kinds[name] for name in core.memory])
        if problem:
            return f"{key}.memory: {problem}"
    problem = _claim(taken, "shared_memory", shared, kinds)
    if problem:
        return f"shared_memory: {problem}"
    problem = _missing_kind(kind for name, kind in kinds.items() if name not in taken)
    return f"memory: {problem} that is left to the first core" if problem else None


def _name_problem(name: str, earlier: Sequence[str]) -> str | None:
    if not _NAME.match(name):
        return f"{name!a:.80} must be a C identifier in lower case, 31 characters at most"
    return f"{name!r} is used twice" if name in earlier else None


def _claim(
    taken: dict[str, str], owner: str, names: Iterable[str], kinds: Mapping[str, str]
) -> str | None:
    """Note the owner of regions in ``taken``, or the reason why it cannot have one."""
    for name in names:
        if name not in kinds:
            return f"there is no memory {name!r}: {near_misses(name, list(kinds))}"
        if name in taken:
            return f"{name} belongs to {taken[name]} already"
        taken[name] = owner
    return None


def _missing_kind(kinds: Iterable[str]) -> str | None:
    found = set(kinds)
    kind = next((kind for kind in ("flash", "ram") if kind not in found), None)
    return f"there is no region of kind {kind}" if kind else None
