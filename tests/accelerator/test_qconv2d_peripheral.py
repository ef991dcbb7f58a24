"""The conv2d accelerator at its registers: results against plain Python, errors, time."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from covp.chip.platform_file import Region
from covp.errors import DeviceFault
from covp.hardware.bus import Bus, Memory
from covp.hardware.clock import Clock
from covp.peripherals.qconv2d import ERRORS, REGISTERS, QConv2d, decode

FLASH, RAM, RAM_BYTES = 0x2000_0000, 0x8000_0000, 64 * 1024
INPUT, OUTPUT = RAM, RAM + 0x4000
WEIGHTS, BIAS, MULTIPLIER, SHIFT = FLASH, FLASH + 0x6000, FLASH + 0x7000, FLASH + 0x7400


@dataclass
class Board:
    """A unit on a bus with 32 KiB of flash and 64 KiB of RAM; its clock moves by waiting only."""

    unit: QConv2d = field(default_factory=QConv2d)
    now: int = 0

    def __post_init__(self) -> None:
        self.memories = [
            Memory.of(Region("flash", "flash", FLASH, 32 * 1024)),
            Memory.of(Region("ram", "ram", RAM, RAM_BYTES)),
        ]
        bus = Bus(self.memories, "unit", lambda address, size: None)
        self.unit.attach("unit", bus, Clock(lambda: self.now, self._skip, 1_000_000))

    def _skip(self, cycles: int) -> None:
        self.now += cycles

    def put(self, address: int, data: np.ndarray) -> None:
        for memory in self.memories:
            offset = address - memory.region.start
            if 0 <= offset < memory.content.size:
                memory.content[offset : offset + data.nbytes] = np.frombuffer(
                    data.tobytes(), np.uint8
                )

    def ram(self, address: int, size: int) -> bytes:
        return self.memories[1].content[address - RAM :][:size].tobytes()

    def write(self, register: str, value: int) -> None:
        self.unit.write_register(REGISTERS[register].offset, 4, value & 0xFFFFFFFF)

    def program(self, values: Mapping[str, int]) -> None:
        for register, value in values.items():
            self.write(register, value)

    def status(self) -> int:
        return self.unit.read_register(REGISTERS["STATUS"].offset, 4)

    def run(self, values: Mapping[str, int]) -> str:
        """Start a job and wait; the error's name."""
        self.program(values)
        self.write("CTRL", 1)
        status = self.status()
        assert status & 3 == 2, "done and not busy"
        return next(name for name, code in ERRORS.items() if code == status >> 8)


def pair(low: int, high: int) -> int:
    return (low & 0xFFFF) | (high & 0xFFFF) << 16


@dataclass(frozen=True)
class Case:
    """A convolution drawn by hypothesis; pairs are (height, width)."""

    batch: int
    size: tuple[int, int]
    out: tuple[int, int]
    channels: tuple[int, int]
    kernel: tuple[int, int]
    stride: tuple[int, int]
    dilation: tuple[int, int]
    pad: tuple[int, int]
    zero_point: tuple[int, int]
    clamp: tuple[int, int]
    requantize: bool
    seed: int
    multiplier: int = 0
    """Depthwise, with so many output channels for each input channel; 0: not depthwise."""

    @property
    def outputs(self) -> int:
        return self.channels[0] * self.multiplier or self.channels[1]

    def registers(self) -> dict[str, int]:
        return {
            "INPUT": INPUT,
            "OUTPUT": OUTPUT,
            "WEIGHTS": WEIGHTS,
            "BIAS": BIAS,
            "MULTIPLIER": MULTIPLIER,
            "SHIFT": SHIFT,
            "BATCH": self.batch,
            "INPUT_SIZE": pair(*self.size),
            "OUTPUT_SIZE": pair(*self.out),
            "CHANNELS": pair(self.channels[0], self.outputs),
            "KERNEL": pair(*self.kernel),
            "STRIDE": pair(*self.stride),
            "DILATION": pair(*self.dilation),
            "PADDING": pair(*self.pad),
            "ZERO_POINT": pair(*self.zero_point),
            "CLAMP": pair(*self.clamp),
            "MODE": int(self.requantize) | (2 if self.multiplier else 0),
        }


