"""`StoreTrace`: the stores of a layer, of the core and bus masters, and which byte they went to."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from covp.codegen.program import AcceleratorInstance
from covp.device.abilities import Emulator
from covp.hardware.observer import Observer

_MODEL_METHODS = ("compute", "accept")
"""The methods that compute a model's result: `Accelerator.compute`, `JobUnit.accept`."""
_FRAMES = ("covp.accelerator.declared", "covp.hardware.declared_unit", "covp.hardware.job_unit")
"""What is the same for all accelerators, and not where one computes."""


class MasterStore(NamedTuple):
    """A store of an accelerator's model.

    Attributes:
        master: the accelerator's name in the program.
        place: "Class.method (file.py:12)": where the model computes its results.
        driver: "function (file.c:12)" of the code that ran meanwhile.
        address: of the first byte.
        data: that was stored.
    """

    master: str
    place: str
    driver: str
    address: int
    data: bytes

    @property
    def size(self) -> int:
        """The size in bytes."""
        return len(self.data)


class MasterLog(Observer):
    """An observer of the bus that reports each store of a program's accelerators.

    Args:
        device: that they are attached to.
        accelerators: of the program; instructions in the core have no bus and are left out.
        on_store: called with each store before it is done.
    """

    def __init__(
        self,
        device: Emulator,
        accelerators: Sequence[AcceleratorInstance],
        on_store: Callable[[MasterStore], None],
    ) -> None:
        self._device, self._on_store = device, on_store
        there = device.board.peripherals
        self._units = {a.name: (a, there[a.name][1]) for a in accelerators if a.name in there}

    def store(self, master: str, address: int, data: NDArray[np.uint8]) -> None:
        """See `Observer`."""
        if master not in self._units:
            return
        accelerator, unit = self._units[master]
        core = self._device.core
        calls = self._device.board.names.call_stack(core.counter.block(), core.registers())
        own = [call for call in calls if any(f"({file}:" in call for file in accelerator.files)]
        driver, place = next(iter([*own, *calls]), ""), _computed_at(accelerator, unit)
        self._on_store(MasterStore(master, place, driver, address, data.tobytes()))


def _computed_at(accelerator: AcceleratorInstance, unit: object) -> str:
    """Return where an accelerator's author computes its results; else its class."""
    for owner in (type(accelerator.backend), type(unit)):
        for method in _MODEL_METHODS:
            found = getattr(owner, method, None)
            if found is not None and found.__module__ not in _FRAMES:
                return _source(found)
    return _source(type(unit))


def _source(what: Any) -> str:
    try:
        _, line = inspect.getsourcelines(what)
        file = Path(inspect.getsourcefile(what) or "").name
    except (OSError, TypeError):  # a notebook's, or one that is not Python
        return str(what.__qualname__)
    return f"{what.__qualname__} ({file}:{line})"


_BYTES = 8
"""The bytes of the largest store of the core."""


@dataclass(frozen=True, eq=False)
class Bytes:
    """Bytes of an arena that were stored, in no order.

    Attributes:
        offsets: of the bytes in the arena.
        keys: of the stores, in the order of time; see `StoreTrace.store`.
        values: the bytes.
    """

    offsets: NDArray[np.int64]
    keys: NDArray[np.int64]
    values: NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class StoreTrace:
    """The stores of one run of a layer.

    Attributes:
        stores: of the core, of dtype `covp.device.machine.store_log.STORE`, in their order.
        masters: of accelerators, each with the number of the core's stores before it.
        arena: address of the arena.
        arena_bytes: its size.
    """

    stores: NDArray[Any]
    masters: Sequence[tuple[int, MasterStore]]
    arena: int
    arena_bytes: int

    @property
    def in_arena(self) -> NDArray[np.intp]:
        """Numbers of the core's stores that touch the arena."""
        first = self.stores["address"].astype(np.int64)
        end = first + self.stores["size"]
        return np.flatnonzero((end > self.arena) & (first < self.arena + self.arena_bytes))

    def store(self, key: int) -> int | MasterStore:
        """Return the store of a key of `bytes`: the core's or an accelerator's."""
        return key // 2 if key % 2 else self._by_key()[key]

    def _by_key(self) -> dict[int, MasterStore]:
        return {2 * before: store for before, store in self.masters}

    def bytes(self) -> Bytes:
        """Return all bytes of the arena that were stored."""
        offsets, keys, values = [], [], []
        first = self.stores["address"].astype(np.int64) - self.arena
        number = 2 * np.arange(self.stores.size, dtype=np.int64) + 1
        for at in range(_BYTES):
            has = self.stores["size"] > at
            offsets.append(first[has] + at)
            keys.append(number[has])
            values.append((self.stores["value"][has] >> np.uint64(8 * at)).astype(np.uint8))
        for before, store in self.masters:
            offsets.append(store.address - self.arena + np.arange(store.size, dtype=np.int64))
            keys.append(np.full(store.size, 2 * before, np.int64))
            values.append(np.frombuffer(store.data, np.uint8))
        everywhere = Bytes(np.concatenate(offsets), np.concatenate(keys), np.concatenate(values))
        inside = (everywhere.offsets >= 0) & (everywhere.offsets < self.arena_bytes)
        return Bytes(everywhere.offsets[inside], everywhere.keys[inside], everywhere.values[inside])

    def last(self) -> NDArray[np.int64]:
        """Return the key of the last store to each byte of the arena; -1: none."""
        stored = self.bytes()
        last = np.full(self.arena_bytes, -1, np.int64)
        np.maximum.at(last, stored.offsets, stored.keys)
        return last
