"""The memory planner: buffers with a lifetime share one arena.

Placement is greedy by size into the lowest gap among the buffers alive at the same time (the
scheme of TFLM's GreedyMemoryPlanner), tried in a few orders of which the smallest arena wins.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

ALIGNMENT = 16


@dataclass(eq=False)
class Buffer:
    """Bytes that must not be overwritten from step ``first`` to step ``last``, both included.

    Where the layers may also run in another order, they must not be from its step ``begins`` to
    its step ``ends`` either.
    """

    name: str
    nbytes: int
    first: int
    last: int
    offset: int = -1
    begins: int = 0
    ends: int = -1

    def overlaps(self, other: Buffer) -> bool:
        """Whether both are alive at some step, in one order or the other."""
        together = self.first <= other.last and other.first <= self.last
        return together or (self.begins <= other.ends and other.begins <= self.ends)


def plan(buffers: Sequence[Buffer], alignment: int = ALIGNMENT) -> int:
    """Set every buffer's offset (a multiple of ``alignment``); returns the bytes of the arena."""
    orders: list[Callable[[Buffer], tuple[int, int]]] = [
        lambda b: (-b.nbytes, b.first),
        lambda b: (-(b.last - b.first), -b.nbytes),
        lambda b: (b.first, -b.nbytes),
        lambda b: (-b.last, -b.nbytes),
    ]
    best: tuple[int, list[int]] | None = None
    for order in orders:
        total, offsets = _place(buffers, order, alignment)
        if best is None or total < best[0]:
            best = total, offsets
    assert best is not None
    for buffer, offset in zip(buffers, best[1], strict=True):
        buffer.offset = offset
    return best[0]


def _place(
    buffers: Sequence[Buffer], order: Callable[[Buffer], tuple[int, int]], alignment: int
) -> tuple[int, list[int]]:
    offsets = [-1] * len(buffers)
    placed: list[int] = []
    total = 0
    for index in sorted(range(len(buffers)), key=lambda i: order(buffers[i])):
        size = _aligned(buffers[index].nbytes, alignment)
        taken = sorted(
            (offsets[i], offsets[i] + _aligned(buffers[i].nbytes, alignment))
            for i in placed
            if buffers[i].overlaps(buffers[index])
        )
        offset = 0
        for start, end in taken:
            if offset + size <= start:
                break
            offset = max(offset, end)
        offsets[index] = offset
        placed.append(index)
        total = max(total, offset + size)
    return total, offsets


def _aligned(size: int, alignment: int) -> int:
    return -(-size // alignment) * alignment