small = st.integers(1, 3)
pairs = st.tuples(small, small)
stored = st.integers(-128, 127)
cases = st.builds(
    Case,
    batch=st.integers(1, 2),
    size=st.tuples(st.integers(1, 6), st.integers(1, 6)),
    out=pairs,
    channels=st.tuples(st.integers(1, 5), st.integers(1, 4)),
    kernel=pairs,
    stride=pairs,
    dilation=pairs,
    pad=st.tuples(st.integers(0, 4), st.integers(0, 4)),
    zero_point=st.tuples(stored, stored),
    clamp=st.tuples(stored, stored).map(lambda ends: (min(ends), max(ends))),
    requantize=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
    multiplier=st.integers(0, 2),
)
PLAIN = Case(
    batch=1, size=(4, 4), out=(4, 4), channels=(2, 3), kernel=(3, 3), stride=(1, 1),
    dilation=(1, 1), pad=(1, 1), zero_point=(-7, 4), clamp=(-128, 127), requantize=True, seed=1,
)  # fmt: skip


def scaled(value: int, multiplier: int, shift: int) -> int:
    """TFLM's MultiplyByQuantizedMultiplier from its definition, in Python's integers."""
    value = (value << max(shift, 0)) + 2**31
    value = value % 2**32 - 2**31
    product = value * multiplier
    nudge = 2**30 if product >= 0 else 1 - 2**30
    doubled = product + nudge
    high = abs(doubled) // 2**31 * (1 if doubled >= 0 else -1)
    high = min(high, 2**31 - 1)
    right = max(-shift, 0)
    quotient, rest = divmod(abs(high), 2**right)
    rounded = quotient + (2 * rest >= 2**right and right > 0)
    return int(rounded if high >= 0 else -rounded)


