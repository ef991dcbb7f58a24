"""DMA controller, sampler and mailbox on a board whose cores are idle: against numpy and queues."""

from __future__ import annotations

import wave
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from covp.chip.platform_file import load_platform
from covp.device.board import Board
from covp.errors import AcceleratorError, DeviceFault
from covp.hardware.peripheral_models import load_peripheral
from covp.peripherals.dma_controller import DmaController
from covp.peripherals.mailbox import Mailbox
from covp.peripherals.sampler import Sampler

RAM, SHARED = 0x80002000, 0x80200000
DMA, SAMPLER, BOX = 0x10100000, 0x10101000, 0x10102000
STATUS = DMA + 0x80


@pytest.fixture(scope="module")
def made() -> Iterator[Board]:
    board = Board(load_platform("dual-riscv32"))
    yield board
    board.close()


@pytest.fixture
def board(made: Board) -> Board:
    made.reset()
    return made


def advance(board: Board, cycles: int) -> None:
    """Time passes, and what is due at its end happens."""
    board.clock.wait_until(board.clock.now + cycles)
    board.clock.run_due()


def store(board: Board, address: int, value: int) -> None:
    board.write_bus(address, value.to_bytes(4, "little"))


def load(board: Board, address: int) -> int:
    return int.from_bytes(board.read_bus(address, 4), "little")


def start(board: Board, channel: int, source: int, target: int, count: int, config: int) -> None:
    for register, value in enumerate((source, target, count, config | 1)):
        store(board, DMA + 0x20 * channel + 4 * register, value)


@settings(max_examples=40, deadline=None)
@given(
    size=st.sampled_from([0, 1, 2]),
    count=st.integers(1, 200),
    channel=st.integers(0, 3),
    source_step=st.booleans(),
    target_step=st.booleans(),
    wait=st.integers(0, 410),
)
def test_memory_to_memory_moves_halves_at_their_time(
    made: Board,
    size: int,
    count: int,
    channel: int,
    source_step: bool,
    target_step: bool,
    wait: int,
) -> None:
    made.reset()
    kind = np.dtype(("<u1", "<u2", "<u4")[size])
    values = np.random.default_rng(count).integers(0, 1 << 8 * kind.itemsize, count).astype(kind)
    made.write(RAM, values.tobytes())
    made.write(SHARED, bytes(4 * 200))
    config = size << 1 | source_step << 3 | target_step << 4
    start(made, channel, RAM, SHARED, count, config)
    state = made.save_state()
    for _ in range(2):
        advance(made, wait)
        # two cycles for an element, the first half at once when its time is over
        half = count // 2
        moved = count if wait >= 2 * count else half if wait >= 2 * half else 0
        sent = values[:moved] if source_step else np.repeat(values[:1], moved)
        expected = np.zeros(count, kind)
        if target_step:
            expected[:moved] = sent
        elif moved:
            expected[0] = sent[-1]
        found = np.frombuffer(made.read(SHARED, count * kind.itemsize), kind)
        assert np.array_equal(found, expected)
        status = (moved >= half > 0) << channel | (moved == count) << 8 + channel
        assert load(made, STATUS) == status
        assert load(made, DMA + 0x20 * channel + 0x10) == count - moved
        assert load(made, DMA + 0x20 * channel + 0xC) & 1 == (moved < count)
        made.load_state(state)


@pytest.mark.parametrize("circular", [False, True])
def test_a_paced_channel_follows_the_sampler(board: Board, circular: bool) -> None:
    rows = np.arange(40, dtype="<i4").reshape(20, 2) - 7
    sampler, dma = board.shared.peripherals["sampler"][1], board.shared.peripherals["dma"][1]
    assert isinstance(sampler, Sampler) and isinstance(dma, DmaController)
    sampler.feed(rows)
    board.write(SHARED, bytes(48))
    paced, words, step = 1 << 5, 2 << 1, 1 << 4
    burst, interrupts = 1 << 16, 3 << 24
    start(board, 2, SAMPLER + 0xC, SHARED, 12, paced | words | step | burst | interrupts
          | circular << 6)  # fmt: skip
    store(board, SAMPLER + 8, 100)
    store(board, SAMPLER, 1)
    begin = board.clock.now
    noted = []
    ring = np.zeros(12, "<i4")
    for row in range(20):
        advance(board, begin + 100 * (row + 1) - board.clock.now)
        if circular or row < 6:
            ring[2 * row % 12 : 2 * row % 12 + 2] = rows[row]
        assert np.array_equal(np.frombuffer(board.read(SHARED, 48), "<i4"), ring)
        status = load(board, STATUS)
        assert dma.interrupt.level == bool(status)
        if status:
            noted.append((row, status))
            store(board, STATUS, status)
            assert not dma.interrupt.level
    half, done = 1 << 2, 1 << 10
    assert noted == [(2, half), (5, done)] + ([(8, half), (11, done), (14, half), (17, done)]
                                              if circular else [])  # fmt: skip
    # without a channel the rows stay in the FIFO
    assert load(board, SAMPLER + 4) & 0xFFFF == (0 if circular else 28)
    advance(board, begin + 100 * 21 - board.clock.now)
    assert load(board, SAMPLER + 4) >> 17 & 1, "the recording is over"


