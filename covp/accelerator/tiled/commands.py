"""The commands of a tiled unit: words in memory that its engines execute.

A stream is little-endian words of 32 bits. The first of a command has its code in bits 0 to 7, the
operand (`INPUT`, `WEIGHTS`, `OUTPUT`) or a flag in bits 8 to 15 and a count in bits 16 to 23:

| code | command | count | words that follow |
|---:|---|---|---|
| 1 | LAYOUT of an operand | axes, 1 to 6 | of each but the last: stride in memory, in the unit |
| 2 | LOOPS of products | loops, 1 to 10 | of each: extent, steps of input, weights and sum |
| 3 | LOAD a tile | axes | place in the operand, address in the unit, extents |
| 4 | FILL with the zero point | | address in the unit, bytes |
| 5 | COMPUTE; the flag 1 adds to sums | | addresses of input, weights and sums |
| 6 | STORE a tile of sums | axes | place in the result, address in the unit, extents |

The last axis is contiguous. Extents are 16 bits, two in a word, the first one in the lower half.
Addresses are bytes; those of sums, and their steps, count sums of 32 bits. LAYOUT and LOOPS hold
until the next ones.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.compilers.host_compiler import compile_for_host
from covp.hardware.job_unit import JobError

OPERANDS = ("INPUT", "WEIGHTS", "OUTPUT")
LAYOUT, LOOPS, LOAD, FILL, COMPUTE, STORE = range(1, 7)
NAMES = ("", "LAYOUT", "LOOPS", "LOAD", "FILL", "COMPUTE", "STORE")
LOADER, ARRAY, STORER, NONE = range(4)
ENGINES = ("load", "array", "store")
LONGEST = 0xFFFF
"""Largest extent of an axis or a loop."""
MOST_BANKS = MOST_ARRAYS = 64

_PROBLEMS = (None, "size", "address", "range")
_NUMBERS = ("opcode", "engine", "operand", "shape", "word", "fetch", "array", "reserved")
_ACCESS = np.dtype([("memory", "u4"), ("first", "u4"), ("end", "u4"), ("is_write", "u4")])
COMMAND = np.dtype(
    [
        *((name, "u4") for name in _NUMBERS),
        *((name, "u8") for name in ("elements", "rows")),
        ("access", _ACCESS, 3),
        *((name, "u8") for name in ("cycles", "start", "end")),
    ]
)
"""A decoded command.

Attributes:
    opcode, operand: as in its word; the operand of COMPUTE is its flag.
    engine: that executes it; `NONE` for those that only set something.
    shape: how many LOOPS came before it.
    word: where it begins in the stream.
    elements: that it moves, or the products of a COMPUTE.
    rows: contiguous pieces of memory that they are.
    access: up to three ranges of bytes in memories of the unit.
    fetch: cycles until its words are in the unit; `schedule` reads them.
    cycles: that its engine needs; `schedule` reads them.
    array: that computed it, from 0.
    start, end: when its engine executes it, in cycles from the start of the job.
