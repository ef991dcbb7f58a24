"""Where two builds of one layer part: the first store in which their executions are not alike."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import replace

from covp.bisect.bench import Bench
from covp.bisect.masters import MasterStore
from covp.bisect.origin import Cause, Event, Spot, described, events
from covp.bisect.walk import Trial
from covp.machine.store_log import Store

LONGEST = 1_500_000
"""Stores that are compared one after the other."""


def parting_of_arena(trial: Trial, other: Bench, position: int) -> Cause | None:
    """The first store to the arena that the other build does not make alike.

    Compilers order stores as they like, so it compares what each byte is given in turn. A byte that
    is not stored to as often in both is left out: a compiler may drop a store that is not read.

    Args:
        trial: a wrong layer on a device that shows its stores.
        other: another build of the same C, with the same arena, on such a device.
        position: of the layer in it.
    """
    image = trial.image
    mine = _histories(events(trial.bench, trial.position, image))
    theirs = _histories(events(other, position, image))
    first: tuple[Event, Event] | None = None
    for offset, stores in mine.items():
        counterpart = theirs.get(offset, [])
        if len(stores) != len(counterpart):
            continue
        for own, its in zip(stores, counterpart, strict=True):
            if own[1] != its[1]:
                if first is None or own[0].order < first[0].order:
                    first = own[0], its[0]
                break
    if first is None:
        return None
    cause = described(trial.bench, trial, first[0], "store")
    return replace(cause, other=_spot(other, first[1]))


def _histories(found: Sequence[Event]) -> dict[int, list[tuple[Event, int]]]:
    """For each byte the stores to it, in their order, with its new value."""
    histories: dict[int, list[tuple[Event, int]]] = {}
    for event in found:
        for at, value in enumerate(event.data, event.offset):
            histories.setdefault(at, []).append((event, value))
    return histories


def _spot(bench: Bench, event: Event) -> Spot:
    if isinstance(event.store, MasterStore):
        return Spot.of(event.store.place, bench.program)
    return Spot.of(bench.place(event.store.pc), bench.program)


def parting_of_steps(trial: Trial, other: Bench, position: int) -> Cause | None:
    """The first store of any kind in which two builds part, local variables included.

    Both are to be compiled without optimization by one compiler, so that each assignment is a
    store. Addresses are alike whatever they are: functions may lie elsewhere.

    Args:
        trial: a wrong layer; its bench has that layer alone, without optimization.
        other: another build of the layer, likewise.
        position: of the layer in it.
    """
    image, bench = trial.image, trial.bench
    pcs, values = array("Q"), array("Q")
    theirs = _Steps(other)

    def record(store: Store | MasterStore) -> None:
        if isinstance(store, Store) and len(pcs) < LONGEST:
            pcs.append(store.pc)
            values.append(theirs.alike(store))

    other.watched(position, image, record, everywhere=True)
    mine, count = _Steps(bench), 0
    found: tuple[Spot, Spot | None, tuple[str, ...]] | None = None

    def compare(store: Store | MasterStore) -> None:
        nonlocal count, found
        if found is not None or not isinstance(store, Store) or count >= LONGEST:
            return
        if count >= len(values) or values[count] != mine.alike(store):
            stack = bench.stack(store.pc)
            spot = Spot.of(stack[0] if stack else bench.place(store.pc), bench.program)
            its = Spot.of(other.place(pcs[count]), other.program) if count < len(pcs) else None
            found = spot, its, stack
        count += 1

    bench.watched(trial.position, image, compare, everywhere=True)
    if found is None:
        return None
    target = bench.program.layers[trial.position].target
    name = "" if target == "cpu" else target
    return Cause("store", found[0], found[1], found[2], name, note="compared without optimization")


class _Steps:
    """Stores as numbers that are equal for stores that are alike."""

    def __init__(self, bench: Bench) -> None:
        self._regions = bench.program.platform.memory
        self._arena = range(bench.arena, bench.arena + bench.program.arena_bytes)

    def alike(self, store: Store) -> int:
        """Size, value and, in the arena, the place."""
        value = store.value
        if store.size == 4 and any(r.start <= value < r.start + r.bytes for r in self._regions):
            value = self._regions[0].start
        place = store.address - self._arena.start if store.address in self._arena else 1 << 31
        return hash((store.size, value, place)) & 0xFFFFFFFFFFFFFFFF