def test_a_sampler_that_is_not_read_loses_rows_and_says_so(board: Board) -> None:
    sampler = board.shared.peripherals["sampler"][1]
    assert isinstance(sampler, Sampler)
    sampler.feed(np.array([n]) for n in range(1000))
    store(board, SAMPLER + 8, 10)
    store(board, SAMPLER, 3)
    advance(board, 10 * (sampler.depth + 1))
    assert load(board, SAMPLER + 4) == sampler.depth | 1 << 16 and sampler.interrupt.level
    # int64: two words, the upper one 0; the row that did not fit is lost as a whole
    found = [load(board, SAMPLER + 0xC) for _ in range(sampler.depth)]
    assert found == [word for n in range(sampler.depth // 2) for word in (n, 0)]
    assert load(board, SAMPLER + 4) == 1 << 16 and not sampler.interrupt.level
    store(board, SAMPLER + 8, 0)
    with pytest.raises(DeviceFault, match="PERIOD is 0"):
        advance(board, 100)


@given(st.lists(st.one_of(st.integers(1, 0xFFFFFFFF), st.none()), max_size=60), st.integers(0, 9))
@settings(max_examples=30, deadline=None)
def test_a_mailbox_is_a_queue(made: Board, words: list[int | None], pause: int) -> None:
    """A word is a message that is sent, None one that is received."""
    made.reset()
    box = made.shared.peripherals["to_main"][1]
    assert isinstance(box, Mailbox)
    store(made, BOX + 0xC, 1)
    sent: deque[tuple[int, int]] = deque()
    overflow = False
    for word in words:
        advance(made, pause)
        if word is not None:
            overflow |= len(sent) == box.depth
            if len(sent) < box.depth:
                sent.append((made.clock.now + box.latency, word))
            store(made, BOX, word)
        arrived = sum(cycle <= made.clock.now for cycle, _ in sent)
        state = arrived | (len(sent) == box.depth) << 8 | overflow << 9
        assert load(made, BOX + 8) == state
        assert box.interrupt.level == (arrived > 0)
        if word is None and arrived:
            assert load(made, BOX + 4) == sent.popleft()[1]


def test_what_a_dma_controller_rejects(board: Board) -> None:
    with pytest.raises(DeviceFault, match="dma: channel 1 starts with no elements"):
        start(board, 1, RAM, SHARED, 0, 0)
    board.reset()
    start(board, 0, 0x90000000, SHARED, 4, 1 << 3)
    with pytest.raises(DeviceFault, match=r"unmapped read.*bus master dma"):
        advance(board, 100)
    board.reset()
    start(board, 0, RAM, 0x20000000, 4, 1 << 4)
    with pytest.raises(DeviceFault, match=r"write to read-only memory.*bus master dma"):
        advance(board, 100)
    for model, wrong in (
        ("dma_controller", {"cycles": 0}),
        ("mailbox", {"depth": 0}),
        ("mailbox", {"latency": 0}),
        ("sampler", {"request": 32}),
    ):
        with pytest.raises(AcceleratorError, match="must be"):
            load_peripheral(model, wrong)


def test_a_timer_paces_a_channel(board: Board) -> None:
    base = 0x10110000
    board.attach(load_peripheral("timer", {"request": 5}), base, "timer")
    try:
        board.write(SHARED, bytes(64))
        paced, words, step, request = 1 << 5, 2 << 1, 1 << 4, 5 << 8
        start(board, 3, base + 0x14, SHARED, 6, paced | words | step | request)
        store(board, base + 8, 50)
        store(board, base, 3)
        advance(board, 50 * 8)
        # the count of its expirations, read at each of them, until all six are there
        assert np.frombuffer(board.read(SHARED, 32), "<u4").tolist() == [1, 2, 3, 4, 5, 6, 0, 0]
    finally:
        board.detach("timer")


def test_sources_of_a_sampler(board: Board, tmp_path: Path) -> None:
    rows = np.array([[1, -2], [3, -4], [500, -600]], np.int16)
    with wave.open(str(tmp_path / "a.wav"), "wb") as file:
        file.setparams((2, 2, 8000, 0, "NONE", ""))
        file.writeframes(rows.tobytes())
    np.save(tmp_path / "a.npy", rows)
    np.save(tmp_path / "one.npy", np.int16(3))
    np.savetxt(tmp_path / "a.csv", rows, delimiter=",", header="x,y", comments="")
    sampler = board.shared.peripherals["sampler"][1]
    assert isinstance(sampler, Sampler)
    sources: list[tuple[Any, float | None]] = [
        (str(tmp_path / f"a.{end}"), None) for end in ("wav", "npy", "csv")
    ]
    for source, rate in [*sources, (tmp_path / "a.npy", 4000.0), (iter(rows), 16000.0)]:
        sampler.feed(source, rate)
        board.reset()
        hertz = 8000.0 if str(source).endswith(".wav") else rate
        period = 1000 if hertz is None else round(1e8 / hertz)
        assert load(board, SAMPLER + 8) == period
        store(board, SAMPLER, 1)
        advance(board, 4 * period)
        words = [load(board, SAMPLER + 0xC) for _ in range(load(board, SAMPLER + 4) & 0xFF)]
        assert np.array(words, "<u4").tobytes() == rows.tobytes()
    for wrong in ("none.npy", "one.npy", "a.txt", "none.csv"):
        with pytest.raises(AcceleratorError, match=wrong):
            sampler.feed(str(tmp_path / wrong))
    sampler.feed(())
