"""`find_cause`: from a wrong layer to a function and a line, by the first store that differs."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.errors import AcceleratorError, CovpError, DeviceFault
from covp.testing.bisect.bench import BisectBench
from covp.testing.bisect.origin import Cause, Spot, describe_store, origin
from covp.testing.bisect.trace import Bytes, MasterStore, StoreTrace
from covp.testing.bisect.walk import WrongLayer

PLAIN = "-O0"


def find_cause(trial: WrongLayer) -> Cause:
    """Find the cause of a wrong layer.

    The line is most exact without optimization, so the layer is compiled that way, too; where it is
    right then, the two builds of it are compared.

    Args:
        trial: a wrong layer.
    """
    if trial.kind == "fault":
        return _of_fault(trial)
    with ExitStack() as stack:
        here = _watchable(trial, stack)
        if here is None:
            return Cause("unknown", None, note="the device does not show its stores")
        plain = _plain(here, stack)
        found = None
        if trial.other is not None:
            found = _of_two(here, plain, trial.other, stack)
        elif plain is not None and _is_wrong(here) and not _is_wrong(plain):
            cause = parting_of_arena(here, plain.bench, plain.position)
            note = f"right with {PLAIN}: undefined behaviour in C, or a fault of the compiler"
            found = replace(cause or origin(here, here.got()), note=note)
        if found is not None:
            return found
        if plain is not None and _is_wrong(plain):
            return _after(origin(plain, plain.got(), steps=True), trial)
        return _after(origin(here, trial.got()), trial)


def _after(cause: Cause, trial: WrongLayer) -> Cause:
    """Return the cause, with a word where the device itself, not its virtual twin, is wrong."""
    if trial.bench.can_watch:
        return cause
    return replace(cause, note=f"found on a virtual device beside {trial.bench.device}")


def _of_fault(trial: WrongLayer) -> Cause:
    error = trial.error
    if not isinstance(error, DeviceFault):
        target = trial.bench.program.layers[trial.position].target
        return Cause("fault", None, accelerator=target, note=str(error))
    place = error.call_stack[0] if error.call_stack else ""
    if not place and error.symbol:
        function = error.symbol.partition("+")[0]
        place = f"{function} ({error.source})" if error.source else function
    spot = Spot.of(place, trial.bench.program) if place else None
    return Cause("fault", spot, call_stack=error.call_stack, note=str(error))


def _watchable(trial: WrongLayer, stack: ExitStack) -> WrongLayer | None:
    """Return the trial on a device that shows its stores, its own or a virtual twin."""
    if trial.bench.can_watch:
        return trial
    if trial.bench.program.platform.core.architecture == "x86":
        return None
    bench = BisectBench(trial.bench.program, "virtual", trial.bench.toolchain, trial.position)
    return replace(trial, bench=stack.enter_context(bench))


def _plain(trial: WrongLayer, stack: ExitStack) -> WrongLayer | None:
    """Return the layer alone, without optimization; None where it cannot be compiled or run so."""
    try:
        bench = stack.enter_context(trial.bench.recompile(trial.position, PLAIN))
        bench.run(trial.position, trial.image)
    except CovpError:
        return None
    return replace(trial, bench=bench)


def _is_wrong(trial: WrongLayer) -> bool:
    assert trial.wanted is not None
    try:
        return bool(trial.law(trial.got(), trial.wanted).size)
    except (DeviceFault, AcceleratorError):
        return True


def _of_two(
    here: WrongLayer, plain: WrongLayer | None, other: tuple[BisectBench, int], stack: ExitStack
) -> Cause | None:
    """Find where two builds diverge; None where their executions cannot be compared."""
    bench, position = other
    if not _alike(here, bench, position):
        return None
    is_wrong = plain is not None and _is_wrong(plain)
    if plain is not None and is_wrong and here.bench.toolchain == bench.toolchain:
        if origin(plain, plain.got()).spot is None:  # nothing stores to the tensor
            return None
        theirs = _plain(replace(here, bench=bench, position=position), stack)
        if theirs is not None and not _is_wrong(theirs):
            found = parting_of_steps(plain, theirs.bench, position)
            if found is not None:
                return found
    if not bench.can_watch:
        bench = stack.enter_context(bench.recompile(position))
    found = parting_of_arena(here, bench, position)
    if found is not None and plain is not None and is_wrong:
        return replace(origin(plain, plain.got(), steps=True), other=found.other)
    return found


def _alike(here: WrongLayer, bench: BisectBench, position: int) -> bool:
    """Return whether two builds have the same arena and can run on a virtual device."""
    mine, its = here.bench.program, bench.program
    return (
        mine.arena_bytes == its.arena_bytes
        and mine.layers[here.position].arguments == its.layers[position].arguments
        and mine.platform.core.architecture == its.platform.core.architecture != "x86"
    )


_ELSEWHERE = np.int64(1) << 40
"""A substitute for addresses and for values that are addresses, which differ between builds."""


def parting_of_arena(trial: WrongLayer, other: BisectBench, position: int) -> Cause | None:
    """Find the first store to the arena that the other build does not make alike.

    Compilers order stores as they like, so it compares what each byte is given in turn. A byte that
    is not stored to as often in both is left out: a compiler may drop a store that is not read.

    Args:
        trial: a wrong layer on a device that shows its stores.
        other: another build of the same C, with the same arena, on such a device.
        position: of the layer in it.
    """
    mine = trial.bench.trace_stores(trial.position, trial.image)
    theirs = other.trace_stores(position, trial.image)
    size = trial.bench.program.arena_bytes
    own, its = mine.bytes(), theirs.bytes()
    alike = np.bincount(own.offsets, minlength=size) == np.bincount(its.offsets, minlength=size)
    first, second = _sort_bytes(own, alike), _sort_bytes(its, alike)
    different = np.flatnonzero(first.values != second.values)
    if not different.size:
        return None
    at = different[np.argmin(first.keys[different])]
    cause = describe_store(trial, mine, int(first.keys[at]), "store")
    return replace(cause, other=_spot(other, theirs, int(second.keys[at])))


def _sort_bytes(stored: Bytes, wanted: NDArray[np.bool_]) -> Bytes:
    """Select the wanted bytes, sorted by offset, then time."""
    kept = wanted[stored.offsets]
    offsets, keys, values = stored.offsets[kept], stored.keys[kept], stored.values[kept]
    order = np.lexsort((keys, offsets))
    return Bytes(offsets[order], keys[order], values[order])


def _spot(bench: BisectBench, trace: StoreTrace, key: int) -> Spot:
    store = trace.store(key)
    if isinstance(store, MasterStore):
        return Spot.of(store.place, bench.program)
    return Spot.of(bench.place(int(trace.stores["pc"][store])), bench.program)


def parting_of_steps(trial: WrongLayer, other: BisectBench, position: int) -> Cause | None:
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
    mine = bench.trace_stores(trial.position, trial.image, everywhere=True)
    theirs = other.trace_stores(position, trial.image, everywhere=True)
    own, its = bench.of_layer(mine), other.of_layer(theirs)
    left, right = _same_stores(bench, mine)[own], _same_stores(other, theirs)[its]
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


def _same_stores(bench: BisectBench, trace: StoreTrace) -> NDArray[np.int64]:
    """Return a row (size, value, offset in the arena) per store, equal for like stores."""
    stores: Any = trace.stores
    values = stores["value"].astype(np.int64)
    for region in bench.program.platform.memory:
        is_address = (values >= region.start) & (values < region.start + region.bytes)
        values = np.where((stores["size"] == 4) & is_address, _ELSEWHERE, values)
    places = stores["address"].astype(np.int64) - trace.arena
    outside = (places < 0) | (places >= trace.arena_bytes)
    places = np.where(outside, _ELSEWHERE, places)
    return np.stack([stores["size"].astype(np.int64), values, places], axis=1)