def expected(case: Case, x: np.ndarray, w: np.ndarray, tables: Mapping[str, np.ndarray]) -> bytes:
    """The convolution as seven loops."""
    image, kernels = x.tolist(), w.tolist()
    results = []
    for n, oy, ox, o in np.ndindex(case.batch, *case.out, case.outputs):
        total = int(tables["bias"][o])
        for ky, kx in np.ndindex(*case.kernel):
            iy = oy * case.stride[0] + ky * case.dilation[0] - case.pad[0]
            ix = ox * case.stride[1] + kx * case.dilation[1] - case.pad[1]
            if 0 <= iy < case.size[0] and 0 <= ix < case.size[1]:
                if case.multiplier:
                    value = image[n][iy][ix][o // case.multiplier] - case.zero_point[0]
                    total += value * kernels[ky][kx][o]
                    continue
                for c in range(case.channels[0]):
                    total += (image[n][iy][ix][c] - case.zero_point[0]) * kernels[o][ky][kx][c]
        if case.requantize:
            total = scaled(total, int(tables["multiplier"][o]), int(tables["shift"][o]))
            total = min(max(total + case.zero_point[1], case.clamp[0]), case.clamp[1])
        results.append(total)
    return np.array(results, np.int8 if case.requantize else np.int32).tobytes()


def fill(board: Board, case: Case) -> bytes:
    """Put the operands into memory; returns the bytes that the unit has to write."""
    random = np.random.default_rng(case.seed)
    x = random.integers(-128, 128, (case.batch, *case.size, case.channels[0])).astype(np.int8)
    shape: tuple[int, ...] = (case.channels[1], *case.kernel, case.channels[0])
    shape = (*case.kernel, case.outputs) if case.multiplier else shape
    w = random.integers(-128, 128, shape).astype(np.int8)
    tables = {
        "bias": random.integers(-(10**5), 10**5, case.outputs).astype(np.int32),
        "multiplier": random.integers(2**30, 2**31, case.outputs).astype(np.int32),
        "shift": random.integers(-14, 3, case.outputs).astype(np.int32),
    }
    board.put(INPUT, x)
    board.put(WEIGHTS, w)
    board.put(BIAS, tables["bias"])
    board.put(MULTIPLIER, tables["multiplier"])
    board.put(SHIFT, tables["shift"])
    return expected(case, x, w, tables)


@settings(max_examples=150, deadline=None)
@given(cases)
def test_results_are_the_seven_loops_to_the_bit_and_nothing_else_is_touched(case: Case) -> None:
    board = Board()
    want = fill(board, case)
    board.put(OUTPUT, np.full(len(want) + 16, 0x5A, np.uint8))
    before = board.ram(RAM, OUTPUT - RAM)
    assert board.run(case.registers()) == "none"
    assert board.ram(OUTPUT, len(want)) == want
    assert board.ram(OUTPUT + len(want), 16) == b"\x5a" * 16
    assert board.ram(RAM, OUTPUT - RAM) == before


def test_sums_beyond_float32_are_exact() -> None:
    board = Board()
    case = Case(
        batch=1, size=(1, 1), out=(1, 1), channels=(9000, 2), kernel=(1, 1), stride=(1, 1),
        dilation=(1, 1), pad=(0, 0), zero_point=(-128, 0), clamp=(-128, 127), requantize=False,
        seed=0,
    )  # fmt: skip
    board.put(INPUT, np.full(9000, 127, np.int8))
    weights = np.full((2, 9000), 127, np.int8)
    weights[0, :7] = 126
    board.put(WEIGHTS, weights)
    board.put(BIAS, np.array([1, -1], np.int32))
    assert board.run(case.registers()) == "none"
    want = np.array([255 * (127 * 9000 - 7) + 1, 255 * 127 * 9000 - 1], np.int32)
    assert board.ram(OUTPUT, 8) == want.tobytes()


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"BATCH": 0}, "size"),
        ({"INPUT_SIZE": pair(0, 4)}, "size"),
        ({"OUTPUT_SIZE": pair(4, 0)}, "size"),
        ({"CHANNELS": pair(0, 3)}, "size"),
        ({"CHANNELS": pair(2, 3), "MODE": 3}, "size"),
        ({"KERNEL": pair(3, 0)}, "size"),
        ({"STRIDE": pair(0, 1)}, "size"),
        ({"DILATION": pair(1, 0)}, "size"),
        ({"KERNEL": pair(0xFFFF, 0xFFFF)}, "size"),
        ({"INPUT": 0}, "address"),
        ({"INPUT": RAM + RAM_BYTES - 31}, "address"),
        ({"OUTPUT": RAM + RAM_BYTES - 47}, "address"),
        ({"OUTPUT": FLASH + 0x100}, "address"),
        ({"WEIGHTS": 0xFFFFFFFC}, "address"),
        ({"SHIFT": 0x1000}, "address"),
        ({"BIAS": BIAS + 2}, "alignment"),
        ({"MULTIPLIER": MULTIPLIER + 1}, "alignment"),
        ({"OUTPUT": OUTPUT + 2, "MODE": 0}, "alignment"),
        ({"OUTPUT": INPUT + 31}, "overlap"),
        ({"OUTPUT": INPUT}, "overlap"),
        ({"ZERO_POINT": pair(128, 0)}, "range"),
        ({"ZERO_POINT": pair(0, -129)}, "range"),
        ({"CLAMP": pair(5, 4)}, "range"),
        ({"CLAMP": pair(-128, 128)}, "range"),
    ],
)
def test_a_wrong_job_is_rejected_with_its_code_and_writes_nothing(
    change: Mapping[str, int], error: str
) -> None:
    board = Board()
    fill(board, PLAIN)
    before = board.ram(RAM, RAM_BYTES)
    assert board.run({**PLAIN.registers(), **change}) == error
    assert board.ram(RAM, RAM_BYTES) == before
    assert board.now == 0
    want = fill(board, PLAIN)
    assert board.run(PLAIN.registers()) == "none", "a good job runs after a refused one"
    assert board.ram(OUTPUT, len(want)) == want


def test_a_shift_outside_its_range_is_rejected() -> None:
    board = Board()
    fill(board, PLAIN)
    board.put(SHIFT, np.array([-1, 31, -1], np.int32))
    assert board.run(PLAIN.registers()) == "range"


def test_tables_that_the_mode_does_not_use_need_no_address() -> None:
    board = Board()
    case = Case(**{**PLAIN.__dict__, "requantize": False})
    want = fill(board, case)
    assert board.run({**case.registers(), "MULTIPLIER": 0, "SHIFT": 1}) == "none"
    assert board.ram(OUTPUT, len(want)) == want


