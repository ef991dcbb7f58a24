"""`Ways`: what runs take more than expected, because of values or of the memory that they meet.

The native side does the same while code runs: ``covp/device/machine/varied.h``.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from covp.device.timing.native import CodeItem, PathBlock, Pipeline, PlacedBlock

MEMORY, FELL, JUMPED = "memory", "fell", "jumped"
"""Kinds of `OperandRuns` beside those of operands: an access met something else than expected; the
core then went on to the block after it; it jumped."""
TWO_WORDS, STORED, MEMORIES = 0x80, 0x20, 0x1F
"""Of what an access meets: it crosses a word; how many instructions before it what it loads was
stored, times this; 1 + the place of the memory. All is in ``covp/device/machine/memories.h``."""
_ALIGNMENTS = (0, 0, 0, 1, 2, 2, 2, 3)  # of model.h, by what was met in steps of `STORED`


@dataclass(frozen=True)
class OperandRuns:
    """The number of times an instruction had operands of certain sizes, or met the unexpected.

    Attributes:
        kind: name of its class; or `MEMORY`, `FELL`, `JUMPED`.
        first, second: bits of the magnitudes of the operands; of a shift 0 and its places. Of
            `MEMORY` 1 + the place of the memory (0: none that counts) and `TWO_WORDS`; and its wait
            states beyond those of the memory that was expected.
        count: how often.
        block: position in `Trace.blocks` of its block.
        place: of the instruction in the block.
        entry: how its block was entered.
        before: position in `Trace.operands` of what was met on the way to it; None: nothing.
    """

    kind: str
    first: int
    second: int
    count: int
    block: int
    place: int
    entry: int
    before: int | None = None


@dataclass(frozen=True)
class PlacedCode:
    """A block of code where it runs.

    Attributes:
        items, address, ends: as of `covp.device.timing.trace.BlockRuns`.
        placed: the same for the native side, with what runs before it.
    """

    items: ctypes.Array[CodeItem]
    address: int
    ends: int
    placed: PlacedBlock


class Ways:
    """A timer of the ways of a trace's operands.

    Args:
        operands: of the trace.
        pipeline: the timing model with the memory.
        block: the block at a position in the trace.
        waits: of what a `MEMORY` met, beyond those of what was expected.
        cycles: that operands add to those of their instruction, by the model.
    """

    def __init__(
        self,
        operands: Sequence[OperandRuns],
        pipeline: Pipeline,
        block: Callable[[int], PlacedCode],
        waits: Callable[[OperandRuns], int],
        cycles: Callable[[OperandRuns], int],
    ) -> None:
        self._operands, self._pipeline, self._block = operands, pipeline, block
        self._waits, self._cycles = waits, cycles
        self._delays: dict[int, int] = {}

    def more(self, number: int) -> int:
        """Return the extra cycles of a run with these operands over what was met before it.

        Args:
            number: position among the operands.
        """
        one = self._operands[number]
        before = 0 if one.before is None else self._delay(one.before)
        if one.kind != JUMPED:
            return self._delay(number) - before
        assert one.before is not None
        return self._extra_cycles(one.before, jumps=True) - before

    def _delay(self, number: int) -> int:
        if number not in self._delays:
            self._delays[number] = self._extra_cycles(number, jumps=False)
        return self._delays[number]

    def _extra_cycles(self, number: int, jumps: bool) -> int:
        """Return the cycles that a way takes beyond those expected, with the branch at its end."""
        nodes = self._nodes(number)
        blocks = [
            self._block(node.block) for node in nodes if node is nodes[0] or node.kind == FELL
        ]
        met = [_Met.of(block) for block in blocks]
        at = 0
        for node in nodes:
            at += node is not nodes[0] and node.kind == FELL
            if node.kind == MEMORY:
                met[at].meet(node, self._waits(node))
            elif node.kind != FELL:
                met[at].more[node.place] += self._cycles(node)
        first = blocks[0].placed, nodes[0].entry, blocks[-1].ends, jumps
        ran = [PathBlock(one.items, one.address, one.more) for one in met]
        expected = [PathBlock(one.items, one.address) for one in blocks]
        return self._pipeline.path(ran, *first) - self._pipeline.path(expected, *first)

    def _nodes(self, number: int) -> list[OperandRuns]:
        """Return the chain of operands up to a position, the oldest first."""
        nodes = [self._operands[number]]
        while (before := nodes[-1].before) is not None:
            nodes.append(self._operands[before])
        return nodes[::-1]


@dataclass
class _Met:
    """A block's code with what it met."""

    items: ctypes.Array[CodeItem]
    address: int
    more: ctypes.Array[ctypes.c_int32]
    places: set[int]

    @classmethod
    def of(cls, block: PlacedCode) -> _Met:
        items = type(block.items).from_buffer_copy(block.items)
        return cls(items, block.address, (ctypes.c_int32 * len(items))(), set())

    def meet(self, node: OperandRuns, waits: int) -> None:
        """Add the ``waits`` of a ``node``'s access to its item."""
        item = self.items[node.place]
        if node.place not in self.places:
            item.alignment = item.stored = 0
            self.places.add(node.place)
        item.cycles += waits
        item.memory = node.first & MEMORIES
        item.alignment = _ALIGNMENTS[node.first // STORED] or item.alignment
        item.stored = node.first // STORED % 4 % 3
