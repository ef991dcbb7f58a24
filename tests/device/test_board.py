"""Two cores on one board: common memory and time, in turns; repeatable to the instruction."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pytest

from covp.chip.platform_file import load_platform
from covp.device.board import Board
from covp.device.turns import run_in_turns
from covp.device.virtual import VirtualDevice
from covp.errors import DeviceError, DeviceFault, PlatformError
from covp.hardware.custom_instruction import CustomInstruction
from covp.hardware.job import PROTOCOL
from covp.hardware.job_timing import JobTiming
from covp.hardware.job_unit import AcceptedJob, JobUnit
from covp.hardware.peripheral import Peripheral
from covp.hardware.registers import Register, RegisterMap
from tests.conftest import Loaded, load

BASE = 0x50000000
COUNT = 20
# The producer writes i*i to the mailbox when its flag is clear; the consumer adds up and clears it.
ARM = f"""
producer:
    ldr r4, =0x20002000
    movs r5, #1
1:  ldr r0, [r4]
    cmp r0, #0
    bne 1b
    mov r1, r5
    muls r1, r5, r1
    str r1, [r4, #4]
    movs r0, #1
    str r0, [r4]
    adds r5, #1
    cmp r5, #{COUNT}
    ble 1b
end_producer:
    b end_producer
start:
consumer:
    ldr r4, =0x20002000
    movs r5, #{COUNT}
    movs r6, #0
2:  ldr r0, [r4]
    cmp r0, #0
    beq 2b
    ldr r1, [r4, #4]
    push {{r1}}
    pop {{r2}}
    adds r6, r6, r2
    movs r0, #0
    str r0, [r4]
    subs r5, #1
    bne 2b
end_consumer:
    b end_consumer
    .ltorg
"""
RISCV = f"""
producer:
    li s0, 0x80002000
    li s1, 1
1:  lw a0, 0(s0)
    bnez a0, 1b
    mul a1, s1, s1
    sw a1, 4(s0)
    li a0, 1
    sw a0, 0(s0)
    addi s1, s1, 1
    li a0, {COUNT}
    ble s1, a0, 1b
end_producer:
    j end_producer
start:
consumer:
    li s0, 0x80002000
    li s1, {COUNT}
    li s2, 0
2:  lw a0, 0(s0)
    beqz a0, 2b
    lw a1, 4(s0)
    addi sp, sp, -4
    sw a1, 0(sp)
    lw a2, 0(sp)
    addi sp, sp, 4
    add s2, s2, a2
    sw zero, 0(s0)
    addi s1, s1, -1
    bnez s1, 2b
end_consumer:
    j end_consumer
"""
PROGRAMS = {"cortex-m4": (ARM, "r6"), "cortex-m0plus": (ARM, "r6"), "riscv32": (RISCV, "s2")}
Make = Callable[[str, str], Loaded]


@pytest.fixture
def two_cores() -> Iterator[Make]:
    """Programs on boards with two cores, with a stack for each."""
    made: list[Loaded] = []

    def make(name: str, text: str) -> Loaded:
        platform = load_platform(name)
        board = Board(platform, cores=[platform.core, platform.core])
        board.cores[1].write_register("sp", board.cores[0].read_register("sp") - 256)
        made.append(load(name, text, device=VirtualDevice(board)))
        return made[-1]

    yield make
    for one in made:
        one.device.close()


def programs(loaded: Loaded, *names: str) -> Sequence[tuple[int, int]]:
    return [(loaded.labels[name], loaded.labels[f"end_{name}"]) for name in names]


@pytest.mark.parametrize("turn", [1, 7, 100, 1000, 50_000])
@pytest.mark.parametrize("platform", PROGRAMS)
def test_a_consumer_gets_what_a_producer_writes(two_cores: Make, platform: str, turn: int) -> None:
    text, register = PROGRAMS[platform]
    counts = []
    for _ in range(2):
        loaded = two_cores(platform, text)
        board = loaded.device.board
        stops = run_in_turns(board, programs(loaded, "producer", "consumer"), turn=turn)
        total = board.cores[1].read_register(register)
        assert total == sum(i * i for i in range(1, COUNT + 1))
        assert [stop.pc for stop in stops] == [
            loaded.labels["end_producer"],
            loaded.labels["end_consumer"],
        ]
        counts.append([(stop.instructions, stop.cycles) for stop in stops])
    assert counts[0] == counts[1], "not repeatable"


@pytest.mark.parametrize("order", list(itertools.permutations(["producer", "consumer"])))
def test_either_core_may_be_the_first(two_cores: Make, order: tuple[str, str]) -> None:
    loaded = two_cores("riscv32", RISCV)
    run_in_turns(loaded.device.board, programs(loaded, *order))
    core = loaded.device.board.cores[order.index("consumer")]
    assert core.read_register("s2") == sum(i * i for i in range(1, COUNT + 1))


ALONE = """
start:
    li a0, 0
1:  addi a0, a0, 1
    li a1, 5000
    bne a0, a1, 1b
end:
    j end
other:
    li a0, 0
2:  addi a0, a0, 1
    li a1, 300
    bne a0, a1, 2b
end_other:
    j end_other
"""


def test_a_core_counts_as_if_it_were_alone(program: Make, two_cores: Make) -> None:
    alone = program("riscv32", ALONE).run()
    loaded = two_cores("riscv32", ALONE)
    entries = [
        (loaded.labels["start"], loaded.labels["end"]),
        (loaded.labels["other"], loaded.labels["end_other"]),
    ]
    first, second = run_in_turns(loaded.device.board, entries, turn=64)
    assert (first.instructions, first.cycles) == (alone.instructions, alone.cycles)
    assert second.instructions == 1 + 3 * 300
    # core 0 alone, by the device: the other one is halted, and time passes for it
    again = loaded.run()
    assert (again.instructions, again.cycles) == (alone.instructions, alone.cycles)
    third = run_in_turns(loaded.device.board, entries, turn=64)
    assert (third[0].instructions, third[1].instructions) == (
        first.instructions,
        second.instructions,
    )


class Watcher(Peripheral):
    """Notes the cycle of every core when its event fires; its line goes up then."""

    registers = RegisterMap(Register("AT", 0x00, on_write="schedule"), Register("ACK", 0x04))

    def __init__(self, board: Board) -> None:
        self.board = board
        self.fired: list[tuple[int, list[int]]] = []
        super().__init__()

    def schedule(self, value: int) -> None:
        due = self.clock.now + value
        self.clock.at(due, lambda: self.fire(due))

    def fire(self, due: int) -> None:
        self.fired.append((due, [core.cycles for core in self.board.cores]))
        self.interrupt.set(True)


WAITING = """
start:
scheduler:
    lui s0, 0x50000
    li a0, 3000
    sw a0, 0(s0)
    li t0, 0x800
    csrs mie, t0
1:  addi s1, s1, 1
    li t1, 4000
    bne s1, t1, 1b
end_scheduler:
    j end_scheduler
sleeper:
    li t0, 0x800
    csrs mie, t0
    wfi
    nop
end_sleeper:
    j end_sleeper
"""


@pytest.mark.parametrize("turn", [10, 1000, 100_000])
def test_an_event_fires_when_every_core_is_there_and_wakes_the_right_one(
    two_cores: Make, turn: int
) -> None:
    loaded = two_cores("riscv32", WAITING)
    board = loaded.device.board
    watcher = Watcher(board)
    board.attach(watcher, BASE, "watcher", 3, core=1)
    stops = run_in_turns(board, programs(loaded, "scheduler", "sleeper"), turn=turn)
    [(due, cycles)] = watcher.fired
    assert all(due <= cycle < due + turn + 50 for cycle in cycles)
    # the sleeper slept until then
    assert stops[1].instructions == 5
    assert stops[1].cycles is not None and due <= stops[1].cycles < due + turn + 50
    assert stops[0].instructions == 7 + 4 * 4000


class Filler(JobUnit):
    """Writes a word; takes 3000 cycles."""

    registers = RegisterMap(*PROTOCOL, Register("OUTPUT", 0x10))

    def accept(self) -> AcceptedJob:
        return AcceptedJob(JobTiming(3000, 0), self.values["OUTPUT"], np.ones(1, "<u4"))


JOBS = """
start:
poller:
    lui s0, 0x50000
    li a0, 0x80002000
    sw a0, 16(s0)
    li a0, 1
    sw a0, 0(s0)
1:  lw a0, 4(s0)
    andi a0, a0, 2
    beqz a0, 1b
    li a0, 0x80002000
    lw a1, 0(a0)
end_poller:
    j end_poller
watcher:
    li a0, 0x80002000
2:  lw a1, 0(a0)
    beqz a1, 2b
    csrr a2, mcycle
end_watcher:
    j end_watcher
"""


@pytest.mark.parametrize("turn", [10, 1000])
def test_a_polled_job_is_done_for_all_cores_at_its_cycle(two_cores: Make, turn: int) -> None:
    loaded = two_cores("riscv32", JOBS)
    board, unit = loaded.device.board, Filler()
    board.attach(unit, BASE, "unit")
    run_in_turns(board, programs(loaded, "poller", "watcher"), turn=turn)
    assert board.cores[0].read_register("a1") == 1, "done before its result was there"
    [job] = unit.jobs
    assert 3000 <= job.end - job.start < 3000 + turn + 50
    assert unit.done_at <= board.cores[1].read_register("a2") < unit.done_at + turn + 50


def test_all_asleep_with_nothing_scheduled_is_a_fault(two_cores: Make) -> None:
    loaded = two_cores("riscv32", WAITING)
    entry = programs(loaded, "sleeper")[0]
    with pytest.raises(DeviceFault, match="endless sleep") as caught:
        run_in_turns(loaded.device.board, [entry, entry])
    assert caught.value.pc == loaded.labels["end_sleeper"] - 6


def test_a_core_that_polls_for_ever_ends_with_the_time(two_cores: Make) -> None:
    loaded = two_cores("riscv32", RISCV)
    with pytest.raises(DeviceFault, match="timeout"):
        run_in_turns(loaded.device.board, programs(loaded, "consumer"), timeout=0.05)


def test_each_core_has_its_own_system_control_space(two_cores: Make) -> None:
    text = """
start:
first:
    ldr r0, =0xe000e010
    movs r1, #77
    str r1, [r0, #4]
    ldr r2, [r0, #4]
end_first:
    b end_first
second:
    ldr r0, =0xe000e010
    movs r1, #99
    str r1, [r0, #4]
    ldr r2, [r0, #4]
end_second:
    b end_second
    .ltorg
"""
    loaded = two_cores("cortex-m0plus", text)
    board = loaded.device.board
    run_in_turns(board, programs(loaded, "first", "second"), turn=1)
    assert [core.read_register("r2") for core in board.cores] == [77, 99]


def test_what_does_not_fit_two_cores(two_cores: Make) -> None:
    loaded = two_cores("riscv32", RISCV)
    board = loaded.device.board
    entry = programs(loaded, "producer")[0]
    for wrong in ([], [entry] * 3):
        with pytest.raises(ValueError, match="a board with 2 cores"):
            run_in_turns(board, wrong)
    for turn in (0, 1 << 19):
        with pytest.raises(ValueError, match="a turn of"):
            run_in_turns(board, [entry], turn=turn)
    with pytest.raises(DeviceError, match="need a board with one core, this one has 2"):
        loaded.device.board.add_instructions(
            "u", [CustomInstruction("f", 0, 0, lambda a, b: a, "a")]
        )
    arm = two_cores("cortex-m0plus", ARM).device.board
    with pytest.raises(PlatformError, match="overlaps scs"):
        arm.attach(Watcher(arm), 0xE000E000, "other")


def test_a_breakpoint_ends_the_run(two_cores: Make) -> None:
    loaded = two_cores("riscv32", RISCV)
    loaded.device.set_breakpoints([loaded.labels["consumer"]])
    with pytest.raises(DeviceFault, match="breakpoint") as caught:
        run_in_turns(loaded.device.board, programs(loaded, "consumer", "producer"))
    assert caught.value.pc == loaded.labels["consumer"]


def test_both_cores_see_code_that_is_written(two_cores: Make) -> None:
    text = "start:\nboth:\n li a0, 1\nend_both:\n j end_both\nother:\n li a0, 2\n"
    loaded = two_cores("riscv32", text)
    board, labels = loaded.device.board, loaded.labels
    entries = programs(loaded, "both", "both")
    run_in_turns(board, entries)
    assert [core.read_register("a0") for core in board.cores] == [1, 1]
    board.write(labels["both"], board.read(labels["other"], 2))
    run_in_turns(board, entries)
    assert [core.read_register("a0") for core in board.cores] == [2, 2]


@pytest.mark.parametrize("platform", PROGRAMS)
def test_a_state_holds_both_cores(two_cores: Make, platform: str) -> None:
    loaded = two_cores(platform, PROGRAMS[platform][0])
    board = loaded.device.board
    entries = programs(loaded, "producer", "consumer")
    run_in_turns(board, entries)  # the cores are at different cycles now
    state = board.save_state()
    seen = []
    for _ in range(2):
        stops = run_in_turns(board, entries, turn=50)
        totals = [core.totals for core in board.cores]
        registers = [core.registers() for core in board.cores]
        memory = [region.content.tobytes() for region in board.memories]
        seen.append((stops, totals, registers, memory))
        board.load_state(state)
    assert seen[0] == seen[1]
