"""`wrong_estimates`: accelerators that took other than the partitioner expected."""

from __future__ import annotations

from covp.accelerator.placement import NEGLIGIBLE
from covp.runtime.profile import LayerProfile, Profile

FACTOR = 2
"""An estimate is wrong that is off by more than this factor."""


def wrong_estimates(profile: Profile) -> list[str]:
    """Warnings about estimates that are off by more than 2x, one line per accelerator.

    Estimates decide which layers an accelerator gets. Empty where cycles are not known by layer;
    of a layer that the core does not wait for they are not.
    """
    wrong: dict[str, list[LayerProfile]] = {}
    for entry in profile.layers:
        waits = not any(part.is_asynchronous for part in entry.layer.parts)
        if entry.layer.target != "cpu" and waits and _error(entry) > FACTOR:
            wrong.setdefault(entry.layer.target, []).append(entry)
    return [_warning(name, entries) for name, entries in wrong.items()]


def _error(entry: LayerProfile) -> float:
    """The factor between estimated and simulated cycles, 1 or more; 1 where one is unknown."""
    estimated, spent = entry.layer.estimated_cycles, entry.cycles
    if estimated is None or spent is None or abs(estimated - spent) <= NEGLIGIBLE:
        return 1.0
    return max(estimated, spent) / max(min(estimated, spent), 1)


def _warning(name: str, entries: list[LayerProfile]) -> str:
    worst = max(entries, key=_error)
    count = f"{len(entries)} layer{'s' if len(entries) > 1 else ''}"
    return (
        f"accelerator {name}: its estimate is off by more than {FACTOR}x for {count}, most for "
        f"{worst.layer.name}: estimated {worst.layer.estimated_cycles:,} cycles, took "
        f"{worst.cycles:,}; estimates decide which layers it gets"
    )
