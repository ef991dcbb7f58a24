"""`doubtful_units`: accelerators whose estimates, times or counts cannot be right."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from covp.accelerator.placement import NEGLIGIBLE
from covp.codegen.program import AcceleratorInstance, Program
from covp.runtime.profile import LayerProfile, Profile

FACTOR = 2
"""An estimate, or a count, is wrong that is off by more than this factor."""
MOST_MACS = 2048
"""A cycle, of units that declare no number: the largest configuration of Arm's Ethos-U85 (128 to
2048 by its Technical Overview), the most of an NPU beside a microcontroller."""


def doubtful_units(program: Program, profile: Profile) -> list[str]:
    """Warnings about estimates, times and counts of units, of each at most one line an accelerator.

    Args:
        program: that ran.
        profile: of the run.
    """
    units = program.accelerators
    found = [*_each(units, profile, _too_fast), *_each(units, profile, _too_many)]
    return [*wrong_estimates(profile), *found]


def _each(
    units: Sequence[AcceleratorInstance],
    profile: Profile,
    doubt: Callable[[AcceleratorInstance, LayerProfile], str],
) -> Iterator[str]:
    """The first doubt about a layer of each unit, and of how many layers."""
    for unit in units:
        texts = [doubt(unit, entry) for entry in profile.layers if entry.target == unit.name]
        texts = list(filter(None, texts))
        if texts:
            more = f"; likewise {len(texts) - 1} more" if len(texts) > 1 else ""
            yield f"accelerator {unit.name}: {texts[0]}{more}"


def _too_fast(unit: AcceleratorInstance, entry: LayerProfile) -> str:
    """More multiply-accumulates a cycle than the unit has multipliers."""
    if entry.offload is None or not entry.offload.jobs or entry.work is None:
        return ""
    macs = entry.offloaded_macs if entry.work.macs is None else entry.work.macs
    size = unit.backend.hardware_size()
    ratio = float(unit.backend.values.get("clock_ratio", 1.0))
    most = (size[0] if size else MOST_MACS) / ratio
    cycles = entry.offload.startup + max(entry.offload.compute, entry.offload.memory)
    if macs <= most * max(cycles, 1):
        return ""
    bound = f"it declares {most:g}" if size else f"no unit of this kind does more than {most:g}"
    return (
        f"its time cannot be right: {macs:,.0f} MACs of {entry.name} in {cycles:,} cycles are "
        f"{macs / max(cycles, 1):,.0f} a cycle, {bound}; see its timing()"
    )


def _too_many(unit: AcceleratorInstance, entry: LayerProfile) -> str:
    """Far more multiply-accumulates reported than the layer has: no padding explains them."""
    if entry.work is None or entry.work.share <= FACTOR:
        return ""
    return (
        f"it reports {entry.work.macs:,} MACs of {entry.name}, {entry.work.share:.0%} of those "
        "that the layer has; see its macs()"
    )


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
