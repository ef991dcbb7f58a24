"""`Trace`: the stores of a layer, of the core and of accelerators, and which byte they went to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.testing.bisect.masters import MasterStore

_BYTES = 8
"""Of the largest store of the core."""


@dataclass(frozen=True, eq=False)
class Bytes:
    """Bytes of an arena that were stored, in no order.

    Attributes:
        offsets: of the bytes in the arena.
        keys: of the stores, in the order of time; see `Trace.store`.
        values: the bytes.
    """

    offsets: NDArray[np.int64]
    keys: NDArray[np.int64]
    values: NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class Trace:
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
        """Key of the last store to each byte of the arena; -1: none."""
        stored = self.bytes()
        last = np.full(self.arena_bytes, -1, np.int64)
        np.maximum.at(last, stored.offsets, stored.keys)
        return last
