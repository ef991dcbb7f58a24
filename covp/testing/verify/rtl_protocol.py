"""The protocol of a unit's RTL in the course of a job: STATUS, interrupt, latched registers.

Job by job `RtlUnit` looks at the end alone. Here the RTL is asked while it works, as the core of
a chip may: covp.hardware.job_unit says what it has to answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

from covp.accelerator.rtl.unit import RtlUnit
from covp.hardware.job_unit import ERRORS
from covp.hardware.registers import Register
from covp.testing import Case
from covp.testing.verify.bench import Conditions
from covp.testing.verify.driver_bench import DriverBench

_BUSY, _DONE, _ENABLE, _PENDING = 1, 2, 1, 2
_ERROR_SHIFT, _BYTE, _WORD = 8, 0xFF, 0xFFFFFFFF
_LONGEST = 50_000
"""Cycles of the job that is looked into, at most."""
_TRIED = 12
_AFTER = 100
_PAGE, _ROOM = 4096, 512
_SLACK = 8
"""Cycles by which accesses to registers may move the end of a job."""


def try_protocol(bench: DriverBench, unit: RtlUnit, cases: Sequence[Case]) -> tuple[int, str]:
    """Try what a core may do while the RTL of a unit works.

    Args:
        bench: with the accelerator as its RTL.
        unit: of the bench.
        cases: layers that it accepts, of which the longest job is taken.

    Returns:
        how much was tried, and the first difference; "": none.
    """
    cycles = {place: _cycles(bench, case) for place, case in enumerate(cases[:_TRIED])}
    fitting = [place for place, count in cycles.items() if count <= _LONGEST]
    if not fitting:
        return 0, ""
    _cycles(bench, cases[max(fitting, key=lambda place: cycles[place])])
    course = _Course(bench, unit)
    tried = 0
    for use, check in course.checks():
        tried += 1
        found = check() or course.broken_rule()
        if found:
            return tried, f"the RTL of {unit.name}: {use}: {found}"
    return tried, ""


def _cycles(bench: DriverBench, case: Case) -> int:
    """Run a layer; return the cycles of its last job, whose registers the unit keeps."""
    bench.begin()
    bench.run(case.graph(), case.inputs(), Conditions(case.gap))
    return bench.jobs[-1].timing.cycles if bench.jobs else _LONGEST + 1


Check = tuple[str, Callable[[], str]]


class _Course:
    """A job on the RTL, again and again.

    Args:
        bench: whose memory has the job's operands.
        unit: with the registers of the job.
    """

    def __init__(self, bench: DriverBench, unit: RtlUnit) -> None:
        self._bench, self._unit, self._rtl = bench, unit, unit.rtl
        self._registers = {register.name: register for register in unit.registers}
        self._good = dict(unit.values) | {"DESCRIPTOR": 0}
        self._job = unit.behaviour.job
        self._start()
        self._length = self._end()
        self._stored = self._stores()

    def checks(self) -> Iterator[Check]:
        """Yield what is done and how it is checked."""
        for quarter in (1, 2, 3):
            wait = self._length * quarter // 4
            yield "STATUS is read in a job", partial(self._while_busy, wait)
        for wait in range(6):
            yield "STATUS is polled to the end of a job", partial(self._polled, wait)
        yield "a job without INTERRUPT.ENABLE", self._without_interrupt
        yield "the interrupt after a job", self._interrupt
        yield "a second start", self._second_start
        yield "a start while a job runs", self._start_while_busy
        yield "registers are written while a job runs", self._latched
        for address in self._descriptors():
            yield f"a DESCRIPTOR at 0x{address:08x}", partial(self._descriptor, address)

    def broken_rule(self) -> str:
        """Return what the unit did against the rules of its bus; "": nothing."""
        return self._rtl.error

    # -- what is checked ----------------------------------------------------------------------

    def _while_busy(self, wait: int) -> str:
        began = self._start()
        self._rtl.advance(began + wait)
        status = self._read("STATUS")
        if not self._is_running(began):
            return ""
        after = f"STATUS reads 0x{status:x} {self._rtl.taken - began} cycles after START"
        if status != _BUSY:
            return f"{after}; the job takes {self._length}, BUSY alone is due"
        return f"{after}, and irq is up" if self._rtl.interrupts() else ""

    def _polled(self, wait: int) -> str:
        began = self._start()
        self._rtl.advance(began + wait)
        for _ in range(self._length):
            status = self._read("STATUS")
            if status == _DONE:
                break
            if status != _BUSY:
                return f"STATUS reads 0x{status:x}; BUSY or DONE, one of them, is due"
        else:
            return "STATUS.DONE is never there"
        stored = self._stores()
        if not self._rtl.drain() or stored != self._stored:
            return "it stores after STATUS.DONE was read"
        return ""

    def _without_interrupt(self) -> str:
        self._start(enable=0)
        budget = self._length + _AFTER
        if self._rtl.run(budget) < budget:
            return "irq comes"
        status = self._read("STATUS")
        return "" if status == _DONE else f"STATUS reads 0x{status:x} at its end; DONE is due"

    def _interrupt(self) -> str:
        self._start()
        self._end()
        for cleared, due in ((0, True), (_ENABLE, True), (_ENABLE | _PENDING, False)):
            if cleared:
                self._write("INTERRUPT", cleared)
            self._rtl.advance(self._rtl.now + _AFTER)
            if self._rtl.interrupts() != due:
                what = f"after a write of {cleared} to INTERRUPT" if cleared else "after 100 cycles"
                return f"irq is {'down' if due else 'up'} {what}"
            seen, wanted = self._read("INTERRUPT"), _ENABLE | _PENDING * due
            if seen != wanted:
                return f"INTERRUPT reads 0x{seen:x} while irq is {'up' if due else 'down'}"
        return ""

    def _second_start(self) -> str:
        self._start()
        self._end()
        self._write("INTERRUPT", _ENABLE | _PENDING)
        self._write("CTRL", 1)
        began = self._rtl.taken
        status = self._read("STATUS")
        if self._is_running(began) and status != _BUSY:
            return f"STATUS reads 0x{status:x} after it; BUSY alone is due"
        return "" if self._length_from(began) else "the second job has no end"

    def _start_while_busy(self) -> str:
        began = self._start()
        self._rtl.advance(began + self._length // 3)
        self._write("CTRL", 1)
        if not self._is_running(began):
            return ""
        status = self._read("STATUS")
        if self._is_running(began) and status != _BUSY | ERRORS["busy"] << _ERROR_SHIFT:
            return f"STATUS reads 0x{status:x}; BUSY and the error {ERRORS['busy']} are due"
        took = self._length_from(began)
        if abs(took - self._length) > _SLACK + self._length // 10:
            return f"the job takes {took} cycles instead of {self._length}: it has to go on"
        return self._difference()

    def _latched(self) -> str:
        began = self._start()
        written = {}
        for register, value in self._others():
            self._write(register.name, value)
            if not self._is_running(began):
                break
            written[register.name] = value
        self._length_from(began)
        found = self._difference()
        if found:
            return found
        for name, value in written.items():
            seen = self._read(name)
            if seen != value:
                return f"{name} reads 0x{seen:x} after it, not 0x{value:x}"
        return ""

    def _descriptor(self, address: int) -> str:
        names = [part.name for part in self._job.image]
        words = np.array([self._good[name] for name in names], np.uint32)
        self._bench.device.board.write_bus(address, words.tobytes())
        began = self._start(dict.fromkeys(names, 0) | {"DESCRIPTOR": address})
        if not self._length_from(began):
            return "the job has no end"
        seen = self._read("DESCRIPTOR")
        return self._difference() or (f"it reads 0x{seen:x} after the job, not 0" if seen else "")

    # -- the RTL ------------------------------------------------------------------------------

    def _start(self, values: dict[str, int] | None = None, enable: int = _ENABLE) -> int:
        """Reset the RTL and start the job; return the cycle of the start."""
        self._rtl.reset()
        self._rtl.begin(self._unit.bus.memories, 0)
        for name, value in (self._good | (values or {})).items():
            if name not in ("CTRL", "STATUS", "INTERRUPT"):
                self._write(name, value)
        self._write("INTERRUPT", enable | _PENDING)
        self._write("CTRL", 1)
        return self._rtl.taken

    def _end(self) -> int:
        """Run to the interrupt; return the cycles since the latest access."""
        return self._rtl.run(2 * _LONGEST)

    def _length_from(self, began: int) -> int:
        """Run to the interrupt; return the cycles since a start; 0: it does not come."""
        budget = 2 * _LONGEST
        return 0 if self._rtl.run(budget) >= budget else self._rtl.now - began

    def _is_running(self, began: int) -> bool:
        """Return whether the latest access was clearly before the end of the job."""
        return self._rtl.taken + _SLACK < began + self._length

    def _stores(self) -> dict[int, int]:
        """Return the bytes that were stored since the latest call, by address."""
        return {
            address + place: int(value)
            for address, data in self._rtl.stores()
            for place, value in enumerate(data)
        }

    def _difference(self) -> str:
        """Compare what a job has stored with what it stores by itself."""
        stored = self._stores()
        if stored == self._stored:
            return ""
        wrong = [a for a in self._stored if stored.get(a) != self._stored[a]]
        return f"{len(wrong) or 'more'} of its {len(self._stored)} bytes are not as without that"

    def _read(self, name: str) -> int:
        value = self._rtl.read(self._registers[name].offset)
        return _WORD if value is None else value

    def _write(self, name: str, value: int) -> None:
        self._rtl.write(self._registers[name].offset, value)

    def _others(self) -> Iterator[tuple[Register, int]]:
        """Yield the job's registers with other values that they may have."""
        for number in self._job.numbers:
            if not number.real:
                low, high = int(number.minimum) & _WORD, int(number.maximum) & _WORD
                own = self._good[number.name]
                yield self._registers[number.name], high if own == low else low
        for operand in (*self._job.tables, *self._job.tensors, self._job.result):
            yield self._registers[operand.name], self._good[operand.name] ^ 0x100

    def _descriptors(self) -> Iterator[int]:
        """Yield addresses in free memory for the image, in and around a border of 4 KiB."""
        count = len(self._job.image)
        start, size = self._bench.arena()
        taken = [self._good[o.name] for o in (*self._job.tables, *self._job.tensors)]
        taken += [self._good[self._job.result.name]]
        last = max(
            address for address in (*taken, *self._stored) if start <= address < start + size
        )
        border = -(-(last + 2 * _PAGE) // _PAGE) * _PAGE
        if not count or border + _ROOM > start + size:
            return
        for words in sorted({1, count // 2, count - 1} - {0}):
            yield border - 4 * words
