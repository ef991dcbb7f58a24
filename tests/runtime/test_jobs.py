"""Calls in this process and in others: the same results and errors, one rule for deaths."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from covp.errors import CapacityError, CovpError, DeviceError, DeviceFault, ProgramExit
from covp.graph.user_operators import (
    UserOperator,
    find_user_operator,
    load_operator_file,
    register_operator,
    unregister_operator,
)
from covp.hardware.intrinsics import DotProduct, find_dot_product, register, unregister
from covp.runtime.jobs import Died, InLine, Jobs, Processes, Raised, open_jobs
from tests.processes import descendants, running


def halved(value: int) -> int:
    if value % 2:
        raise CapacityError(f"{value} is\nodd", value, 0)
    return value // 2


def die(status: int) -> int:
    if status < 0:
        os.kill(os.getpid(), -status)
    os._exit(status)


def die_until(log: Path, times: int, _: int) -> int:
    """Ends so many processes before it gives their number."""
    with log.open("ab") as file:
        file.write(b".")
    count = log.stat().st_size
    if count <= times:
        die(-signal.SIGSEGV)
    return count


def misbehave(what: str) -> Callable[[], None] | None:
    if what == "raise":
        raise ValueError("ten\nis no value")
    return (lambda: None) if what == "lambda" else None


def knows(kind: str) -> tuple[bool, bool]:
    return find_user_operator(kind) is not None, find_dot_product("dot4") is not None


@pytest.mark.costly
@pytest.mark.parametrize("count", [1, 2])
def test_results_and_errors(count: int) -> None:
    with open_jobs(halved, count) as jobs:
        assert isinstance(jobs, InLine if count == 1 else Processes)
        found = {done.number: done for done in jobs.call(range(6))}
    assert [found[i].result for i in (0, 2, 4)] == [0, 1, 2]
    assert jobs.in_flight == 0
    for i in (1, 3, 5):
        with pytest.raises(CapacityError, match=f"{i} is\nodd") as raised:
            _ = found[i].result
        assert raised.value.needed == i


@pytest.mark.parametrize(
    "error",
    [
        CapacityError("no room", 3, 1, "ram", {".bss": 3}),
        DeviceFault("unmapped read", pc=4, call_stack=("a", "b")),
        ProgramExit(2, "application exit", 8),
        Died(-9, 3),
    ],
)
def test_errors_travel_as_they_are(error: CovpError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert (str(again), vars(again)) == (str(error), vars(error))


@pytest.mark.costly
@pytest.mark.parametrize(
    ("status", "times"), [(7, 3), (0, 3), (-signal.SIGSEGV, 3), (-signal.SIGKILL, 6)]
)
def test_a_call_that_ends_its_process(status: int, times: int) -> None:
    """It is repeated, and is an error in the end; other calls do not notice."""
    with Processes(die, 1) as jobs:
        (done,) = jobs.call([status])
    assert isinstance(done.error, Died)
    assert (done.error.status, done.error.times) == (status, times)
    with pytest.raises(DeviceError, match=f"a worker process died: .* {times} times"):
        _ = done.result


def test_without_retry_a_death_is_said_at_once() -> None:
    with Processes(die, 1) as jobs:
        jobs.submit(-signal.SIGSEGV, retry=False)
        (done,) = jobs.wait()
    assert str(done.error) == "ended its process by SIGSEGV"


@pytest.mark.costly
def test_a_call_that_crashes_twice_has_its_result(tmp_path: Path) -> None:
    with Processes(partial(die_until, tmp_path / "log", 2), 1) as jobs:
        (done,) = jobs.call([0])
    assert done.result == 3


def test_other_exceptions_are_named() -> None:
    with Processes(misbehave, 1) as jobs:
        raised, unsent, good = sorted(jobs.call(["raise", "lambda", ""]), key=lambda d: d.number)
    assert str(raised.error) == "internal error: ValueError: ten is no value"
    assert isinstance(unsent.error, Raised) and "pickle" in str(unsent.error)
    assert good.error is None


def test_what_a_users_file_registered_is_known_to_others(tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    file.write_text(
        "from covp.graph.user_operators import UserOperator, register_operator\n"
        "register_operator(UserOperator('OWN_OF_A_FILE', lambda op, values: values))\n"
    )
    load_operator_file(file)
    register(DotProduct("dot4", frozenset({"xdot"}), 4, "int8", "dot4({x}, {w}, {sum})"))
    try:
        with Processes(knows, 1) as jobs:
            (done,) = jobs.call(["OWN_OF_A_FILE"])
        assert done.result == (True, True)
    finally:
        unregister("dot4")
        unregister_operator("OWN_OF_A_FILE")


def test_what_a_script_registered_is_known_in_its_process_alone() -> None:
    reference = eval("lambda op, values: values", {"__name__": "__main__"})
    register_operator(UserOperator("OWN_OF_A_SCRIPT", reference))
    try:
        with open_jobs(knows, 2) as jobs:
            assert isinstance(jobs, InLine)
            (done,) = jobs.call(["OWN_OF_A_SCRIPT"])
        assert done.result == (True, False)
    finally:
        unregister_operator("OWN_OF_A_SCRIPT")


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
@pytest.mark.parametrize("is_interrupted", [False, True])
def test_no_process_is_left(is_interrupted: bool) -> None:
    """Neither of calls that are done nor of those that are not."""
    before = descendants(os.getpid())
    jobs: Jobs[float, None] = Processes(time.sleep, 2)
    with pytest.raises(KeyboardInterrupt) if is_interrupted else jobs, jobs:
        jobs.submit(0.0)
        jobs.wait()
        begun = descendants(os.getpid()) - before
        assert begun
        if is_interrupted:
            jobs.submit(3600.0)
            raise KeyboardInterrupt
    assert not running(begun)
