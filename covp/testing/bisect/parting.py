"""The first diverging store of two builds of one layer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.testing.bisect.bench import Bench
from covp.testing.bisect.masters import MasterStore
from covp.testing.bisect.origin import Cause, Spot, describe_store
from covp.testing.bisect.trace import Bytes, Trace
from covp.testing.bisect.walk import Trial

_ELSEWHERE = np.int64(1) << 40
"""In the place of an address, and of what is an address: these differ between builds."""


def parting_of_arena(trial: Trial, other: Bench, position: int) -> Cause | None:
    """Find the first store to the arena that the other build does not make alike.

    Compilers order stores as they like, so it compares what each byte is given in turn. A byte that
    is not stored to as often in both is left out: a compiler may drop a store that is not read.

    Args:
        trial: a wrong layer on a device that shows its stores.
        other: another build of the same C, with the same arena, on such a device.
        position: of the layer in it.
    """
    mine = trial.bench.traced(trial.position, trial.image)
    theirs = other.traced(position, trial.image)
    size = trial.bench.program.arena_bytes
    own, its = mine.bytes(), theirs.bytes()
    alike = np.bincount(own.offsets, minlength=size) == np.bincount(its.offsets, minlength=size)
    first, second = _in_turn(own, alike), _in_turn(its, alike)
    different = np.flatnonzero(first.values != second.values)
    if not different.size:
        return None
    at = different[np.argmin(first.keys[different])]
    cause = describe_store(trial, mine, int(first.keys[at]), "store")
    return replace(cause, other=_spot(other, theirs, int(second.keys[at])))


def _in_turn(stored: Bytes, wanted: NDArray[np.bool_]) -> Bytes:
    """Byte by byte, and for each in the order of time."""
    kept = wanted[stored.offsets]
    offsets, keys, values = stored.offsets[kept], stored.keys[kept], stored.values[kept]
    order = np.lexsort((keys, offsets))
    return Bytes(offsets[order], keys[order], values[order])


def _spot(bench: Bench, trace: Trace, key: int) -> Spot:
    store = trace.store(key)
    if isinstance(store, MasterStore):
        return Spot.of(store.place, bench.program)
    return Spot.of(bench.place(int(trace.stores["pc"][store])), bench.program)


def parting_of_steps(trial: Trial, other: Bench, position: int) -> Cause | None:
    """Find the first store of any kind in which two builds part, local variables included.

    Both are to be compiled without optimization by one compiler, so that each assignment is a
    store. Addresses are alike whatever they are: functions may lie elsewhere.

    Args:
        trial: a wrong layer; its bench has that layer alone, without optimization.
        other: another build of the layer, likewise.
        position: of the layer in it.

    Returns:
        None where all stores of the wrong one are alike, and the other goes on.
    """
    bench = trial.bench
    mine = bench.traced(trial.position, trial.image, everywhere=True)
    theirs = other.traced(position, trial.image, everywhere=True)
    own, its = bench.of_layer(mine), other.of_layer(theirs)
    left, right = _alike(bench, mine)[own], _alike(other, theirs)[its]
    count = min(len(left), len(right))
    different = np.flatnonzero((left[:count] != right[:count]).any(axis=1))
    at = int(different[0]) if different.size else count
    if at >= len(left):
        return None
    number = own.start + at
    stack = bench.stack_at(trial.position, trial.image, number, everywhere=True)
    first = stack[0] if stack else bench.place(int(mine.stores["pc"][number]))
    spot = None
    if at < len(right):
        pc = int(theirs.stores["pc"][its.start + at])
        spot = Spot.of(other.place(pc), other.program)
    target = bench.program.layers[trial.position].target
    return Cause(
        "store",
        Spot.of(first, bench.program),
        other=spot,
        call_stack=stack,
        accelerator="" if target == "cpu" else target,
        note="compared without optimization",
    )


def _alike(bench: Bench, trace: Trace) -> NDArray[np.int64]:
    """Stores as rows that are equal for stores that are alike: size, value, place in the arena."""
    stores: Any = trace.stores
    values = stores["value"].astype(np.int64)
    for region in bench.program.platform.memory:
        is_address = (values >= region.start) & (values < region.start + region.bytes)
        values = np.where((stores["size"] == 4) & is_address, _ELSEWHERE, values)
    places = stores["address"].astype(np.int64) - trace.arena
    outside = (places < 0) | (places >= trace.arena_bytes)
    places = np.where(outside, _ELSEWHERE, places)
    return np.stack([stores["size"].astype(np.int64), values, places], axis=1)