def test_a_job_takes_the_cycles_of_the_documented_model() -> None:
    macs = 4 * 4 * 3 * 3 * 3 * 2
    moved = 4 * 4 * 2 + 3 * 3 * 3 * 2 + 3 * 4 * 3 + 4 * 4 * 3
    for lanes, width in ((1, 64), (1024, 1), (16, 4)):
        unit = QConv2d(macs_per_cycle=lanes, bytes_per_cycle=width, startup_cycles=10)
        board = Board(unit)
        fill(board, PLAIN)
        board.run(PLAIN.registers())
        assert board.now == 10 + max(-(-macs // lanes), -(-moved // width))


def test_a_contended_memory_port_takes_longer() -> None:
    moved = 4 * 4 * 2 + 3 * 3 * 3 * 2 + 3 * 4 * 3 + 4 * 4 * 3
    board = Board(QConv2d(macs_per_cycle=1024, startup_cycles=0, contention=0.5))
    fill(board, PLAIN)
    board.run(PLAIN.registers())
    assert board.now == math.ceil(math.ceil(moved / 4) * 1.5)


def test_the_interrupt_line_follows_the_end_of_a_job_and_its_acknowledgement() -> None:
    board = Board()
    want = fill(board, PLAIN)
    board.program(PLAIN.registers())
    board.write("INTERRUPT", 1)
    board.write("CTRL", 1)
    line = board.unit.interrupt
    assert not line.level
    assert board.ram(OUTPUT, len(want)) != want, "not before the end"
    assert board.status() == 2
    assert line.level
    assert board.ram(OUTPUT, len(want)) == want
    board.write("INTERRUPT", 3)
    assert not line.level
    board.run({"INTERRUPT": 0})
    assert not line.level, "not enabled"


def test_a_start_while_busy_is_an_error_and_the_running_job_goes_on() -> None:
    board = Board()
    want = fill(board, PLAIN)
    board.program(PLAIN.registers())
    board.write("CTRL", 1)
    assert board.unit.values["STATUS"] & 3 == 1, "busy"
    board.write("OUTPUT", OUTPUT + 0x100)
    board.write("CTRL", 1)
    assert board.status() == 2 | ERRORS["busy"] << 8
    assert board.ram(OUTPUT, len(want)) == want
    assert board.ram(OUTPUT + 0x100, len(want)) != want
    assert board.run({}) == "none"


def test_waiting_costs_only_what_is_left() -> None:
    board = Board()
    fill(board, PLAIN)
    board.program(PLAIN.registers())
    board.write("CTRL", 1)
    end = board.unit.done_at
    board.now = end + 5
    assert board.status() == 2
    assert board.now == end + 5


@pytest.mark.parametrize(
    ("register", "value"), [("CTRL", 2), ("MODE", 4), ("STATUS", 0), ("CTRL", 0x80000001)]
)
def test_forbidden_register_writes_are_faults(register: str, value: int) -> None:
    with pytest.raises(DeviceFault, match="register access"):
        Board().write(register, value)


def test_reset_forgets_a_running_job() -> None:
    board = Board()
    fill(board, PLAIN)
    board.program(PLAIN.registers())
    board.write("CTRL", 1)
    board.unit.reset()
    assert board.status() == 0
    assert board.now == 0


halves = st.sampled_from([0, 1, 2, 3, 5, 0x7F, 0xFF80, 0xFFFF])
words = st.one_of(
    st.builds(pair, halves, halves),
    st.integers(0, 2**32 - 1),
    st.integers(RAM - 8, RAM + RAM_BYTES + 8),
    st.sampled_from([INPUT, OUTPUT, WEIGHTS, BIAS, MULTIPLIER, SHIFT]),
)


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(st.sampled_from(sorted(PLAIN.registers())), words, max_size=6))
def test_any_register_values_end_in_a_code_and_write_only_the_result(
    abuse: dict[str, int],
) -> None:
    board = Board()
    fill(board, PLAIN)
    values = {**PLAIN.registers(), **abuse}
    values["MODE"] &= 1
    before = board.ram(RAM, RAM_BYTES)
    error = board.run(values)
    start, size = decode(board.unit.values).result()
    if error == "none":
        low, high = start - RAM, start - RAM + size
        assert 0 <= low <= high <= RAM_BYTES
        after = board.ram(RAM, RAM_BYTES)
        assert after[:low] + after[high:] == before[:low] + before[high:]
    else:
        assert board.ram(RAM, RAM_BYTES) == before
