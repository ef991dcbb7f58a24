"""Handlers, lines and sleep of a program whose work an interrupt ends; a law for what is nested."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from covp.device.stop import Stop
from covp.device.timeline import TimelineLog
from covp.hardware.peripheral import Peripheral
from covp.hardware.registers import Register, RegisterMap
from covp.report.timeline import Timeline, timeline_of_log
from tests.conftest import load

BASE, LINE = 0x50000000, 5


class Worker(Peripheral):
    """A job of JOB cycles; then the line is up until CLEAR is written. Notes both cycles."""

    registers = RegisterMap(
        Register("JOB", 0x00, on_write="start"), Register("CLEAR", 0x04, on_write="clear")
    )

    def __init__(self) -> None:
        self.raised: list[int] = []
        self.cleared: list[int] = []
        super().__init__()

    def start(self, cycles: int) -> None:
        self.clock.at(self.clock.now + cycles, self.finish)

    def finish(self) -> None:
        self.raised.append(self.clock.now)
        self.interrupt.set(True)

    def clear(self, _: int) -> None:
        self.cleared.append(self.clock.now)
        self.interrupt.set(False)


ARM = f"""
vectors:
 .rept {16 + LINE}
 .word 0
 .endr
 .word handler
 .type start, %function
start: ldr r6, =0x{BASE:08x}
 ldr r0, =0xe000e100
 movs r1, #{1 << LINE}
 str r1, [r0]
 ldr r1, =500
 str r1, [r6]
 wfi
 ldr r1, =100
 str r1, [r6]
 movs r2, #200
spin: subs r2, #1
 bne spin
 bl leaf
end: b end
 .size start, . - start
 .type leaf, %function
leaf: adds r3, #1
 bx lr
 .size leaf, . - leaf
 .type handler, %function
handler: str r1, [r6, #4]
 bx lr
 .size handler, . - handler
 .ltorg
"""
RISCV = f"""
 .type start, @function
start: li s0, 0x{BASE:08x}
 la t0, handler
 csrw mtvec, t0
 li t0, 0x800
 csrw mie, t0
 csrsi mstatus, 8
 li t1, 500
 sw t1, 0(s0)
 wfi
 li t1, 100
 sw t1, 0(s0)
 li t2, 200
spin: addi t2, t2, -1
 bnez t2, spin
 call leaf
end: j end
 .size start, . - start
 .type leaf, @function
leaf: addi t3, t3, 1
 ret
 .size leaf, . - leaf
 .balign 4
 .type handler, @function
handler: sw zero, 4(s0)
 mret
 .size handler, . - handler
"""


@pytest.fixture(params=["cortex-m4", "cortex-m0plus", "riscv32"])
def recorded(request: pytest.FixtureRequest) -> Iterator[tuple[Stop, TimelineLog, Worker]]:
    program = load(request.param, RISCV if request.param == "riscv32" else ARM)
    with program.device as device:
        worker = Worker()
        device.attach(worker, BASE, "worker", LINE)
        device.board.names.symbols.add(str(program.elf))
        device.counts.count_functions()
        device.counts.set_phases(())
        before = device.cycles
        with device.counts.record_timeline() as recorder:
            stop = program.run()
        assert recorder.log is not None and stop.cycles == device.cycles - before
        yield stop, recorder.log, worker


def spans(timeline: Timeline, owner: str, name: str) -> list[tuple[int, int]]:
    return [(one.start, one.end) for one in timeline.track(owner, name).slices]


def test_what_waits_and_what_interrupts(recorded: tuple[Stop, TimelineLog, Worker]) -> None:
    stop, log, worker = recorded
    timeline = timeline_of_log(log, 1_000_000)
    assert timeline.cycles == stop.cycles
    line = [(up - log.begin, down - log.begin) for up, down in
            zip(worker.raised, worker.cleared, strict=True)]  # fmt: skip
    assert spans(timeline, "interrupts", f"line {LINE}: worker") == line
    ((asleep, woken),) = spans(timeline, "core", "waiting")
    assert timeline.track("core", "waiting").slices[0].name == "asleep (WFI)"
    assert woken == line[0][0] and woken - asleep == stop.phases[0].causes["waited"]  # type: ignore[index]
    handlers = spans(timeline, "interrupts", "handlers")
    assert len(handlers) == 2
    for (entered, returned), (up, down) in zip(handlers, line, strict=True):
        assert up <= entered <= down < returned


def test_functions_are_those_of_the_counter(recorded: tuple[Stop, TimelineLog, Worker]) -> None:
    stop, log, _ = recorded
    slices = timeline_of_log(log, 1_000_000).track("core", "functions").slices
    own: dict[str, int] = {}
    for one in slices:
        own[one.name] = own.get(one.name, 0) + int(one.args["self_cycles"])
    counted = {one.name or "(no function)": one.cycles for one in stop.phases[0].functions}
    assert own == counted
    assert [one.name for one in slices if one.name != "(no function)"] == [
        *("start", "handler", "handler", "leaf")
    ]
    (start,) = [one for one in slices if one.name == "start"]
    assert all(start.start <= one.start < one.end <= start.end for one in slices)
