"""`without_checks`: code as if the compiler's undefined-behaviour checks were not branches.

A check is a branch past the call of a handler. Coverage is of the source's branches, so it runs on.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from covp.laboratory.coverage.instructions import DecodedInstruction

_LONGEST = 24
"""Instructions that put a handler's arguments in place, or compute a condition of a check."""
_AUIPC, _JALR = 0x17, 0x67
_NOWHERE = ("", 0, 0)
Place = tuple[str, int, int]


def without_checks(
    steps: Mapping[int, DecodedInstruction], places: Mapping[int, Place], handlers: Collection[int]
) -> dict[int, DecodedInstruction]:
    """Return the instructions with branches of checks as jumps, or as plain ones, to what goes on.

    Args:
        steps: by address, in ascending order.
        places: the source of instructions: a check's branch and its handler's call share a line.
        handlers: addresses of the functions that checks call.
    """
    found = dict(steps)
    checks: set[int] = set()
    sites = [step for step in steps.values() if step.is_site] if handlers else []
    for step in sites:
        fails = [_calls_handler(steps, places, step, way, handlers) for way in _ways(steps, step)]
        if any(fails):
            found[step.address] = _without_choice(step, fails[0])
            checks.add(step.address)
    known = -1
    while len(checks) > known:  # conditions of conditions
        known = len(checks)
        for step in sites:
            if step.address not in checks and _is_of_check(steps, places, step, checks):
                found[step.address] = _without_choice(step, True)
                checks.add(step.address)
    return found


def _ways(steps: Mapping[int, DecodedInstruction], site: DecodedInstruction) -> list[int]:
    """Return where a branch leads when it is taken, and when not; or what is past an IT block."""
    if site.kind == "branch":
        assert site.target is not None
        return [site.target, site.end]
    address = site.address
    while address in steps and steps[address].conditional:
        address = steps[address].end
    return [address]


def _without_choice(site: DecodedInstruction, falls_through: bool) -> DecodedInstruction:
    if site.kind == "branch":
        return replace(site, kind="plain" if falls_through else "jump")
    return replace(site, guards=False)


def _calls_handler(
    steps: Mapping[int, DecodedInstruction],
    places: Mapping[int, Place],
    site: DecodedInstruction,
    address: int,
    handlers: Collection[int],
) -> bool:
    """Return whether a way from a check does nothing but call a handler for the same line."""
    for _ in range(_LONGEST):
        step = steps.get(address)
        if step is None or step.kind == "leave":
            return False
        if step.kind == "branch":  # of two handlers, after the same check
            ways = [way for way in _ways(steps, step) if way > step.address]
            return len(ways) == 2 and all(
                _calls_handler(steps, places, site, way, handlers) for way in ways
            )
        if step.kind == "call":
            line, own = (places.get(at, _NOWHERE)[:2] for at in (address, site.address))
            return _find_callee(steps, step) in handlers and (line == own or not line[1])
        address = step.target if step.kind == "jump" and step.target is not None else step.end
    return False


def _find_callee(steps: Mapping[int, DecodedInstruction], step: DecodedInstruction) -> int | None:
    """Return where a call leads, also that of a pair of AUIPC and JALR."""
    before = steps.get(step.address - 4)
    if step.target is not None or before is None or before.size != 4 or step.size != 4:
        return step.target
    if before.bits & 0x7F != _AUIPC or step.bits & 0x7F != _JALR:
        return None
    if before.bits >> 7 & 31 != step.bits >> 15 & 31:
        return None
    low = step.bits >> 20
    offset = (before.bits & 0xFFFFF000) + low - (low >> 11 << 12)
    return (before.address + offset) & 0xFFFFFFFF


def _is_of_check(
    steps: Mapping[int, DecodedInstruction],
    places: Mapping[int, Place],
    site: DecodedInstruction,
    checks: Collection[int],
) -> bool:
    """Return whether a site only chooses how one check of the source is computed.

    It is at the check's own place; or it leads to two checks of one place, on its line.
    """
    reached = {_next_check(steps, way, checks) for way in _ways(steps, site)}
    if None in reached:
        return False
    found = {places.get(address, _NOWHERE) for address in reached if address is not None}
    own = places.get(site.address, _NOWHERE)
    return found == {own} or (
        len(reached) == 2 and len(found) == 1 and next(iter(found))[:2] == own[:2]
    )


def _next_check(
    steps: Mapping[int, DecodedInstruction], address: int, checks: Collection[int]
) -> int | None:
    """Return the check that a way leads to, with nothing but computations before it."""
    for _ in range(_LONGEST):
        step = steps.get(address)
        if address in checks:
            return address
        if step is None or step.is_site or step.kind in ("call", "leave"):
            return None
        address = step.target if step.kind == "jump" and step.target is not None else step.end
    return None
