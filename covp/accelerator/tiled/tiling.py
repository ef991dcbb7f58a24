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
from covp.accelerator.tiled.nest import Axis, LoopNest, Tile
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
_COMMAND_BYTES = 17  # as a mean of those in the layers of MLPerf Tiny
_MOST_CANDIDATES = 60_000
_MOST_COMMANDS = 20_000
_MOST_LOOKED_AT = 100_000
"""Commands of all finalists of a layer: what is written and scheduled."""
_FINALISTS = 48
_FINALISTS_OF_ORDER = 8


@dataclass(frozen=True)
class Rules:
    """What a tiling has to keep.

    Attributes:
        memories: of the operands, by name.
        buffers: tiles of an operand that the unit works on or waits for: one more than arrays
            loads the next one meanwhile.
        arrays: that compute tiles at the same time.
        stationary: a key of `ORDERS`; "": any.
        most: the largest tile by role, such as {"depth": 16}.
        port: to the memory.
        dma_axes: that a load or store walks through.
        kept: the weights are in a memory of the unit's own: their loads take no time.
    """

    memories: Mapping[str, Memory]
    buffers: int
    arrays: int
    stationary: str
    most: Mapping[str, int]
    port: Port
    dma_axes: int
    kept: bool = False


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
    tried = _Tried(nest, rules, extents, _by_tile(nest, extents, cycles))
    found: list[tuple[float, int, Tiling]] = []
    for order in _orders(nest, rules.stationary):
        found += _ranked(tried, order)
    found.sort(key=lambda one: one[0])
    finalists: dict[Tiling, int] = {}
    for _, commands, tiling in found:
        if len(finalists) < _FINALISTS and sum(finalists.values()) + commands <= _MOST_LOOKED_AT:
            finalists[tiling] = commands
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
    found = found.astype(np.int64)
    spans = [_span(axis, found) for axes in nest.operands for axis in axes]
    return found[np.logical_and.reduce([span <= LONGEST for span in spans])] if spans else found


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


def _span(axis: Axis, extents: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how many indices a tile reads along an axis, for each tiling."""
    return np.asarray(1 + (extents - 1) @ np.array(axis.steps, np.int64).reshape(-1), np.int64)


class _Tried:
    """Tilings of a layer with what does not depend on the order of their loops.

    Args:
        nest, rules: of the layer and the unit.
        extents: (tilings, loops).
        computing: cycles of the array for all tiles, for each tiling.

    Attributes:
        trips: tiles along each loop.
        tiles: bytes of a slot of each operand.
        cycles, commands: of the transfer of a tile of each operand.
    """

    def __init__(
        self,
        nest: LoopNest,
        rules: Rules,
        extents: NDArray[np.int64],
        computing: NDArray[np.float64],
    ) -> None:
        self.nest, self.rules, self.extents, self.computing = nest, rules, extents, computing
        self.trips = -(-np.array(nest.extents, np.int64) // extents)
        self.tiles, self.cycles, self.commands = [], [], []
        for operand, axes in enumerate(nest.operands):
            elements, rows, beats, commands = self._transfer(axes)
            nbytes = elements * ELEMENT_BYTES[operand]
            self.tiles.append(-(-nbytes // ALIGNMENT) * ALIGNMENT)
            cycles = rows * beats + rules.port.transfer_cycles * commands
            self.cycles.append(0 * cycles if rules.kept and operand == WEIGHTS else cycles)
            self.commands.append(commands)

    def _transfer(self, axes: Sequence[Axis]) -> tuple[NDArray[np.int64], ...]:
        """Return elements, contiguous rows, cycles of a row, and commands of a tile."""
        elements = row = commands = np.ones(len(self.extents), np.int64)
        piece = np.zeros(len(self.extents), np.int64)
        is_whole: NDArray[np.bool_] = np.ones(len(self.extents), np.bool_)
        whole = np.array(self.nest.extents, np.int64)
        for axis in reversed(axes):
            span = _span(axis, self.extents)
            piece = piece + ~is_whole
            elements = elements * span
            row = np.where(piece == 0, row * span, row)
            commands = np.where(piece >= self.rules.dma_axes, commands * span, commands)
            moves = [n for n, step in enumerate(axis.steps) if step]
            is_cut = (self.extents[:, moves] < whole[moves]).any(axis=1)
            padded = not axis.is_whole(self.nest.extents, self.nest.extents)
            is_whole = np.asarray(~is_cut & (not padded), np.bool_)
        return elements, elements // row, self.rules.port.cycles(row), commands


def _ranked(tried: _Tried, order: Sequence[int]) -> list[tuple[float, int, Tiling]]:
    """Return the best tilings of an order: cycles by the formula, commands, tiling."""
    nest, rules, trips = tried.nest, tried.rules, tried.trips
    distinct = [trips[:, sorted(used)].prod(axis=1) for used in nest.uses]
    live = _live_sums(nest, trips, order)
    sums = np.minimum(distinct[OUTPUT], np.maximum(live, rules.buffers))
    computing = tried.computing / rules.arrays
    alone = np.sum(tried.cycles, axis=0)
    best: list[tuple[float, int, Tiling]] = []
    for keeps in itertools.product((True, False), repeat=2):
        slots = []
        moved = distinct[OUTPUT] * tried.cycles[OUTPUT]
        commands = 2 * trips.prod(axis=1) + distinct[OUTPUT] * tried.commands[OUTPUT]
        for position, all_stay in zip((INPUT, WEIGHTS), keeps, strict=True):
            some = np.minimum(rules.buffers, distinct[position])
            slots.append(distinct[position] if all_stay else some)
            loads = distinct[position] if all_stay else _loads(nest, position, trips, order)
            moved = moved + loads * tried.cycles[position]
            commands = commands + loads * tried.commands[position]
        slots.append(sums)
        fits = _fits(rules.memories, slots, tried.tiles) & (commands <= _MOST_COMMANDS)
        moved = moved + rules.port.cycles(_COMMAND_BYTES) * commands
        total = computing + moved if rules.buffers == 1 else np.maximum(computing, moved) + alone
        total = np.where(fits, total, np.inf)
        for row in np.argsort(total, kind="stable")[:_FINALISTS_OF_ORDER].tolist():
            if np.isfinite(total[row]):
                counts = (int(slots[0][row]), int(slots[1][row]), int(slots[2][row]))
                moving = sorted(order, key=lambda n: trips[row, n] == 1)  # others need no loop
                tiling = Tiling(tuple(tried.extents[row].tolist()), tuple(moving), counts)
                best.append((float(total[row]), int(commands[row]), tiling))
    return best


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
