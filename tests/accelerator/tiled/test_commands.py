"""Commands of tiled units: decoded, rejected, scheduled and executed."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from covp.accelerator.tiled.commands import (
    ARRAY,
    LOAD,
    LOADER,
    NONE,
    STORE,
    Memory,
    Queue,
    Stream,
    encode_compute,
    encode_fill,
    encode_layout,
    encode_loops,
    encode_transfer,
)
from covp.accelerator.tiled.nest import Axis, LoopNest
from covp.accelerator.tiled.tile_program import Tiling, make_commands, slot_bytes
from covp.hardware.job_unit import JobError


@dataclass(frozen=True)
class Convolution:
    """A convolution of one image, and how it is cut."""

    nest: LoopNest
    tiling: Tiling
    memories: dict[str, Memory]
    dma_axes: int

    @property
    def sizes(self) -> dict[str, int]:
        """Elements of each operand."""
        axes = zip(("INPUT", "WEIGHTS", "OUTPUT"), self.nest.operands, strict=True)
        return {name: math.prod(axis.extent for axis in own) for name, own in axes}

    def stream(self) -> Stream:
        words = make_commands(self.nest, self.tiling, self.memories, self.dma_axes)
        return Stream(np.array(words, np.uint32), self.sizes, self.memories)


def nest(
    outputs: Sequence[int], kernel: Sequence[int], stride: int, pad: int, image: Sequence[int]
) -> LoopNest:
    """Return the loops y, x, output channel, ky, kx, input channel."""
    height, width, channels = image
    rows = Axis(height, (stride, 0, 0, 1, 0, 0), -pad)
    columns = Axis(width, (0, stride, 0, 0, 1, 0), -pad)
    one = np.eye(6, dtype=int).tolist()
    return LoopNest(
        (*outputs, *kernel, channels),
        (rows, columns, Axis(channels, tuple(one[5]))),
        tuple(
            Axis(extent, tuple(one[n]))
            for n, extent in ((2, outputs[2]), (3, kernel[0]), (4, kernel[1]), (5, channels))
        ),
        tuple(Axis(extent, tuple(one[n])) for n, extent in enumerate(outputs)),
    )


@st.composite
def convolutions(draw: st.DrawFn) -> Convolution:
    small = st.integers(1, 4)
    kernel, stride, pad = (
        (draw(small), draw(small)),
        draw(st.integers(1, 2)),
        draw(st.integers(0, 2)),
    )
    image = (draw(st.integers(2, 6)), draw(st.integers(2, 6)), draw(small))
    outputs = [
        max(1, (extent + 2 * pad - taps) // stride + 1)
        for extent, taps in zip(image, kernel, strict=False)
    ]
    loops = nest((*outputs, draw(small)), kernel, stride, pad, image)
    tile = tuple(draw(st.integers(1, extent)) for extent in loops.extents)
    trips = [-(-extent // size) for extent, size in zip(loops.extents, tile, strict=True)]
    sums = math.prod(trips[:3])
    slots = (draw(st.integers(1, 3)), draw(st.integers(1, 3)), sums)
    tiling = Tiling(tile, tuple(draw(st.permutations(range(6)))), slots)
    needed = [slots[n] * slot_bytes(loops, n, tile) for n in range(3)]
    banks = draw(st.integers(0, 8))
    scratchpad = Memory("scratchpad", needed[0] + needed[1] + draw(st.integers(0, 900)), banks)
    accumulators = Memory("accumulators", needed[2])
    memories = {"INPUT": scratchpad, "WEIGHTS": scratchpad, "OUTPUT": accumulators}
    return Convolution(loops, tiling, memories, draw(st.integers(1, 3)))


def sums_by_definition(
    one: LoopNest, image: Any, weights: Any, zero_points: tuple[int, int]
) -> Any:
    """Return the sums of products, one at a time, as the loops say it."""
    found = np.zeros(one.extents[:3], np.int64)
    for at in itertools.product(*map(range, one.extents)):
        place = [sum(s * i for s, i in zip(a.steps, at, strict=True)) + a.offset for a in one.input]
        if all(0 <= i < axis.extent for i, axis in zip(place, one.input, strict=True)):
            x = int(image[tuple(place)]) - zero_points[0]
            found[at[:3]] += x * (int(weights[at[2:]]) - zero_points[1])
    return found


@given(
    one=convolutions(),
    seed=st.integers(0, 1 << 30),
    zero_points=st.tuples(*[st.integers(-128, 127)] * 2),
)
def test_tiles_of_any_size_and_order_give_the_sums(
    one: Convolution, seed: int, zero_points: tuple[int, int]
) -> None:
    random = np.random.default_rng(seed)
    operands = [
        random.integers(-128, 128, [axis.extent for axis in axes], np.int8)
        for axes in (one.nest.input, one.nest.weights)
    ]
    stream = one.stream()
    sums, stored = stream.execute([array.ravel() for array in operands], zero_points)
    assert stored.all()
    wanted = sums_by_definition(one.nest, operands[0], operands[1], zero_points)
    np.testing.assert_array_equal(sums.reshape(wanted.shape), wanted)
    assert stream.products() == math.prod(one.nest.extents)
    assert stream.moved(2) == wanted.size  # each result is stored once


# -- time ----------------------------------------------------------------------------------------


def touches(one: Any, other: Any) -> bool:
    """Return whether two commands access the same bytes, and one of them writes."""
    return any(
        a["memory"] == b["memory"]
        and max(a["first"], b["first"]) < min(a["end"], b["end"])
        and (a["is_write"] or b["is_write"])
        for a in one["access"]
        for b in other["access"]
    )


def banks_of(command: Any, memories: Sequence[Memory]) -> set[tuple[int, int]]:
    found = set()
    for access in command["access"]:
        memory = memories[int(access["memory"])]
        for byte in range(int(access["first"]), int(access["end"])):
            if memory.banks:
                found.add((int(access["memory"]), byte * memory.banks // memory.nbytes))
    return found


def step_through_time(stream: Stream, queue: Queue, memories: Sequence[Memory]) -> list[Any]:
    """Return start and end of each command, cycle by cycle: an oracle of `Stream.schedule`."""
    commands = stream.commands
    start: dict[int, int] = {}
    end: dict[int, int] = {}
    available: dict[int, int] = {}
    next_one = fetcher = port = now = 0
    real = [n for n in range(len(commands)) if commands[n]["engine"] != NONE]
    bank_free: dict[tuple[int, int, bool], int] = {}
    while next_one < len(commands) or len(end) < len(commands):
        happened = True
        while happened:
            happened = False
            for n in real:
                command = commands[n]
                if n in start or available.get(n, now + 1) > now:
                    continue
                before = [m for m in real if m < n]
                own = [m for m in before if commands[m]["engine"] == command["engine"]]
                if any(m not in start for m in own):
                    continue
                servers = queue.arrays if command["engine"] == ARRAY else 1
                if sum(end[m] > now for m in own) >= servers:
                    continue
                if any(end.get(m, now + 1) > now and touches(command, commands[m]) for m in before):
                    continue
                banks = banks_of(command, memories)
                reads = command["engine"] != LOADER
                if any(bank_free.get((*bank, not reads), 0) > now for bank in banks):
                    continue
                moves = command["opcode"] in (LOAD, STORE)
                if moves and port > now:
                    continue
                start[n], end[n] = now, now + int(command["cycles"])
                for bank in banks:  # reads of several arrays are broadcast
                    until = max(end[n], bank_free.get((*bank, reads), 0))
                    bank_free[(*bank, reads)] = until
                port = end[n] if moves else port
                happened = True
                break
            if happened or next_one == len(commands) or fetcher > now:
                continue
            command = commands[next_one]
            is_real = command["engine"] != NONE
            place = len([m for m in real if m < next_one]) - queue.depth
            if is_real and place >= 0 and any(end.get(m, now + 1) > now for m in real[: place + 1]):
                continue
            fetch = int(command["fetch"])
            if fetch:
                if port > now:
                    continue
                port = now + fetch
            fetcher = available[next_one] = now + fetch + queue.issue_cycles
            if not is_real:
                start[next_one] = end[next_one] = fetcher
            next_one += 1
            happened = True
        now += 1
    return [(start[n], end[n]) for n in range(len(commands))]


@given(one=convolutions(), data=st.data())
def test_a_schedule_is_what_stepping_through_time_gives(
    one: Convolution, data: st.DataObject
) -> None:
    stream = one.stream()
    count = min(len(stream.commands), 40)
    stream.commands = stream.commands[:count]
    numbers = st.lists(st.integers(0, 12), min_size=count, max_size=count)
    cycles, fetch = np.array(data.draw(numbers)), np.array(data.draw(numbers)) // 2
    queue = Queue(*(data.draw(st.integers(*ends)) for ends in ((1, 6), (0, 2), (1, 3))))
    total = stream.schedule(cycles, fetch, queue)
    memories = list(dict.fromkeys(one.memories.values()))
    wanted = step_through_time(stream, queue, memories)
    found = [(int(c["start"]), int(c["end"])) for c in stream.commands]
    assert found == wanted
    assert total == max(end for _, end in wanted)


# -- what is rejected ----------------------------------------------------------------------------

MEMORIES = {
    "INPUT": Memory("scratchpad", 64),
    "WEIGHTS": Memory("scratchpad", 64),
    "OUTPUT": Memory("accumulators", 32),
}
SIZES = {"INPUT": 100, "WEIGHTS": 100, "OUTPUT": 10}
ROWS = encode_layout(0, [10], [8])


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ([0], "range"),
        ([7], "range"),
        ([LOAD], "size"),  # cut off
        ([*ROWS, LOAD | 2 << 16, 0, 0], "size"),
        ([*encode_transfer(LOAD, 0, 0, 0, [2, 4])], "range"),  # no layout
        ([*ROWS, *encode_transfer(LOAD, 0, 0, 0, [4])], "range"),
        ([*ROWS, *encode_transfer(LOAD, 0, 0, 0, [0, 4])], "size"),
        ([*ROWS, *encode_transfer(LOAD, 0, 97, 0, [1, 4])], "address"),
        ([*ROWS, *encode_transfer(LOAD, 0, 0xFFFFFFFF, 0, [2, 4])], "address"),
        ([*ROWS, *encode_transfer(LOAD, 0, 0, 61, [1, 4])], "range"),
        ([*ROWS, *encode_transfer(LOAD, 0, 0, 0xFFFFFFFF, [1, 4])], "range"),
        ([*encode_layout(2, [], []), *encode_transfer(LOAD, 2, 0, 0, [4])], "range"),
        ([*encode_layout(2, [], []), *encode_transfer(STORE, 2, 8, 0, [4])], "address"),
        ([*encode_layout(2, [], []), *encode_transfer(STORE, 2, 0, 5, [4])], "range"),
        (encode_layout(3, [], []), "range"),
        (encode_layout(0, [1] * 6, [1] * 6), "range"),
        (encode_fill(0, 60, 5), "range"),
        (encode_fill(2, 0, 4), "range"),
        (encode_fill(0, 0, 0), "range"),
        (encode_compute(False, 0, 0, 0), "range"),  # no loops
        (encode_loops([(0, 1, 1, 1)]), "size"),
        (encode_loops([(1 << 16, 1, 1, 1)]), "size"),
        (encode_loops([(1, 0, 0, 0)] * 11), "range"),
        ([*encode_loops([(9, 1, 1, 1)]), *encode_compute(False, 0, 0, 0)], "range"),
        ([*encode_loops([(9, 1, 0, 0)]), *encode_compute(False, 56, 0, 0)], "range"),
        ([*encode_loops([(9, 0xFFFFFFFF, 0, 0)] * 9), *encode_compute(False, 0, 0, 0)], "range"),
    ],
)
def test_what_the_unit_cannot_execute_is_rejected(words: list[int], code: str) -> None:
    with pytest.raises(JobError) as error:
        Stream(np.array(words, np.uint32), SIZES, MEMORIES)
    assert error.value.code == code


@given(words=st.lists(st.one_of(st.integers(0, 0xFFFFFFFF), st.integers(0, 0x30306)), max_size=60))
def test_any_words_are_executed_or_rejected(words: list[int]) -> None:
    try:
        stream = Stream(np.array(words, np.uint32), SIZES, MEMORIES)
    except JobError:
        return
    if stream.products() < 1_000_000:
        stream.execute([np.zeros(100, np.int8), np.zeros(100, np.int8)], (0, 0))
