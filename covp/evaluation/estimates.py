"""`doubtful_units`: costs that placement counted and that were wrong; times and counts of units
that cannot be right."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from covp.accelerator.backend import AcceleratorBackend
from covp.codegen.program import AcceleratorInstance, Program
from covp.runtime.profile import LayerProfile, Profile

TOLERANCE = 0.1
"""The share of the cycles of a layer by which a cost may be off that placement counted."""
NEGLIGIBLE = 200
"""Cycles by which it may be off in any case: drivers take some more or less."""
MOST_SHARE = 2
"""Times the MACs that a layer has: no padding explains more."""
MOST_MACS = 2048
"""A cycle, of units that declare no number: the largest configuration of Arm's Ethos-U85 (128 to
2048 by its Technical Overview), the most of an NPU beside a microcontroller."""


def doubtful_units(program: Program, profile: Profile) -> list[str]:
    """Return warnings about estimates, times and counts: of each at most one per accelerator.

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
    """Yield the first doubt about a layer of each unit, and of how many layers."""
    for unit in units:
        texts = [doubt(unit, entry) for entry in profile.layers if entry.target == unit.name]
        texts = list(filter(None, texts))
        if texts:
            more = f"; likewise {len(texts) - 1} more" if len(texts) > 1 else ""
            yield f"accelerator {unit.name}: {texts[0]}{more}"


def most_macs(backend: AcceleratorBackend, is_declared: bool = True) -> tuple[float, str]:
    """Return the MACs that a unit can do in a cycle of the core, and how a message says it.

    Args:
        backend: of the unit.
        is_declared: its own number counts, where it has one; else that of the largest units.
    """
    size = backend.hardware_size() if is_declared else None
    most = (size[0] if size else MOST_MACS) / float(backend.values.get("clock_ratio", 1.0))
    return most, (
        f"it declares {most:g}" if size else f"no unit of this kind does more than {most:g}"
    )


def _too_fast(unit: AcceleratorInstance, entry: LayerProfile) -> str:
    """More multiply-accumulates a cycle than the unit has multipliers."""
    if entry.offload is None or not entry.offload.jobs or entry.work is None:
        return ""
    macs = entry.offloaded_macs if entry.work.macs is None else entry.work.macs
    most, bound = most_macs(unit.backend)
    cycles = entry.offload.busy
    if macs <= most * max(cycles, 1):
        return ""
    return (
        f"its time cannot be right: {macs:,.0f} MACs of {entry.name} in {cycles:,} cycles are "
        f"{macs / max(cycles, 1):,.0f} a cycle, {bound}; see its timing()"
    )


def _too_many(unit: AcceleratorInstance, entry: LayerProfile) -> str:
    """Far more multiply-accumulates reported than the layer has."""
    if entry.work is None or entry.work.share <= MOST_SHARE:
        return ""
    return (
        f"it reports {entry.work.macs:,} MACs of {entry.name}, {entry.work.share:.0%} of those "
        "that the layer has; see its macs()"
    )


def wrong_estimates(profile: Profile) -> list[str]:
    """Return warnings about layers' costs that placement counted wrongly, one per accelerator.

    On the core's side simulated ones, on the other side estimates. Empty where cycles are not known
    by layer; of a layer in parts they are others.
    """
    wrong: dict[str, list[LayerProfile]] = {}
    for entry in profile.layers:
        if len(entry.layer.parts) < 2 and not _is_asynchronous(entry) and _error(entry) > 0:
            wrong.setdefault(entry.layer.target, []).append(entry)
    return [_warning(name, entries) for name, entries in wrong.items()]


def _is_asynchronous(entry: LayerProfile) -> bool:
    return any(part.is_asynchronous for part in entry.layer.parts)


def _error(entry: LayerProfile) -> float:
    """Return the share of its cycles by which a layer's cost is off; 0 within the tolerance."""
    counted, spent = entry.layer.estimated_cycles, entry.cycles
    if counted is None or spent is None or abs(counted - spent) <= NEGLIGIBLE:
        return 0.0
    share = abs(counted - spent) / max(spent, 1)
    return share if share > TOLERANCE else 0.0


def _warning(name: str, entries: list[LayerProfile]) -> str:
    worst = max(entries, key=_error)
    count = f"{len(entries)} layer{'s' if len(entries) > 1 else ''}"
    side = "the core: its simulated cost" if name == "cpu" else f"accelerator {name}: its estimate"
    return (
        f"{side} is off by more than {TOLERANCE:.0%} for {count}, most for {worst.layer.name}: "
        f"{worst.layer.estimated_cycles:,} cycles, took {worst.cycles:,}; "
        "by these costs layers are placed"
    )
