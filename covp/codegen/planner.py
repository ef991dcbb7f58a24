"""The memory planner: buffers with a lifetime share one arena.

Placement is greedy by size into the lowest gap among the buffers alive at the same time (the
scheme of TFLM's GreedyMemoryPlanner), tried in a few orders of which the smallest arena wins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

ALIGNMENT = 16


@dataclass(eq=False)
class LiveBuffer:
    """Bytes that must not be overwritten from step ``first`` to step ``last``, both included.

    Where the layers may also run in another order, they must not be from its step ``begins`` to
    its step ``ends`` either. Where ``over`` is another buffer, it lies where that begins: its bytes
    are written after those under them are read for the last time.
    """

    name: str
    nbytes: int
    first: int
    last: int
    offset: int = -1
    begins: int = 0
    ends: int = -1
    over: LiveBuffer | None = None

    def overlaps(self, other: LiveBuffer) -> bool:
        """Return whether both are alive at some step, in one order or the other."""
        together = self.first <= other.last and other.first <= self.last
        return together or (self.begins <= other.ends and other.begins <= self.ends)


def plan(buffers: Sequence[LiveBuffer], alignment: int = ALIGNMENT) -> int:
    """Set every buffer's offset (a multiple of ``alignment``); returns the bytes of the arena."""
    orders: list[Callable[[LiveBuffer], tuple[int, int]]] = [
        lambda b: (-b.nbytes, b.first),
        lambda b: (-(b.last - b.first), -b.nbytes),
        lambda b: (b.first, -b.nbytes),
        lambda b: (-b.last, -b.nbytes),
    ]
    arena = _Arena(buffers, alignment)
    plans = [arena.place(order) for order in orders]
    if any(buffer.over for buffer in buffers):  # it may lie elsewhere, too
        plans += [arena.place(order, together=False) for order in orders]
    total, offsets = min(plans, key=lambda plan: plan[0])  # of equal ones the first
    for buffer, offset in zip(arena.buffers, offsets.tolist(), strict=True):
        buffer.offset = offset
    return total


class _Arena:
    """Buffers in the order in which they begin, so that few have to be looked at for each.

    Args:
        buffers: of the arena.
        alignment: of their offsets.
    """

    def __init__(self, buffers: Sequence[LiveBuffer], alignment: int) -> None:
        self._given = sorted(range(len(buffers)), key=lambda i: buffers[i].first)
        """The place of each among the caller's, which decides between equal ones."""
        self.buffers = [buffers[i] for i in self._given]
        self._sizes = _numbers(-(-b.nbytes // alignment) * alignment for b in self.buffers)
        self._first = _numbers(b.first for b in self.buffers)
        self._last = _numbers(b.last for b in self.buffers)
        self._latest = np.maximum.accumulate(self._last)
        """The last step of this buffer and all before."""
        self._begins = _numbers(b.begins for b in self.buffers)
        self._ends = _numbers(b.ends for b in self.buffers)
        self._has_orders = bool((self._ends >= self._begins).any())
        numbers = {id(b): i for i, b in enumerate(self.buffers)}
        self._together = [[i] for i in range(len(self.buffers))]
        """The buffers that begin at the same offset as each."""
        for index, buffer in enumerate(self.buffers):
            if buffer.over is not None:
                under = numbers[id(buffer.over)]
                self._together[index] = self._together[under] = [under, index]

    def place(
        self, order: Callable[[LiveBuffer], tuple[int, int]], together: bool = True
    ) -> tuple[int, _Numbers]:
        """Place the buffers one after the other, each into the lowest gap; total and offsets.

        Args:
            order: of the buffers.
            together: a buffer that may lie ``over`` another one does.
        """
        offsets = np.full(len(self.buffers), -1)
        total = 0
        numbers = range(len(self.buffers))
        for index in sorted(numbers, key=lambda i: (order(self.buffers[i]), self._given[i])):
            if offsets[index] >= 0:
                continue
            group = self._together[index] if together else [index]
            others = np.unique(np.concatenate([self._alive_with(i, offsets) for i in group]))
            size = int(self._sizes[group].max())
            offset = _lowest_gap(offsets[others], self._sizes[others], size)
            offsets[group] = offset
            total = max(total, offset + size)
        return total, offsets

    def _alive_with(self, index: int, offsets: _Numbers) -> _Numbers:
        """Return the buffers that are placed and share a step with one: `LiveBuffer.overlaps`."""
        first, last = int(self._first[index]), int(self._last[index])
        if self._has_orders:
            low, high = 0, len(offsets)
        else:  # those before end too early, those behind begin too late
            low = int(np.searchsorted(self._latest, first))
            high = int(np.searchsorted(self._first, last, "right"))
        part = slice(low, high)
        together = (self._first[part] <= last) & (self._last[part] >= first)
        if self._has_orders:
            begins, ends = self._begins[index], self._ends[index]
            together |= (self._begins <= ends) & (self._ends >= begins)
        return low + np.flatnonzero(together & (offsets[part] >= 0))


_Numbers = NDArray[np.int64]


def _numbers(values: Iterable[int]) -> _Numbers:
    return np.fromiter(values, np.int64)


def _lowest_gap(starts: _Numbers, sizes: _Numbers, size: int) -> int:
    """Return the lowest offset of enough free bytes between those that are taken."""
    if not starts.size:
        return 0
    order = np.argsort(starts)
    starts = starts[order]
    free = np.maximum.accumulate(starts + sizes[order])  # behind each, and all below it
    before = np.concatenate([[0], free[:-1]])
    fitting = np.flatnonzero(before + size <= starts)
    return int(before[fitting[0]] if fitting.size else free[-1])
