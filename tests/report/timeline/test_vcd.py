"""`covp run --vcd`: read by vcdvcd, the accesses are those that the peripheral was given."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from covp.device.virtual import VirtualDevice
from covp.hardware.peripheral import Peripheral
from covp.hardware.registers import Register, RegisterMap
from covp.report.timeline import write_vcd
from tests.conftest import load

_on_broken_pipe = signal.getsignal(signal.SIGPIPE)
vcdvcd = pytest.importorskip("vcdvcd", reason="vcdvcd is not installed: no reader")
# it sets the default, with which a closed socket ends the process
signal.signal(signal.SIGPIPE, _on_broken_pipe)
BASE = 0x50000000


@dataclass(frozen=True)
class Beat:
    """An access, as the peripheral sees it and as a bus does."""

    address: int
    size: int
    value: int
    is_store: bool


class Noted(Peripheral):
    """Notes each access with its cycle; a load of SLOW takes 37 cycles."""

    registers = RegisterMap(
        Register("DATA", 0x00), Register("SLOW", 0x04, on_read="wait"), Register("LINE", 0x08)
    )
    widths = frozenset({1, 2, 4})

    def __init__(self) -> None:
        self.beats: list[tuple[int, Beat]] = []
        super().__init__()

    def wait(self) -> None:
        self.clock.wait_until(self.clock.now + 37)

    def read_register(self, offset: int, size: int) -> int:
        value = super().read_register(offset, size)
        self.beats.append((self.clock.now, Beat(BASE + offset, size, value, False)))
        return value

    def write_register(self, offset: int, size: int, value: int) -> None:
        super().write_register(offset, size, value)
        if offset == 8:
            self.interrupt.set(bool(value))
        self.beats.append((self.clock.now, Beat(BASE + offset, size, value, True)))


PROGRAMS = {
    "cortex-m4": f"""
 .word 0, start + 1
start: ldr r0, =0x{BASE:08x}
 movs r1, #17
 str r1, [r0]
 strb r1, [r0, #4]
 ldr r2, [r0]
 ldrh r2, [r0]
 ldr r2, [r0, #4]
 movs r3, #3
loop: str r3, [r0]
 subs r3, #1
 bne loop
 movs r1, #1
 str r1, [r0, #8]
 nop
 str r3, [r0, #8]
end: b end
 .ltorg
""",
    "riscv32": f"""
start: li a0, 0x{BASE:08x}
 li a1, 17
 sw a1, 0(a0)
 sb a1, 4(a0)
 lw a2, 0(a0)
 lhu a2, 0(a0)
 lw a2, 4(a0)
 li a3, 3
loop: sw a3, 0(a0)
 addi a3, a3, -1
 bnez a3, loop
 li a1, 1
 sw a1, 8(a0)
 nop
 sw a3, 8(a0)
end: j end
""",
}


def beats_of(path: Path) -> list[tuple[int, Beat]]:
    """The accesses that a bus makes in the cycles of a file, with the last cycle of each."""
    signals = _signals(path)
    assert signals["bus.cycle"].size == "64" and signals["bus.addr"].size == "32"
    last = max(int(value, 2) for _, value in signals["bus.cycle"].tv)
    times = [(time, int(value, 2)) for time, value in signals["bus.cycle"].tv]
    found = []
    for cycle in range(last + 1):
        time = max(time for time, at in times if at <= cycle)
        at = {name: _at(signals[f"bus.{name}"], time) for name in
              ("addr", "wdata", "rdata", "write", "read", "size", "ready")}  # fmt: skip
        assert not (at["read"] and at["write"])
        if at["ready"] and (at["read"] or at["write"]):
            value = at["wdata"] if at["write"] else at["rdata"]
            found.append((cycle, Beat(at["addr"], at["size"], value, bool(at["write"]))))
            assert _at(signals["noted.select"], time)
    return found


def _signals(path: Path) -> dict[str, Any]:
    """By module and name, without the bits."""
    data = vcdvcd.VCDVCD(str(path))
    return {name.partition(".")[2].partition("[")[0]: data[name] for name in data.signals}


def _at(signal: Any, time: int) -> int:
    return int(signal[time], 2)


@pytest.mark.parametrize("platform", PROGRAMS)
def test_accesses_are_those_that_the_peripheral_got(platform: str, tmp_path: Path) -> None:
    program = load(platform, PROGRAMS[platform])
    device, noted = program.device, Noted()
    with device:
        device.attach(noted, BASE, "noted", irq=3)
        with device.counts.record_timeline() as recorder:
            program.run()
        assert recorder.log is not None
        write_vcd(tmp_path / "bus.vcd", recorder.log, device.platform.clock_hz)
    found = beats_of(tmp_path / "bus.vcd")
    assert [beat for _, beat in found] == [beat for _, beat in noted.beats]
    # the model wants to know the time, so each access lies at its own instruction
    ends = [at + (beat.is_store or beat.address != BASE + 4) for at, beat in noted.beats]
    assert [cycle + 1 for cycle, _ in found] == ends
    slow = next(at for at, beat in found if beat == Beat(BASE + 4, 4, 17, False))
    signals = _signals(tmp_path / "bus.vcd")
    raised = [int(value, 2) for _, value in signals["noted.irq"].tv]
    assert raised == [0, 1, 0]
    assert slow >= 36


def test_a_file_is_the_same_each_time(tmp_path: Path) -> None:
    contents = []
    for number in range(2):
        program = load("riscv32", PROGRAMS["riscv32"])
        with program.device as device:
            assert isinstance(device, VirtualDevice)
            device.attach(Noted(), BASE, "noted")
            with device.counts.record_timeline() as recorder:
                program.run()
            assert recorder.log is not None
            write_vcd(tmp_path / f"{number}.vcd", recorder.log, 3)
        contents.append((tmp_path / f"{number}.vcd").read_text())
    assert contents[0] == contents[1]
    assert "$timescale 1 ps $end" in contents[0]  # a third of a second is no number of ns
