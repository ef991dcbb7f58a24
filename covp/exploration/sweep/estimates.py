"""Estimates of a design that need no run: the area of its units and the source of its cycles."""

from __future__ import annotations

import functools
from typing import Any

from covp.device.board import core_sources
from covp.evaluation.energy import estimate_area
from covp.evaluation.varied import PLATFORM, vary_design
from covp.exploration.sweep.points import Point


def area_um2(point: Point) -> float | None:
    """Return the area of all accelerators together, used or not; None if one's is unknown.

    Raises:
        CovpError: a value is not allowed.
    """
    return _area(_part(point, of_platform=False))


def _part(point: Point, of_platform: bool) -> Point:
    """Return a point with the varied values of its platform, or of its accelerators, alone."""
    own = (pair for pair in point.vary if pair[0].startswith(f"{PLATFORM}.") == of_platform)
    return point.like(tuple(own))


@functools.lru_cache(maxsize=10_000)
def _area(point: Point) -> float | None:
    _, units = vary_design(point.platform, point.accelerators, point.values)
    areas = [estimate_area(unit) for unit in units]
    known = [area.um2 for area in areas if area is not None]
    return sum(known) if len(known) == len(areas) else None


def cycles_source(point: Point) -> dict[str, Any]:
    """Return the columns of a row that say how sure its cycles are.

    Raises:
        CovpError: a value is not allowed.
    """
    core, units = (_part(point, of_platform) for of_platform in (True, False))
    return {**dict(_source(core)), "units_error": _units_error(units)}


@functools.lru_cache(maxsize=10_000)
def _units_error(point: Point) -> float | None:
    _, units = vary_design(point.platform, point.accelerators, point.values)
    checks = [unit.known_timing for unit in units]
    errors = [check.error for check in checks if check is not None]
    return max(errors) if errors and len(errors) == len(checks) else None


@functools.lru_cache(maxsize=10_000)
def _source(point: Point) -> tuple[tuple[str, Any], ...]:
    platform, _ = vary_design(point.platform, (), point.values)
    found = core_sources(platform.core, platform).cycles
    assert found is not None  # of the virtual device
    return ("cycles_model", found.model), ("cycles_error", found.error)
