"""One port of the memory for several units: fluid shares beside taking turns cycle by cycle."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from numpy.typing import NDArray

from covp.accelerator import Accelerator, Job, JobTiming, number, result, tensor
from covp.chip.platform_file import AcceleratorSlot, Platform, load_platform
from covp.device.virtual import VirtualDevice
from covp.hardware.shared_port import SharedPort

BASE, RAM = 0x70000000, 0x80000000


def in_turns(jobs: Mapping[int, tuple[int, int]], parts: int) -> dict[int, float]:
    """Return when each job has moved all, where every 1 / parts cycle is another one's turn.

    Args:
        jobs: a name to the cycle in which it begins and those that it needs.
        parts: of a cycle.
    """
    left = {job: cycles * parts for job, (_, cycles) in jobs.items()}
    ends: dict[int, float] = {}
    order, tick = list(jobs), 0
    while left:
        ready = [job for job in order if job in left and jobs[job][0] * parts <= tick]
        tick += 1
        if not ready:
            continue
        turn = ready[0]
        order.remove(turn)
        order.append(turn)
        left[turn] -= 1
        if not left[turn]:
            del left[turn]
            ends[turn] = tick / parts
    return ends


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(1, 50)), min_size=1, max_size=5))
def test_shares_are_the_limit_of_turns(arrivals: list[tuple[int, int]]) -> None:
    jobs = dict(enumerate(sorted(arrivals)))
    port, found = SharedPort(), dict[Any, float]()
    for job, (start, cycles) in jobs.items():
        port.begin(job, start, cycles)
        found |= port.ends()
    expected = in_turns(jobs, 64)
    assert found.keys() == expected.keys()
    for job, end in found.items():
        assert end == pytest.approx(expected[job], abs=len(jobs) / 8)


def test_a_device_may_go_back_while_nothing_is_moved() -> None:
    port = SharedPort()
    port.begin("a", 1000, 10)
    port.leave("a", 1010)
    port.begin("b", 20, 10)
    assert port.ends() == {"b": 30}


class Mover(Accelerator):
    """Takes as many cycles of computing and of the port as its registers say."""

    name = "mover"
    operators = ("RESHAPE",)
    job = Job(
        tensor("INPUT", "int8", lambda job: 4),
        result("OUTPUT", "int8", lambda job: 4),
        number("COMPUTE", 0, 10_000),
        number("MEMORY", 0, 10_000),
        number("STARTUP", 0, 100),
    )

    def compute(self, job: Any) -> NDArray[Any]:
        found: NDArray[Any] = job.INPUT
        return found

    def timing(self, job: Any, nbytes: int) -> JobTiming:
        return JobTiming(int(job.COMPUTE), int(job.MEMORY), int(job.STARTUP))


def board(shared: bool) -> Platform:
    slot = AcceleratorSlot(BASE, shared_port=shared)
    return replace(load_platform("riscv32"), accelerators=slot)


def run_jobs(shared: bool, jobs: list[tuple[int, int, int, int]]) -> list[tuple[int, JobTiming]]:
    """Run a job (start, compute, memory, start-up) on each of several units.

    Returns:
        When each is over, and the time that its record has.
    """
    with VirtualDevice(board(shared)) as device:
        units = [Mover().make_peripheral() for _ in jobs]
        ends: dict[int, int] = {}
        for index, unit in enumerate(units):
            device.attach(unit, BASE + 0x1000 * index, f"mover{index}")
            unit.on_end = lambda began, end, record, index=index: ends.update({index: end})
        clock, begin = device.clock, device.clock.now
        for index, (start, *numbers) in enumerate(jobs):
            clock.wait_until(begin + start)
            words = {r.name: r.offset for r in units[index].registers}
            place = RAM + 64 * index
            values = dict(zip(("COMPUTE", "MEMORY", "STARTUP"), numbers, strict=True))
            for name, value in ({"INPUT": place, "OUTPUT": place + 32} | values).items():
                at = BASE + 0x1000 * index + words[name]
                device.board.write_bus(at, value.to_bytes(4, "little"))
            device.board.write_bus(BASE + 0x1000 * index, b"\1\0\0\0")
        clock.wait_until(begin + 50_000)
        return [(ends[i] - begin, unit.jobs[0].timing) for i, unit in enumerate(units)]


def test_units_on_one_port_wait_for_each_other() -> None:
    jobs = [(0, 10, 100, 0), (50, 10, 100, 0), (60, 400, 0, 5)]
    own, shared = (run_jobs(kind, jobs) for kind in (False, True))
    assert [end for end, _ in own] == [100, 150, 465]
    # the first has moved 50 alone and 50 in turns, the second then goes on alone
    assert [end for end, _ in shared] == [150, 200, 465]
    assert [timing.memory for _, timing in shared] == [150, 150, 0]
    assert [timing.compute for _, timing in shared] == [10, 10, 400]


def test_what_computes_for_longer_does_not_notice() -> None:
    jobs = [(0, 300, 100, 7), (0, 300, 100, 7)]
    assert [end for end, _ in run_jobs(True, jobs)] == [307, 307]


def test_a_reset_ends_what_is_moved() -> None:
    with VirtualDevice(board(True)) as device:
        units = [Mover().make_peripheral() for _ in range(2)]
        for index, unit in enumerate(units):
            device.attach(unit, BASE + 0x1000 * index, f"mover{index}")
        port = units[0].port
        assert port is not None and port is units[1].port
        port.begin(units[0], device.clock.now, 1000)
        units[0]._end = device.clock.at(device.clock.now + 1000, lambda: None)
        units[0].reset()
        assert port.ends() == {}
