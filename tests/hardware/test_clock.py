"""`Clock`: events in order, clocked participants, input from other threads."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from covp.errors import AcceleratorError
from covp.hardware.clock import Clock


class Time:
    """A core that spends no cycles but those that are skipped."""

    def __init__(self) -> None:
        self.cycles = 0
        self.clock = Clock(lambda: self.cycles, self.skip, 1000)

    def skip(self, cycles: int) -> None:
        self.cycles += cycles


class Clocked:
    """A participant that wants every ``period`` cycles, and notes how far it was advanced."""

    def __init__(self, period: int | None = None) -> None:
        self.period = period
        self.seen: list[int] = []

    def advance(self, until: int) -> int | None:
        self.seen.append(until)
        return None if self.period is None else until + self.period


@given(st.lists(st.integers(1, 100), max_size=20), st.integers(1, 30), st.integers(0, 150))
def test_everything_fires_in_order_and_participants_come_first(
    cycles: list[int], period: int, until: int
) -> None:
    core, periodic, passive = Time(), Clocked(period), Clocked()
    log: list[tuple[int, int]] = []

    def note(cycle: int) -> Callable[[], None]:
        return lambda: log.append((cycle, passive.seen[-1]))

    core.clock.join(periodic)
    core.clock.join(passive)
    for cycle in cycles:
        core.clock.at(cycle, note(cycle))
    core.clock.wait_until(until)
    core.clock.run_due()
    due = sorted(cycle for cycle in cycles if cycle <= until)
    # advanced exactly to the cycle of each event before it fires
    assert log == [(cycle, cycle) for cycle in due]
    assert passive.seen == periodic.seen == sorted(passive.seen)
    assert set(due) <= set(passive.seen) and core.cycles == until
    # it wants to be advanced a period after whatever advanced it
    assert all(b - a <= period for a, b in zip(periodic.seen, periodic.seen[1:], strict=False))
    assert until - periodic.seen[-1] < period


def test_a_participant_that_leaves_is_advanced_no_more() -> None:
    core, clocked = Time(), Clocked(10)
    core.clock.join(clocked)
    core.clock.wait_until(25)
    core.clock.leave(clocked)
    core.clock.leave(clocked)
    core.clock.wait_until(100)
    assert clocked.seen == [0, 10, 20]
    assert core.clock.next_event is None


def test_a_participant_catches_up_and_wishes_anew() -> None:
    core, clocked = Time(), Clocked()
    core.clock.join(clocked)
    core.skip(7)
    clocked.period = 3
    core.clock.advance(clocked)
    assert clocked.seen == [0, 7] and core.clock.next_event == 10


def test_an_event_in_the_past_does_not_turn_a_participant_back() -> None:
    core, clocked = Time(), Clocked()
    core.clock.join(clocked)
    core.skip(50)
    core.clock.advance(clocked)
    core.clock.at(20, lambda: None)
    core.clock.run_due()
    assert clocked.seen == [0, 50, 50]


def test_a_wish_that_is_over_is_an_error() -> None:
    with pytest.raises(AcceleratorError, match=r"Clocked.advance\(0\) wants cycle 0 next"):
        Time().clock.join(Clocked(0))


def test_what_was_posted_runs_in_order_in_the_simulations_thread() -> None:
    core = Time()
    ran: list[tuple[int, int]] = []
    with core.clock.outside() as source:

        def post(number: int) -> None:
            source.post(lambda: ran.append((number, threading.get_ident())))

        for number in range(3):
            thread = threading.Thread(target=post, args=(number,))
            thread.start()
            thread.join()
        assert core.clock.has_posted and not ran
        core.clock.run_due()
    assert ran == [(number, threading.get_ident()) for number in range(3)]
    assert not core.clock.has_posted and not core.clock.is_open


@pytest.mark.parametrize("end", ["post", "close", "wake"])
def test_waiting_for_the_outside_ends(end: str) -> None:
    core, over = Time(), threading.Event()
    source = core.clock.outside()

    def act() -> None:
        if end == "post":
            source.post(lambda: None)
        elif end == "close":
            source.close()
        else:
            over.set()
            core.clock.wake()

    thread = threading.Thread(target=act)
    thread.start()
    core.clock.wait_outside(over.is_set, time.monotonic() + 60)
    thread.join()
    source.close()


def test_a_deadline_ends_waiting() -> None:
    core = Time()
    with core.clock.outside():
        core.clock.wait_outside(lambda: time.monotonic() > deadline, deadline := time.monotonic())


def test_a_closed_clock_ignores_posts() -> None:
    core = Time()
    source = core.clock.outside()
    core.clock.close()
    source.post(lambda: pytest.fail("it ran"))
    core.clock.run_due()
