"""The commands of a layer in tiles: what is loaded, computed and stored, in which order."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from covp.accelerator.tiled.commands import (
    LOAD,
    LONGEST,
    OPERANDS,
    STORE,
    Memory,
    encode_compute,
    encode_fill,
    encode_layout,
    encode_loops,
    encode_transfer,
)
from covp.accelerator.tiled.nest import Axis, LoopNest
from covp.base.plural import pluralize

ALIGNMENT = 16
"""Bytes to whose multiples tiles are placed in a unit's memories."""
INPUT, WEIGHTS, OUTPUT = range(3)
ELEMENT_BYTES = (1, 1, 4)
"""Of input, weights and sums in a unit's memories."""
Box = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Tiling:
    """How a layer is cut.

    Attributes:
        extents: of a tile, for each loop of the nest.
        order: of the loops over tiles, from the outermost to the innermost.
        slots: tiles of input, weights and sums that the unit's memories hold.
    """

    extents: tuple[int, ...]
    order: tuple[int, ...]
    slots: tuple[int, int, int]


def describe_tiling(nest: LoopNest, tiling: Tiling) -> str:
    """Return the tiles of a layer and what stays in the unit: "9 tiles of 64 pixels, ..."."""
    trips = [-(-e // t) for e, t in zip(nest.extents, tiling.extents, strict=True)]
    sizes = [
        f"{math.prod(tiling.extents[n] for n in loops)} {role}"
        for role, loops in nest.roles.items()
        if loops
    ]
    moving = [n for n in tiling.order if trips[n] > 1]
    stays = {"pixels": "weights stay", "depth": "sums stay", "channels": "the input stays"}
    innermost = [role for role, loops in nest.roles.items() if moving and moving[-1] in loops]
    what = "".join(f", {stays[role]}" for role in innermost if role in stays)
    return f"{pluralize(math.prod(trips), 'tile')} of {', '.join(sizes) or 'one product'}{what}"


def slot_bytes(nest: LoopNest, operand: int, extents: Sequence[int]) -> int:
    """Return the bytes of a place for a tile of an operand."""
    elements = math.prod(axis.span(extents) for axis in nest.operands[operand])
    return -(-elements * ELEMENT_BYTES[operand] // ALIGNMENT) * ALIGNMENT


class _Operand:
    """An operand of a layer: its strides, and which of its tiles are in the unit.

    Args:
        nest, tiling: of the layer.
        position: of the operand.
        places: byte of the unit's memory at which each slot begins.
        dma_axes: the most that a transfer has.
    """

    def __init__(
        self,
        nest: LoopNest,
        tiling: Tiling,
        position: int,
        places: Sequence[int],
        dma_axes: int,
    ) -> None:
        one = Axis(1, (0,) * len(nest.extents))
        self.axes = nest.operands[position] or (one,)
        self.position = position
        spans = [axis.span(tiling.extents) for axis in self.axes]
        self.memory = _row_major([axis.extent for axis in self.axes])
        self.local = _row_major(spans)
        self._size = slot_bytes(nest, position, tiling.extents) // ELEMENT_BYTES[position]
        self._places = [place // ELEMENT_BYTES[position] for place in places]
        self._held: dict[Box, int] = {}
        self._pieces = self._merge(nest, tiling)
        self._inner = self._pieces[-dma_axes:]
        self._outer = self._pieces[:-dma_axes]

    def layout(self) -> list[int]:
        """Return the LAYOUT of all its transfers."""
        strides = [(self.memory[piece[-1]], self.local[piece[-1]]) for piece in self._inner[:-1]]
        return encode_layout(self.position, [m for m, _ in strides], [u for _, u in strides])

    def steps(self) -> list[int]:
        """Return how far each loop moves in the unit's memory."""
        moved = zip(*(axis.steps for axis in self.axes), strict=True)
        return [sum(s * at for s, at in zip(one, self.local, strict=True)) for one in moved]

    def place(self, box: Box) -> tuple[int, bool]:
        """Return the address of a tile, and whether it was there already; the oldest makes room."""
        known = box in self._held
        slot = self._held.pop(box, None)
        if slot is None:
            is_full = len(self._held) == len(self._places)
            slot = self._held.pop(next(iter(self._held))) if is_full else len(self._held)
        self._held[box] = slot
        return self._places[slot], known

    def transfers(self, opcode: int, box: Box, address: int) -> Iterator[list[int]]:
        """Yield the commands that move the elements of a box that exist, and fill the others."""
        inside = [
            (max(low, 0), min(end, axis.extent))
            for (low, end), axis in zip(box, self.axes, strict=True)
        ]
        is_empty = any(low >= end for low, end in inside)
        if is_empty or inside != list(box):
            yield encode_fill(self.position, address, self._size)
        if is_empty:
            return
        extents = [end - low for low, end in inside]
        sizes = [math.prod(extents[axis] for axis in piece) for piece in self._inner]
        outer = [range(extents[axis]) for piece in self._outer for axis in piece]
        lows = [low for low, _ in inside]
        shifts = [low - first for low, (first, _) in zip(lows, box, strict=True)]
        start = sum(low * stride for low, stride in zip(lows, self.memory, strict=True))
        local = address + sum(s * stride for s, stride in zip(shifts, self.local, strict=True))
        for at in itertools.product(*outer):
            far = sum(i * stride for i, stride in zip(at, self.memory, strict=False))
            near = sum(i * stride for i, stride in zip(at, self.local, strict=False))
            yield encode_transfer(opcode, self.position, start + far, local + near, sizes)

    def _merge(self, nest: LoopNest, tiling: Tiling) -> list[list[int]]:
        """Return groups of axes whose elements are contiguous in memory and in the unit."""
        pieces = [[0]]
        for axis in range(1, len(self.axes)):
            size = math.prod(self.axes[n].span(tiling.extents) for n in (*pieces[-1], axis))
            if self.axes[axis].is_whole(nest.extents, tiling.extents) and size <= LONGEST:
                pieces[-1].append(axis)
            else:
                pieces.append([axis])
        return pieces


def _row_major(extents: Sequence[int]) -> list[int]:
    return [math.prod(extents[n + 1 :]) for n in range(len(extents))]


def make_commands(
    nest: LoopNest, tiling: Tiling, memories: Mapping[str, Memory], dma_axes: int
) -> list[int]:
    """Return the words of the commands of a layer.

    Args:
        nest, tiling: of the layer; its slots fit the memories.
        memories: of the operands, by name.
        dma_axes: the most axes of a transfer.
    """
    operands = _operands(nest, tiling, memories, dma_axes)
    words = [word for operand in operands for word in operand.layout()]
    steps = list(zip(*(operand.steps() for operand in operands), strict=True))
    trips = [-(-e // t) for e, t in zip(nest.extents, tiling.extents, strict=True)]
    depth_tiles = math.prod(trips[n] for n in nest.roles["depth"])
    begun, loops = Counter[Box](), None
    result = operands[OUTPUT]
    for at in itertools.product(*(range(trips[n]) for n in tiling.order)):
        tile = dict(zip(tiling.order, at, strict=True))
        ranges = [
            (tile[n] * size, min((tile[n] + 1) * size, extent))
            for n, (size, extent) in enumerate(zip(tiling.extents, nest.extents, strict=True))
        ]
        boxes = [tuple(axis.box(ranges) for axis in operand.axes) for operand in operands]
        addresses = []
        for operand, box in zip(operands, boxes, strict=True):
            address, is_there = operand.place(box)
            addresses.append(address)
            if not is_there and operand is not result:
                for command in operand.transfers(LOAD, box, address):
                    words += command
        wanted = [
            (end - low, *steps[n]) for n, (low, end) in enumerate(ranges) if end - low > 1
        ] or [(1, 0, 0, 0)]
        if wanted != loops:
            loops = wanted
            words += encode_loops(loops)
        words += encode_compute(begun[boxes[OUTPUT]] > 0, *addresses)
        begun[boxes[OUTPUT]] += 1
        if begun[boxes[OUTPUT]] == depth_tiles:
            for command in result.transfers(STORE, boxes[OUTPUT], addresses[OUTPUT]):
                words += command
    return words


def _operands(
    nest: LoopNest, tiling: Tiling, memories: Mapping[str, Memory], dma_axes: int
) -> list[_Operand]:
    """Return the operands with the places of their tiles."""
    sharing: dict[Memory, list[int]] = {}
    for position, name in enumerate(OPERANDS):
        sharing.setdefault(memories[name], []).append(position)
    places: dict[int, list[int]] = {}
    for memory, positions in sharing.items():
        slots = {
            position: (tiling.slots[position], slot_bytes(nest, position, tiling.extents))
            for position in positions
        }
        places |= _place(memory, slots)
    return [
        _Operand(nest, tiling, position, places[position], dma_axes)
        for position in range(len(OPERANDS))
    ]


def _place(memory: Memory, slots: Mapping[int, tuple[int, int]]) -> dict[int, list[int]]:
    """Return the places of slots, (count, bytes) of each operand: in banks of their own, if any.

    Where a tile is larger than a bank, two, three or more neighbours are taken as one.
    """
    for count in range(memory.banks, 1, -1):
        if memory.banks % count == 0:
            found = _in_banks(memory.nbytes, count, slots)
            if found is not None:
                return found
    return _one_behind_the_other(slots)


def _one_behind_the_other(slots: Mapping[int, tuple[int, int]]) -> dict[int, list[int]]:
    found, used = {}, 0
    for position, (count, size) in slots.items():
        found[position] = [used + n * size for n in range(count)]
        used += count * size
    return found


def _in_banks(
    nbytes: int, banks: int, slots: Mapping[int, tuple[int, int]]
) -> dict[int, list[int]] | None:
    """Return places that let one tile be loaded while another is read: by turns in own banks.

    None: there are too few banks, or they are too small.
    """
    borders = [-(-n * nbytes // banks) for n in range(banks + 1)]
    starts = [-(-border // ALIGNMENT) * ALIGNMENT for border in borders]
    room = min(end - start for start, end in zip(starts, borders[1:], strict=False))
    fitting = {position: room // size for position, (_, size) in slots.items()}
    if min(fitting.values()) < 1:
        return None
    given = {position: -(-count // fitting[position]) for position, (count, _) in slots.items()}
    left = banks - sum(given.values())
    if left < 0:
        return None
    for position in itertools.islice(itertools.cycle(slots), left * len(slots)):
        if left and given[position] < slots[position][0]:
            given[position] += 1
            left -= 1
    found, first = {}, 0
    for position, (count, size) in slots.items():
        own = starts[first : first + given[position]]
        found[position] = [own[n % len(own)] + n // len(own) * size for n in range(count)]
        first += given[position]
    return found