"""


class _Unit(ctypes.Structure):
    _fields_ = (
        ("elements", ctypes.c_uint64 * 3),
        ("memory", ctypes.c_uint32 * 3),
        ("bytes", ctypes.c_uint32 * 3),
        ("banks", ctypes.c_uint32 * 3),
        ("depth", ctypes.c_uint32),
        ("issue_cycles", ctypes.c_uint32),
        ("arrays", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
    )


class _Execution(ctypes.Structure):
    _fields_ = (
        ("memory", ctypes.c_void_p * 2),
        ("local", ctypes.c_void_p * 3),
        ("sums", ctypes.c_void_p),
        ("stored", ctypes.c_void_p),
        ("zero_point", ctypes.c_int32 * 2),
    )


@dataclass(frozen=True)
class Memory:
    """A memory of a unit.

    Attributes:
        name: as the unit declares it.
        nbytes: its size.
        banks: of equal size; one engine at a time uses a bank.
    """

    name: str
    nbytes: int
    banks: int = 1

    def __post_init__(self) -> None:
        if not (0 < self.nbytes < 1 << 31 and 0 <= self.banks <= MOST_BANKS):
            raise ValueError(f"{self.name} of {self.nbytes} bytes in {self.banks} banks")


@dataclass(frozen=True)
class Queue:
    """How commands reach the engines.

    Attributes:
        depth: commands under way, in all engines; the next one enters when the oldest is over.
        issue_cycles: from one command to the next.
        arrays: equal ones, of which the first that is free takes the next tile.
    """

    depth: int = 16
    issue_cycles: int = 1
    arrays: int = 1

    def __post_init__(self) -> None:
        if not (self.depth > 0 and self.issue_cycles >= 0 and 1 <= self.arrays <= MOST_ARRAYS):
            raise ValueError(f"a queue of {self.depth} commands for {self.arrays} arrays")


def encode_layout(operand: int, memory: Sequence[int], local: Sequence[int]) -> list[int]:
    """Return a LAYOUT; strides of all axes but the last, whose elements are contiguous."""
    strides = [stride for pair in zip(memory, local, strict=True) for stride in pair]
    return [LAYOUT | operand << 8 | (len(memory) + 1) << 16, *strides]


def encode_loops(loops: Sequence[tuple[int, int, int, int]]) -> list[int]:
    """Return LOOPS; of each loop the extent and the steps of input, weights and sum."""
    return [LOOPS | len(loops) << 16, *(number for loop in loops for number in loop)]


def encode_transfer(
    opcode: int, operand: int, place: int, address: int, extents: Sequence[int]
) -> list[int]:
    """Return a LOAD or a STORE."""
    padded = (*extents, 0)[: len(extents) + len(extents) % 2]
    pairs = [low | high << 16 for low, high in zip(padded[::2], padded[1::2], strict=True)]
    return [opcode | operand << 8 | len(extents) << 16, place, address, *pairs]


def encode_fill(operand: int, address: int, nbytes: int) -> list[int]:
    """Return a FILL."""
    return [FILL | operand << 8, address, nbytes]


def encode_compute(accumulates: bool, *addresses: int) -> list[int]:
    """Return a COMPUTE; the addresses of input, weights and sums."""
    return [COMPUTE | accumulates << 8, *addresses]


@lru_cache(maxsize=1)
def _library() -> ctypes.CDLL:
    source = Path(__file__).with_name("commands.c")
    library = ctypes.CDLL(str(compile_for_host("commands", "the commands of units", [source])))
    library.covp_schedule.restype = ctypes.c_uint64
    return library


def _pointer(array: NDArray[Any]) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


class Stream:
    """Commands, decoded and checked.

    Args:
        words: of the commands.
        sizes: elements of each operand in memory.
        memories: of each operand.

    Attributes:
        commands: array of `COMMAND`.

    Raises:
        JobError: a command is none that the unit can execute.
    """

    def __init__(
        self, words: NDArray[Any], sizes: Mapping[str, int], memories: Mapping[str, Memory]
    ) -> None:
        self.words = np.ascontiguousarray(words, "<u4")
        self._memories = memories
        self._sizes = sizes
        self._unit = _Unit()
        places = {memory: n for n, memory in enumerate(dict.fromkeys(memories.values()))}
        for n, name in enumerate(OPERANDS):
            memory = memories[name]
            self._unit.elements[n] = sizes[name]
            self._unit.memory[n] = places[memory]
            self._unit.bytes[n], self._unit.banks[n] = memory.nbytes, memory.banks
        commands = np.zeros(len(self.words), COMMAND)
        count = ctypes.c_uint64()
        problem = _library().covp_decode(
            _pointer(self.words),
            ctypes.c_uint64(len(self.words)),
            ctypes.byref(self._unit),
            _pointer(commands),
            ctypes.byref(count),
        )
        if problem:
            code = _PROBLEMS[problem]
            assert code is not None
            raise JobError(code, f"command {count.value} of COMMANDS")
        self.commands = commands[: count.value].copy()

    def lengths(self) -> NDArray[np.int64]:
        """Return the words of each command."""
        ends = [*self.commands["word"][1:].tolist(), len(self.words)]
        return np.asarray(np.array(ends, np.int64) - self.commands["word"], np.int64)

    def moved(self, operand: int) -> int:
        """Return the elements of an operand that LOAD or STORE move."""
        opcode = STORE if operand == OPERANDS.index("OUTPUT") else LOAD
        chosen = (self.commands["opcode"] == opcode) & (
            (self.commands["operand"] == operand) | (opcode == STORE)
        )
        return int(self.commands["elements"][chosen].sum())

    def products(self) -> int:
        """Return how many products all COMPUTE add up."""
        chosen = self.commands["opcode"] == COMPUTE
        return int(self.commands["elements"][chosen].sum())

    def loops(self) -> list[NDArray[np.int64]]:
        """Return for each LOOPS an array (loops, 4): extent, steps of input, weights and sum."""
        starts = self.commands["word"][self.commands["opcode"] == LOOPS].tolist()
        counts = [int(self.words[at]) >> 16 & 0xFF for at in starts]
        return [
            self.words[at + 1 : at + 1 + 4 * count].reshape(-1, 4).astype(np.int64)
            for at, count in zip(starts, counts, strict=True)
        ]

    def schedule(self, cycles: NDArray[Any], fetch: NDArray[Any], queue: Queue) -> int:
        """Return the cycles of all commands; start and end are written to ``commands``.

        Args:
            cycles: that its engine needs, for each command.
            fetch: until its words are in the unit, for each command.
            queue: how they reach their engines.
        """
        self.commands["cycles"], self.commands["fetch"] = cycles, fetch
        self._unit.depth, self._unit.issue_cycles = queue.depth, queue.issue_cycles
        self._unit.arrays = queue.arrays
        return int(
            _library().covp_schedule(
                _pointer(self.commands),
                ctypes.c_uint64(len(self.commands)),
                ctypes.byref(self._unit),
            )
        )

    def execute(
        self, operands: Sequence[NDArray[np.int8]], zero_points: Sequence[int]
    ) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
        """Execute the commands; return the sums of the result, and which of them were stored.

        Args:
            operands: input and weights, int8.
            zero_points: of both, which are subtracted.
        """
        local = {
            memory: np.full(-(-memory.nbytes // 4), 0x5A5A5A5A, np.int32)
            for memory in self._memories.values()
        }
        size = self._sizes["OUTPUT"]
        sums, stored = np.zeros(size, np.int32), np.zeros(size, np.bool_)
        run = _Execution()
        given = [np.ascontiguousarray(array, np.int8) for array in operands]
        for n, array in enumerate(given):
            run.memory[n] = array.ctypes.data
        for n, name in enumerate(OPERANDS):
            run.local[n] = local[self._memories[name]].ctypes.data
        run.sums, run.stored = sums.ctypes.data, stored.ctypes.data
        run.zero_point[:] = zero_points
        _library().covp_execute(
            _pointer(self.words), ctypes.c_uint64(len(self.words)), ctypes.byref(run)
        )
        return sums, stored
