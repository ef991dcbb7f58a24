"""How a layer is cut into tiles: the fastest that a unit's memories have room for.

A tiling is judged by a formula first: what is loaded again, and what the array computes. The best
by that are written as commands and scheduled, and the fastest of them is taken.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from covp.accelerator.tiled.commands import LONGEST, OPERANDS, Memory
from covp.accelerator.tiled.engines import Port
from covp.accelerator.tiled.nest import LoopNest, Tile
from covp.accelerator.tiled.tile_program import (
    ALIGNMENT,
    ELEMENT_BYTES,
    INPUT,
    OUTPUT,
    WEIGHTS,
    Tiling,
)

ORDERS = {
    "weights": (("channels", "depth", "pixels"), ("depth", "channels", "pixels")),
    "outputs": (("pixels", "channels", "depth"), ("channels", "pixels", "depth")),
    "inputs": (("pixels", "depth", "channels"), ("depth", "pixels", "channels")),
}
"""The loops over tiles, from the outermost, by the operand whose tile stays the longest."""
_SIZES = (1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024)
_MOST_CANDIDATES = 60_000
_MOST_TILES = 20_000
_FINALISTS = 16
_FINALISTS_OF_ORDER = 3


@dataclass(frozen=True)
class Rules:
    """What a tiling has to keep.

    Attributes:
        memories: of the operands, by name.
        buffers: tiles of an operand that the unit works on or waits for: 2 load the next one
            meanwhile.
        stationary: a key of `ORDERS`; "": any.
        most: the largest tile by role, such as {"depth": 16}.
        port: to the memory.
        dma_axes: that a load or store walks through.
    """

    memories: Mapping[str, Memory]
    buffers: int
    stationary: str
    most: Mapping[str, int]
    port: Port
    dma_axes: int


def best_tiling(
    nest: LoopNest,
    rules: Rules,
    cycles: Callable[[Tile], int],
    measure: Callable[[Tiling], float],
) -> Tiling | None:
    """Return the tiling that takes the fewest cycles; None: not even the smallest one fits.

    Args:
        nest: of the layer.
        rules: of the unit.
        cycles: of the array for a tile.
        measure: the cycles of a whole layer.
    """
    extents = _candidates(nest, rules.most)
    if not len(extents):
        return None
    computing = _by_tile(nest, extents, cycles)
    found: list[tuple[float, int, Tiling]] = []
    for order in _orders(nest, rules.stationary):
        found += _ranked(nest, rules, extents, computing, order)
    found.sort(key=lambda one: one[0])
    finalists: dict[Tiling, int] = {}
    for _, tiles, tiling in found:
        if len(finalists) < _FINALISTS and (sum(finalists.values()) + tiles <= _MOST_TILES):
            finalists[tiling] = tiles
    return min(finalists, key=measure, default=None)


def _candidates(nest: LoopNest, most: Mapping[str, int]) -> NDArray[np.int64]:
    """Return the extents of tiles to look at: (tilings, loops)."""
    limits = {n: most.get(role, 0) for role, loops in nest.roles.items() for n in loops}
    choices = []
    for n, extent in enumerate(nest.extents):
        largest = min(extent, limits[n] or extent, LONGEST)
        parts = {-(-extent // count) for count in (1, 2, 3, 4, 6, 8)}
        sizes = {size for size in (*parts, *_SIZES, largest) if size <= largest}
        choices.append(sorted(sizes, reverse=True))
    while math.prod(map(len, choices)) > _MOST_CANDIDATES:
        longest = max(choices, key=len)
        longest[:] = [longest[0], *longest[1:-1:2], longest[-1]]
    grids = np.meshgrid(*map(np.array, choices), indexing="ij") if choices else []
    found = np.stack([grid.ravel() for grid in grids], 1) if grids else np.zeros((1, 0), np.int64)
    for role, limit in most.items():
        loops = list(nest.roles[role])
        if limit and loops:
            found = found[found[:, loops].prod(axis=1) <= limit]
    return found.astype(np.int64)


def _by_tile(
    nest: LoopNest, extents: NDArray[np.int64], cycles: Callable[[Tile], int]
) -> NDArray[np.float64]:
    """Return the cycles of the array for all tiles of each tiling."""
    roles = np.stack(
        [extents[:, list(loops)].prod(axis=1) for loops in nest.roles.values()], axis=1
    )
    distinct, place = np.unique(roles, axis=0, return_inverse=True)
    names = list(nest.roles)
    each = np.array(
        [cycles(Tile(**dict(zip(names, row, strict=True)))) for row in distinct.tolist()]
    )
    trips = -(-np.array(nest.extents, np.int64) // extents)
    return np.asarray(each[place.ravel()] * trips.prod(axis=1), np.float64)


def _orders(nest: LoopNest, stationary: str) -> Iterator[tuple[int, ...]]:
    """Yield orders of the loops over tiles."""
    chosen = [ORDERS[stationary]] if stationary else list(ORDERS.values())
    known = set()
    for roles in itertools.chain(*chosen):
        order = tuple(n for role in ("groups", *roles) for n in nest.roles[role])
        if order not in known:
            known.add(order)
            yield order


def _ranked(
    nest: LoopNest,
    rules: Rules,
    extents: NDArray[np.int64],
    computing: NDArray[np.float64],
    order: Sequence[int],
) -> list[tuple[float, int, Tiling]]:
    """Return the best tilings of an order, with their cycles by the formula and their tiles."""
    trips = -(-np.array(nest.extents, np.int64) // extents)
    tiles = [_tile_bytes(nest, position, extents) for position in range(3)]
    distinct = [trips[:, sorted(used)].prod(axis=1) for used in nest.uses]
    live = _live_sums(nest, trips, order)
    sums = np.minimum(distinct[OUTPUT], np.maximum(live, rules.buffers))
    cycles = [_transfer_cycles(nest, position, extents, rules) for position in range(3)]
    stores = distinct[OUTPUT] * cycles[OUTPUT]
    best: list[tuple[float, int, Tiling]] = []
    for keeps in itertools.product((True, False), repeat=2):
        slots, moved = [], stores
        for position, all_stay in zip((INPUT, WEIGHTS), keeps, strict=True):
            some = np.minimum(rules.buffers, distinct[position])
            slots.append(distinct[position] if all_stay else some)
            loads = distinct[position] if all_stay else _loads(nest, position, trips, order)
            moved = moved + loads * cycles[position]
        slots.append(sums)
        fits = _fits(rules.memories, slots, tiles) & (trips.prod(axis=1) <= _MOST_TILES)
        alone = np.sum(cycles, axis=0)
        total = computing + moved if rules.buffers == 1 else np.maximum(computing, moved) + alone
        total = np.where(fits, total + 2.0 * trips.prod(axis=1), np.inf)
        for row in np.argsort(total, kind="stable")[:_FINALISTS_OF_ORDER].tolist():
            if np.isfinite(total[row]):
                counts = (int(slots[0][row]), int(slots[1][row]), int(slots[2][row]))
                moving = sorted(order, key=lambda n: trips[row, n] == 1)  # others need no loop
                tiling = Tiling(tuple(extents[row].tolist()), tuple(moving), counts)
                best.append((float(total[row]), int(trips[row].prod()), tiling))
    return best


def _tile_bytes(nest: LoopNest, operand: int, extents: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the bytes of an operand's slot for each tiling."""
    elements = np.ones(len(extents), np.int64)
    for axis in nest.operands[operand]:
        elements *= 1 + (extents - 1) @ np.array(axis.steps, np.int64).reshape(-1)
    return -(-elements * ELEMENT_BYTES[operand] // ALIGNMENT) * ALIGNMENT


def _transfer_cycles(
    nest: LoopNest, operand: int, extents: NDArray[np.int64], rules: Rules
) -> NDArray[np.float64]:
    """Return the cycles to move an operand's tile: each contiguous row begins a new word."""
    elements = row = commands = np.ones(len(extents), np.int64)
    piece = np.zeros(len(extents), np.int64)
    is_whole: NDArray[np.bool_] = np.ones(len(extents), np.bool_)
    for axis in reversed(nest.operands[operand]):
        span = 1 + (extents - 1) @ np.array(axis.steps, np.int64).reshape(-1)
        piece = piece + ~is_whole
        elements = elements * span
        row = np.where(piece == 0, row * span, row)
        commands = np.where(piece >= rules.dma_axes, commands * span, commands)
        moves = [n for n, step in enumerate(axis.steps) if step]
        is_cut = (extents[:, moves] < np.array(nest.extents, np.int64)[moves]).any(axis=1)
        is_whole = np.asarray(~is_cut & axis.is_whole(nest.extents, nest.extents))
    beats = elements // row * rules.port.cycles(row)
    return np.asarray(beats + rules.port.transfer_cycles * commands, np.float64)


def _loads(
    nest: LoopNest, operand: int, trips: NDArray[np.int64], order: Sequence[int]
) -> NDArray[np.int64]:
    """Return how often a tile is loaded: again wherever an inner loop moves along the operand."""
    loads = np.ones(len(trips), np.int64)
    moves = np.zeros(len(trips), np.bool_)
    for n in reversed(order):
        if n in nest.uses[operand]:
            moves |= trips[:, n] > 1
        loads *= np.where(moves, trips[:, n], 1)
    return loads


def _live_sums(nest: LoopNest, trips: NDArray[np.int64], order: Sequence[int]) -> NDArray[np.int64]:
    """Return how many tiles of sums wait for more products at the same time."""
    live = np.ones(len(trips), np.int64)
    found = np.ones(len(trips), np.int64)
    for n in reversed(order):
        if n in nest.uses[OUTPUT]:
            live = live * trips[:, n]
        else:
            found = np.where(trips[:, n] > 1, live, found)
    return found


def _fits(
    memories: Mapping[str, Memory],
    slots: Sequence[NDArray[np.int64]],
    tiles: Sequence[NDArray[np.int64]],
) -> NDArray[np.bool_]:
    used: dict[Memory, NDArray[np.int64]] = {}
    for position, name in enumerate(OPERANDS):
        memory = memories[name]
        used[memory] = used.get(memory, np.int64(0)) + slots[position] * tiles[position]
    fits = [total <= memory.nbytes for memory, total in used.items()]
    return np.asarray(np.logical_and.reduce(fits))
