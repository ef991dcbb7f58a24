"""A job or a custom instruction of N cycles moves a core by N and a constant, RTL as emulated."""

from __future__ import annotations

import pytest

from covp.chip.platform_file import load_platform
from covp.device.rtl.device import RtlDevice
from covp.device.virtual import VirtualDevice
from covp.hardware.custom_instruction import CustomInstruction
from tests.conftest import load
from tests.device.rtl.conftest import need_rtl
from tests.device.test_interrupts import MODES, Worker

UNIT = 0xF0000000
LENGTHS = (2, 10, 1000)
FEW, MANY = 10, 60
ROUND = " {instruction}\n addi s1, s1, -1\n bnez s1, 1b\n"


def more_than_a_job(core: str, mode: str) -> list[list[int]]:
    """Cycles of a program but those of its job, on both devices."""
    found = []
    for make in (VirtualDevice, RtlDevice):
        rest = []
        for cycles in LENGTHS:
            text = f"start:\n li s0, {UNIT:#x}\n li t1, {cycles}\n {MODES[mode][1]}\nend:\n j end\n"
            made = load(core, text, device=make(load_platform(core)))  # type: ignore[arg-type]
            with made.device as device:
                device.attach(Worker(), UNIT, "worker")
                rest.append((made.run().cycles or 0) - cycles)
        found.append(rest)
    return found


@pytest.mark.parametrize("mode", ["polling", "stalled"])
def test_a_job(cv32e40p, mode):
    emulated, rtl = more_than_a_job(cv32e40p, mode)
    assert emulated == rtl
    assert len({*rtl}) == 1


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["polling", "stalled"])
@pytest.mark.parametrize("core", ["ibex", "ibex-small", "picorv32", "serv"])
def test_a_job_on_other_cores(core, mode):
    """The constant is the same; PicoRV32 and SERV poll for longer than a short job takes."""
    need_rtl(core)
    emulated, rtl = more_than_a_job(core, mode)
    assert rtl == emulated


def cycles_of_a_round(make: type, length: int, after: str) -> float:
    """Of a loop with a custom instruction, when the caches are warm."""
    core, totals = "vexriscv-cfu", []
    one = CustomInstruction("sum", 1, 2, lambda a, b: a + b, "a + b", cycles=length)
    body = ROUND.format(instruction=f".word {one.encode(12, 10, 11):#x}\n {after}")
    for rounds in (FEW, MANY):
        text = f"start:\n li s1, {rounds}\n j 1f\n .balign 32\n1:\n{body}\nend:\n j end\n"
        made = load(core, text, device=make(load_platform(core)))
        with made.device as device:
            hardware = device.abilities.hardware
            assert hardware is not None
            hardware.add_instructions("unit", [one])
            totals.append(made.run().cycles or 0)
    return (totals[1] - totals[0]) / (MANY - FEW)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("after", "port"), [("nop", 1), ("add a3, a2, a2", 2)], ids=["unused", "used at once"]
)
def test_a_custom_instruction(after, port):
    """The port adds a cycle after a taken branch, and one where the result is used at once."""
    need_rtl("vexriscv-cfu")
    for length in LENGTHS:
        emulated = cycles_of_a_round(VirtualDevice, length, after)
        assert emulated == length + 4
        assert cycles_of_a_round(RtlDevice, length, after) == emulated + port
