"""Wrong uses of a unit's registers: each must end in a defined error, and damage nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray

from covp.accelerator.rtl.unit import RtlUnit
from covp.base.plugins import describe
from covp.chip.platform_file import Platform
from covp.errors import AcceleratorError, CovpError, DeviceFault
from covp.hardware.job import FIRST_OFFSET
from covp.hardware.job_unit import ERRORS, JobUnit
from covp.testing import Case
from covp.testing.verify.bench import Conditions
from covp.testing.verify.driver_bench import DriverBench

_START, _STATUS, _INTERRUPT = 0x00, 0x04, 0x08
_BUSY, _DONE = 1, 2
_OUTSIDE = 0xFFFFFF00


def abuse(bench: DriverBench, case: Case) -> tuple[int, str | None]:
    """Misuse the registers in the state in which a good job left them.

    Args:
        bench: with the accelerator.
        case: a layer that the accelerator accepts; its last job is the good one.

    Returns:
        How many wrong uses were tried, and the first one that was not caught.
    """
    unit = bench.unit
    assert isinstance(unit, JobUnit)
    bench.begin()
    bench.run(case.graph(), case.inputs(), Conditions(case.gap))
    tried = 0
    good = dict(unit.values)
    for use, wrong in _wrong_uses(bench, unit, good):
        tried += 1
        try:
            failure = wrong() or _again(bench, good)
        except (AcceleratorError, DeviceFault) as error:
            failure = str(error)
        except CovpError:
            raise
        except Exception as error:
            failure = f"the hardware model raised {describe(error)}"
        if failure is not None:
            return tried, f"{bench.backend.name}: {use}: {failure}"
    return tried, None


Values = dict[str, int]
Attempt = tuple[str, Callable[[], str | None]]


def _wrong_uses(bench: DriverBench, unit: JobUnit, good: Values) -> Iterator[Attempt]:
    yield "a valid job", partial(_protocol, bench, unit, good)
    yield "a job started while one is running", partial(_start_while_busy, bench, unit, good)
    low, size = bench.arena()
    names = [r.name for r in unit.registers if r.offset >= FIRST_OFFSET and r.access == "rw"]
    pointers = [name for name in names if low <= good[name] < low + size]
    # a unit whose memory bus has no error response cannot know that it has met no memory
    sees_errors = not isinstance(unit, RtlUnit) or unit.rtl.has_errors
    for name in pointers if sees_errors else ():
        for address in (_OUTSIDE, _end_of_ram(bench.device.platform)):
            use = f"{name} at 0x{address:08x}, outside the memory"
            yield use, partial(_find_rejection, bench, good | {name: address})
    for name in pointers:
        if _element_bytes(bench, name) > 1:
            use = f"{name} at an odd address"
            yield use, partial(_find_rejection, bench, good | {name: good[name] | 1})
    for name in names:
        halves = {0, good[name] & 0xFFFF, good[name] & 0xFFFF0000} - {good[name]}
        for value in halves if name not in pointers else ():
            yield f"{name} = 0x{value:x}", partial(_harmless, bench, good | {name: value})
    target = unit.result_register
    if not getattr(getattr(bench.backend, "job", None), "in_place", False):
        for name in pointers:
            if name != target:
                changed = good | {target: good[name]}
                yield f"{target} on top of {name}", partial(_find_rejection, bench, changed)


def _element_bytes(bench: DriverBench, name: str) -> int:
    """Return the bytes of an element of an operand; 1: it is none of a declared job."""
    job = getattr(bench.backend, "job", None)
    operands = () if job is None else (*job.tables, *job.tensors, job.result)
    return next((one.dtype.itemsize for one in operands if one.name == name), 1)


def _program(bench: DriverBench, values: Values) -> None:
    for register in bench.unit.registers:
        if register.offset >= FIRST_OFFSET:
            word = values[register.name].to_bytes(4, "little")
            bench.device.board.write_bus(bench.base + register.offset, word)


def _write(bench: DriverBench, offset: int, value: int) -> None:
    bench.device.board.write_bus(bench.base + offset, value.to_bytes(4, "little"))


def _wait(bench: DriverBench) -> int:
    """Return STATUS once the unit is done; reading it waits."""
    return int.from_bytes(bench.device.board.read_bus(bench.base + _STATUS, 4), "little")


def _memory(bench: DriverBench) -> NDArray[np.uint8]:
    return np.frombuffer(bench.session.read(*bench.arena()), np.uint8)


def _job(bench: DriverBench, values: Values) -> tuple[int, NDArray[np.intp]]:
    """Run a job; return its error code and the addresses whose bytes changed."""
    _program(bench, values)
    before = _memory(bench)
    _write(bench, _START, 1)
    status = _wait(bench)
    changed = np.flatnonzero(_memory(bench) != before) + bench.arena()[0]
    return (status >> 8 & 0xFF if status & _DONE else -1), changed


def _find_rejection(bench: DriverBench, values: Values) -> str | None:
    code, changed = _job(bench, values)
    if changed.size:
        return f"{changed.size} bytes of memory were written, first at 0x{changed[0]:08x}"
    if code <= 0:
        return "the job was not rejected: STATUS has no error code"
    return None if code in ERRORS.values() else f"STATUS.ERROR is {code}, which is not defined"


def _again(bench: DriverBench, good: Values) -> str | None:
    """Check that nothing is left of a wrong use: a valid job runs after it."""
    code, _ = _job(bench, good)
    return f"the next valid job is rejected with code {code}" if code else None


def _harmless(bench: DriverBench, values: Values) -> str | None:
    """Check another job than the good one: rejected, or it writes its result and nothing else."""
    code, changed = _job(bench, values)
    if code not in ERRORS.values():
        return f"STATUS.ERROR is {code}, which is not defined"
    if code and changed.size:
        return f"rejected, but {changed.size} bytes were written, first at 0x{changed[0]:08x}"
    latest = bench.unit.latest
    start, end = latest.span if latest is not None else (0, 0)
    beside = changed[(changed < start) | (changed >= end)]
    if beside.size:
        return f"{beside.size} bytes beside the result were written, first at 0x{beside[0]:08x}"
    return None


def _protocol(bench: DriverBench, unit: JobUnit, good: Values) -> str | None:
    """Check STATUS and INTERRUPT over the course of a job; return what is wrong, or None."""
    _program(bench, good)
    _write(bench, _INTERRUPT, 1)
    _write(bench, _START, 1)
    busy = unit.values["STATUS"]
    if busy & _BUSY and busy & _DONE:
        return "STATUS.DONE of the job before was not cleared when it was started"
    done = _wait(bench)
    if done & (_BUSY | _DONE) != _DONE or done >> 8 & 0xFF:
        return f"STATUS is 0x{done:x} at its end instead of DONE alone"
    if not unit.interrupt.level:
        return "INTERRUPT.ENABLE is set, and the line is not up at its end"
    _write(bench, _INTERRUPT, 2)
    if unit.interrupt.level:
        return "a one in INTERRUPT.PENDING does not take the line down"
    return None


def _start_while_busy(bench: DriverBench, unit: JobUnit, good: Values) -> str | None:
    _program(bench, good)
    _write(bench, _START, 1)
    if not unit.values["STATUS"] & _BUSY:
        return None  # a job that takes no time cannot be disturbed
    _write(bench, _START, 1)
    code = unit.values["STATUS"] >> 8 & 0xFF
    done = _wait(bench)
    if code != ERRORS["busy"]:
        return f"STATUS.ERROR is {code} instead of {ERRORS['busy']}"
    return None if done & _DONE else "the running job did not come to its end"


def _end_of_ram(platform: Platform) -> int:
    """Return the first address past the RAM, and past what follows it without a gap."""
    end = platform.ram.end
    while (region := platform.region_of(end)) is not None:
        end = region.end
    return end
