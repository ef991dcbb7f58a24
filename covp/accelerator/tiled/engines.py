"""The time of a tiled unit's commands: what each engine needs, and what they wait for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.accelerator.tiled.commands import (
    ARRAY,
    COMPUTE,
    FILL,
    LOAD,
    NONE,
    STORE,
    STORER,
    Queue,
    Stream,
)
from covp.accelerator.tiled.nest import Tile
from covp.accelerator.tiled.tile_program import ALIGNMENT, WEIGHTS

CHANNEL_BYTES = 12
"""Bias, multiplier and shift of a channel, which a store of sums reads."""


@dataclass(frozen=True)
class Port:
    """The path of a unit to the memory that it shares with the core.

    Attributes:
        bytes_per_cycle: when it has the bus for itself; a contiguous row begins a new word.
        slowdown: cycles that it takes for one, as it waits for other masters.
        transfer_cycles: before the first byte of a command.
    """

    bytes_per_cycle: int
    slowdown: float
    transfer_cycles: int

    def cycles(self, nbytes: Any) -> NDArray[np.int64]:
        """Return the cycles for so many contiguous bytes, a number or an array."""
        return np.asarray(np.ceil(-(-nbytes // self.bytes_per_cycle) * self.slowdown), np.int64)


@dataclass(frozen=True)
class EngineTime:
    """The cycles of a layer's commands.

    Attributes:
        total: from the first one's fetch to the end of the last one.
        array: in which an array computes, as the mean of all arrays.
        port: in which the port loads, stores or fetches commands.
    """

    total: int
    array: int
    port: int


def time_commands(
    stream: Stream,
    array: Callable[[Tile], int],
    port: Port,
    queue: Queue,
    channels: int,
    kept: bool = False,
) -> EngineTime:
    """Return the time of commands; when each starts and ends is written to the stream.

    Args:
        stream: of the layer.
        array: the cycles of the array for a tile.
        port: of the unit.
        queue: how commands reach the engines.
        channels: of the result.
        kept: the weights are in a memory of the unit's own: their loads take no time.
    """
    commands = stream.commands
    shapes = np.array([0, *(array(tile_of(loops)) for loops in stream.loops())], np.int64)
    row = commands["elements"].astype(np.int64) // np.maximum(commands["rows"], 1).astype(np.int64)
    moved = port.cycles(row) * commands["rows"].astype(np.int64) + port.transfer_cycles
    moved += port.cycles(CHANNEL_BYTES * stored_channels(stream, channels))
    if kept:
        moved[(commands["opcode"] == LOAD) & (commands["operand"] == WEIGHTS)] = 0
    cycles = np.select(
        [commands["opcode"] == COMPUTE, commands["opcode"] == FILL, commands["engine"] != NONE],
        [shapes[commands["shape"]], -(-row // ALIGNMENT), moved],
        0,
    )
    fetch = port.cycles(4 * stream.lengths())
    total = stream.schedule(cycles, fetch, queue)
    computing = int(cycles[commands["engine"] == ARRAY].sum())
    moves = (commands["opcode"] == LOAD) | (commands["opcode"] == STORE)
    each = -(-computing // queue.arrays)
    return EngineTime(total, each, int(cycles[moves].sum() + fetch.sum()))


def stored_channels(stream: Stream, channels: int) -> NDArray[np.int64]:
    """Return for each STORE how many channels' numbers it reads, 0 for other commands."""
    commands = stream.commands
    elements = commands["elements"].astype(np.int64)
    row = elements // np.maximum(commands["rows"], 1).astype(np.int64)
    return np.where(commands["engine"] == STORER, np.minimum(row, channels), np.int64(0))


def tile_of(loops: NDArray[np.int64]) -> Tile:
    """Return the matrix product that LOOPS are; a row of ``loops`` as of `Stream.loops`."""
    found = {"pixels": 1, "channels": 1, "depth": 1, "groups": 1}
    for extent, along_input, along_weights, along_sums in loops.tolist():
        if not along_sums:
            role = "depth"
        elif not along_weights:
            role = "pixels"
        else:
            role = "groups" if along_input else "channels"
        found[role] *= extent
    return Tile(**found)
