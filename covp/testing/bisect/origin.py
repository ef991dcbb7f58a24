"""The origin of a wrong tensor: the store that made it wrong, its function, line and callers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from covp.codegen.program import Program
from covp.testing.bisect.trace import MasterStore, StoreTrace
from covp.testing.bisect.walk import WrongLayer

STEPS = 12
"""The most assignments that are reported before a wrong store."""
_PLACE = re.compile(r"^(?P<function>\S+) \((?P<source>.+)\)$")


@dataclass(frozen=True)
class Spot:
    """A line of source text.

    Attributes:
        function: its name.
        source: such as `file.c:12`; empty where it is not known.
        text: the line itself; empty where it is not known.
    """

    function: str
    source: str = ""
    text: str = ""

    @staticmethod
    def of(place: str, program: Program) -> Spot:
        """Return a spot with its text.

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
    """The store that made a tensor wrong.

    Attributes:
        kind: `store`: the core stored it at `spot`; `accelerator`: the model of `accelerator` did,
            `spot` is where it computes; `not written`: nothing did, `spot` is the last store to
            the tensor; `fault`: the layer ended at `spot`; `unknown`: the device does not show its
            stores.
        spot: function and line; None where the device does not show its stores.
        made: without optimization, where the wrong value was computed that is only passed on and
            stored afterwards; None where that is `spot` itself or not known.
        other: in two builds, the function and line that the other one executes instead.
        call_stack: active functions as "function (file.c:12)", innermost first.
        accelerator: its name in the program; empty: none.
        steps: the latest assignments before a wrong store, of a build without optimization.
        driver: of an accelerator, the C function and line that waited for it; empty: none.
        note: what else was found out, in one line.
    """

    kind: Literal["store", "accelerator", "not written", "fault", "unknown"]
    spot: Spot | None
    made: Spot | None = None
    other: Spot | None = None
    call_stack: tuple[str, ...] = ()
    accelerator: str = ""
    driver: str = ""
    steps: tuple[Step, ...] = ()
    note: str = ""


def wrong_bytes(trial: WrongLayer, got: NDArray[Any]) -> list[int]:
    """Return the offsets in the arena of the wrong bytes of wrong elements.

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


def origin(trial: WrongLayer, got: NDArray[Any], steps: bool = False) -> Cause:
    """Find the store that made the tensor of a trial wrong, the earliest one still there.

    Args:
        trial: a layer on a device that shows its stores.
        got: the wrong content of the tensor.
        steps: the layer is compiled without optimization: tell the assignments, too.
    """
    bench = trial.bench
    trace = bench.trace_stores(trial.position, trial.image)
    last = trace.last()
    keys = last[wrong_bytes(trial, got)]
    if (keys >= 0).any():
        return describe_store(trial, trace, int(keys[keys >= 0].min()), "store", steps)
    place = bench.tensors.places[trial.tensor]
    near = int(last[place.offset : place.offset + place.nbytes].max())
    if near < 0:
        return Cause("not written", None, note="nothing stores to the tensor")
    return describe_store(trial, trace, near, "not written")


def describe_store(
    trial: WrongLayer,
    trace: StoreTrace,
    key: int,
    kind: Literal["store", "not written"],
    steps: bool = False,
) -> Cause:
    """Describe a store of a layer by function, line and callers; the layer runs once more.

    Args:
        trial: the layer, and the arena it begins with.
        trace: of it.
        key: of the store in the trace.
        kind: of the cause, where it is the core's.
        steps: tell the assignments before it, too.
    """
    bench, position = trial.bench, trial.position
    store = trace.store(key)
    if isinstance(store, MasterStore):
        own: Literal["accelerator", "not written"] = (
            "accelerator" if kind == "store" else "not written"
        )
        spot = Spot.of(store.place, bench.program)
        return Cause(own, spot, accelerator=store.master, driver=store.driver)
    stack = bench.stack_at(position, trial.image, store)
    first = stack[0] if stack else bench.place(int(trace.stores["pc"][store]))
    target = bench.program.layers[position].target
    before = _steps(trial, store) if steps else ()
    return Cause(
        kind,
        Spot.of(first, bench.program),
        made=_first_with(before, _signed_value(trace.stores[store])),
        call_stack=stack,
        accelerator="" if target == "cpu" else target,
        steps=before[-STEPS:],
    )


def _first_with(steps: tuple[Step, ...], value: int) -> Spot | None:
    """Return the place of the first of the consecutive last steps that have a value."""
    made = None
    for step in reversed(steps):
        if step.value != value:
            break
        made = step.spot
    return made


def _steps(trial: WrongLayer, number: int) -> tuple[Step, ...]:
    """Return the assignments between a store to the arena and the one before it, one per line.

    Args:
        trial: a layer that is compiled without optimization.
        number: of the store among those to the arena.
    """
    bench = trial.bench
    trace = bench.trace_stores(trial.position, trial.image, everywhere=True)
    in_arena = trace.in_arena
    if number >= in_arena.size:  # more stores than are kept
        return ()
    end = int(in_arena[number])
    first = int(in_arena[number - 1]) + 1 if number else 0
    steps: list[Step] = []
    for store in trace.stores[max(first, end - 4 * STEPS) : end]:
        spot = Spot.of(bench.place(int(store["pc"])), bench.program)
        if steps and steps[-1].spot == spot:
            steps.pop()
        steps.append(Step(spot, _signed_value(store)))
    return tuple(steps)


def _signed_value(store: Any) -> int:
    bits, value = 8 * int(store["size"]), int(store["value"])
    return value - (1 << bits) if value >> bits - 1 else value
