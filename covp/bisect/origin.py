"""Where a wrong tensor comes from: the store that made it wrong, its function, line and callers."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from covp.bisect.bench import Bench
from covp.bisect.masters import MasterStore
from covp.bisect.walk import Trial
from covp.machine.store_log import Store
from covp.program import Program

STEPS = 12
"""Assignments that are told before a wrong store."""
_PLACE = re.compile(r"^(?P<function>\S+) \((?P<source>.+)\)$")


@dataclass(frozen=True)
class Spot:
    """A line of source text.

    Attributes:
        function: its name.
        source: "file.c:12"; empty where it is not known.
        text: the line itself; empty where it is not known.
    """

    function: str
    source: str = ""
    text: str = ""

    @staticmethod
    def of(place: str, program: Program) -> Spot:
        """A spot with its text.

        Args:
            place: "function (file.c:12)".
            program: in whose sources the text is.
        """
        match = _PLACE.match(place)
        if match is None:
            return Spot(place)
        file, _, line = match["source"].rpartition(":")
        lines = program.sources.get(file, "").splitlines()
        number = int(line) if line.isdigit() else 0
        text = lines[number - 1].strip() if 0 < number <= len(lines) else ""
        return Spot(match["function"], match["source"], text)

    def __str__(self) -> str:
        where = f" ({self.source})" if self.source else ""
        return f"{self.function}{where}" + (f": {self.text}" if self.text else "")


@dataclass(frozen=True)
class Step:
    """A value that was assigned.

    Attributes:
        spot: function and line.
        value: as a signed number of the store's size.
    """

    spot: Spot
    value: int

    def __str__(self) -> str:
        return f"{self.value} by {self.spot}"


@dataclass(frozen=True)
class Cause:
    """What made a tensor wrong.

    Attributes:
        kind: "store": the core stored it at ``spot``; "accelerator": the model of ``accelerator``
            did, ``spot`` is where it computes; "not written": nothing did, ``spot`` is the last
            store to the tensor; "fault": the layer ended at ``spot``.
        spot: function and line; None where the device does not show its stores.
        other: in two builds, the function and line that the other one executes instead.
        call_stack: active functions as "function (file.c:12)", innermost first.
        accelerator: its name in the program; empty: none.
        steps: the latest assignments before a wrong store, of a build without optimization.
        driver: of an accelerator, the C function and line that waited for it; empty: none.
        note: what else was found out, in one line.
    """

    kind: Literal["store", "accelerator", "not written", "fault"]
    spot: Spot | None
    other: Spot | None = None
    call_stack: tuple[str, ...] = ()
    accelerator: str = ""
    driver: str = ""
    steps: tuple[Step, ...] = ()
    note: str = ""


@dataclass(frozen=True)
class Event:
    """A store to the arena.

    Attributes:
        order: its number, from 0.
        store: of the core or of an accelerator.
        offset: of the first byte in the arena.
        data: what was stored.
    """

    order: int
    store: Store | MasterStore
    offset: int
    data: bytes


def events(bench: Bench, position: int, image: bytes) -> list[Event]:
    """The stores to the arena while a layer runs.

    Args:
        bench, position, image: as of `Bench.run`.
    """
    found: list[Event] = []

    def told(store: Store | MasterStore) -> None:
        if isinstance(store, MasterStore):
            data = store.data
        else:
            data = store.value.to_bytes(store.size, "little")
        found.append(Event(len(found), store, store.address - bench.arena, data))

    bench.watched(position, image, told)
    return found


def wrong_bytes(trial: Trial, got: NDArray[Any]) -> list[int]:
    """Offsets in the arena of the bytes of elements that are not as wanted.

    Args:
        trial: what is wanted.
        got: the content of its tensor.
    """
    assert trial.wanted is not None
    place = trial.bench.tensors.places[trial.tensor]
    size = place.dtype.itemsize
    raw = [np.ascontiguousarray(a).reshape(-1).view(np.uint8) for a in (got, trial.wanted)]
    different = (raw[0] != raw[1]).reshape(-1, size)
    wrong = set(trial.law(got, trial.wanted).tolist())
    elements = [i for i in range(place.nbytes // size) if i in wrong]
    return [
        place.offset + i * size + int(b) for i in elements for b in np.flatnonzero(different[i])
    ]


def last_stores(found: Iterable[Event], offsets: Iterable[int]) -> list[Event]:
    """Of each byte the store that was the last one, in their order.

    Args:
        found: all stores.
        offsets: of the bytes; those without a store are left out.
    """
    wanted = set(offsets)
    last: dict[int, Event] = {}
    for event in found:
        for offset in range(event.offset, event.offset + len(event.data)):
            if offset in wanted:
                last[offset] = event
    return sorted(set(last.values()), key=lambda event: event.order)


def origin(trial: Trial, got: NDArray[Any], steps: bool = False) -> Cause:
    """The store that made the tensor of a trial wrong, the earliest one of those still there.

    Args:
        trial: a layer on a device that shows its stores.
        got: the wrong content of the tensor.
        steps: the layer is compiled without optimization: tell the assignments, too.
    """
    bench = trial.bench
    found = events(bench, trial.position, trial.image)
    stores = last_stores(found, wrong_bytes(trial, got))
    if stores:
        return described(bench, trial, stores[0], "store", steps)
    place = bench.tensors.places[trial.tensor]
    near = [e for e in found if place.offset <= e.offset < place.offset + place.nbytes]
    if not near:
        return Cause("not written", None, note="nothing stores to the tensor")
    return described(bench, trial, near[-1], "not written")


def described(
    bench: Bench,
    trial: Trial,
    event: Event,
    kind: Literal["store", "not written"],
    steps: bool = False,
) -> Cause:
    """A store of a layer with its function, line and callers; the layer runs once more.

    Args:
        bench: where it happens.
        trial: whose arena the layer begins with.
        event: the store.
        kind: of the cause, where it is the core's.
        steps: tell the assignments before it, too.
    """
    look = _Look(bench, event.order)
    bench.watched(trial.position, trial.image, look.told, everywhere=steps)
    if isinstance(event.store, MasterStore):
        spot = Spot.of(event.store.place, bench.program)
        own: Literal["accelerator", "not written"] = (
            "accelerator" if kind == "store" else "not written"
        )
        return Cause(own, spot, accelerator=event.store.master, driver=look.driver)
    first = look.stack[0] if look.stack else bench.place(event.store.pc)
    target = bench.program.layers[trial.position].target
    return Cause(
        kind,
        Spot.of(first, bench.program),
        call_stack=look.stack,
        accelerator="" if target == "cpu" else target,
        steps=tuple(_step(bench, store) for store in look.before),
    )


class _Look:
    """Waits for a store to the arena by its number; sees who called and what was assigned."""

    def __init__(self, bench: Bench, order: int) -> None:
        self._bench, self._left = bench, order
        self.stack: tuple[str, ...] = ()
        self.driver = ""
        self.before: deque[Store] = deque(maxlen=STEPS)

    def told(self, store: Store | MasterStore) -> None:
        """A store is about to be done."""
        if not self._bench.is_in_arena(store):
            if self._left >= 0 and isinstance(store, Store):
                self.before.append(store)
            return
        if self._left > 0:
            self.before.clear()
        elif self._left == 0 and isinstance(store, MasterStore):
            self.driver = self._bench.waiting()
        elif self._left == 0 and isinstance(store, Store):
            self.stack = self._bench.stack(store.pc)
        self._left -= 1


def _step(bench: Bench, store: Store) -> Step:
    value = int.from_bytes(store.value.to_bytes(store.size, "little"), "little", signed=True)
    return Step(Spot.of(bench.place(store.pc), bench.program), value)
