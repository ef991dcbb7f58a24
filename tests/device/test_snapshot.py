"""A saved state: a program that goes on from it does so as before, to the instruction and byte."""

from __future__ import annotations

import copy
import ctypes
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from unicorn import arm_const, riscv_const

from covp.chip.platform_file import load_platform
from covp.device.virtual import VirtualDevice
from covp.errors import AcceleratorError, DeviceError, DeviceFault
from covp.hardware.custom_instruction import CustomInstruction
from covp.hardware.job import PROTOCOL
from covp.hardware.job_timing import JobTiming
from covp.hardware.job_unit import AcceptedJob, JobUnit
from covp.hardware.peripheral import Peripheral
from covp.hardware.registers import Register, RegisterMap
from tests.conftest import Loaded, load

BASE, LINE = 0x50000000, 5


class Filler(JobUnit):
    """Fills 16 bytes with a value; takes 700 cycles."""

    registers = RegisterMap(*PROTOCOL, Register("OUTPUT", 0x10), Register("VALUE", 0x14))

    def accept(self) -> AcceptedJob:
        value = np.full(4, self.values["VALUE"], "<u4")
        return AcceptedJob(JobTiming(700, 0), self.values["OUTPUT"], value)


VECTORS = {15: "tick + 1", 16 + LINE: "handler + 1"}
ARM = f"""
vectors:
{chr(10).join(f" .word {VECTORS.get(n, 0)}" for n in range(32))}
start:
    ldr r0, =0xe000ed88
    ldr r1, =0xf00000
    str r1, [r0]
    ldr r0, =0xe000e100
    movs r1, #{1 << LINE}
    str r1, [r0]
    ldr r0, =0xe000e010
    ldr r1, =331
    str r1, [r0, #4]
    movs r1, #7
    str r1, [r0]
    ldr r6, =0x{BASE:08x}
    ldr r4, =0x20004000
    movs r5, #0
    movs r7, #0
    vmov.f32 s0, #1.5
    vmov.f32 s1, #0.5
job:
    add r0, r4, #64
    str r0, [r6, #16]
    str r5, [r6, #20]
    movs r0, #1
    str r0, [r6, #8]
    str r0, [r6]
loop:
    bl work
    adds r5, #1
    ands r0, r5, #63
    bne loop
    wfi
    cmp r5, #512
    bne job
end:
    b end
work:
    vadd.f32 s1, s1, s0
    lsls r0, r5, #2
    and r0, r0, #127
    str r7, [r4, r0]
    bx lr
tick:
    adds r7, #1
    bx lr
handler:
    movs r0, #3
    str r0, [r6, #8]
    ldr r1, [r4, #64]
    add r7, r7, r1
    bx lr
    .ltorg
"""
RISCV = """
.macro mix rd, rs1, rs2
    .insn r 0x0b, 0, 0, \\rd, \\rs1, \\rs2
.endm
start:
    la t0, handler
    csrw mtvec, t0
    li t0, 0x800
    csrs mie, t0
    csrsi mstatus, 8
    lui s0, 0x50000
    li s1, 0x80004000
    li s2, 0
job:
    addi a0, s1, 64
    sw a0, 16(s0)
    sw s2, 20(s0)
    li a0, 1
    sw a0, 8(s0)
    sw a0, 0(s0)
loop:
    jal work
    addi s2, s2, 1
    andi a0, s2, 63
    bnez a0, loop
2:  lw a0, 4(s0)
    andi a0, a0, 1
    bnez a0, 2b
    li a0, 512
    bne s2, a0, job
end:
    j end
work:
    mix a1, s2, s3
    mix zero, s2, s3
    csrr a2, mcycle
    slli a3, s2, 2
    andi a3, a3, 60
    add a3, a3, s1
    sw a1, 0(a3)
    sw a2, 128(a3)
    ret
    .balign 4
handler:
    li t0, 3
    sw t0, 8(s0)
    lw t1, 64(s1)
    add s3, s3, t1
    mret
"""
MIX = CustomInstruction(
    "mix", 0, 0, lambda a, b: 0, "return state->word[0] = state->word[0] * 31 + (a ^ b);", cycles=3
)
PROGRAMS = {"cortex-m4": ARM, "cortex-m33": ARM, "riscv32": RISCV}
FLOATS = {
    "arm": [f"UC_ARM_REG_S{n}" for n in (0, 1)] + ["UC_ARM_REG_FPSCR", "UC_ARM_REG_PRIMASK"],
    "riscv": ["UC_RISCV_REG_MSTATUS", "UC_RISCV_REG_MEPC", "UC_RISCV_REG_MIE"],
}


@dataclass
class Rig:
    """A device with the program and a unit; `pc` is where it goes on."""

    loaded: Loaded
    unit: Filler
    pc: int

    @property
    def device(self) -> VirtualDevice:
        return self.loaded.device

    def advance(self, instructions: int) -> None:
        """So many more, roughly; nothing when the program has ended."""
        end = self.loaded.labels["end"]
        try:
            self.device.execute(self.pc, end, max_instructions=instructions)
            self.pc = end
        except DeviceFault as fault:
            assert fault.kind == "timeout" and fault.pc is not None, fault
            self.pc = fault.pc

    def seen(self) -> dict[str, Any]:
        """All that the program, a debugger and the runtime can see."""
        device = self.device
        constants: Any = arm_const if device.core.thumb else riscv_const
        special = FLOATS[device.platform.core.architecture]
        return {
            "pc": self.pc,
            "memory": [memory.content.tobytes() for memory in device.board.memories],
            "registers": device.core.registers(),
            "special": [device.core.engine.reg_read(getattr(constants, name)) for name in special],
            "totals": (device.instructions, device.cycles, device.clock.skipped),
            "phases": device.counts.phases().counts(),
            "phase": device.clock.phase(),
            "next": device.clock.next_event,
            "values": {name: dict(model.values) for name, (_, model) in device.peripherals.items()},
            "jobs": [(job.start, job.end, job.waited) for job in self.unit.jobs],
            "uses": device.board.instruction_uses("mix") if not device.core.thumb else {},
            "csr": [device.core.csrs.read(number) for number in (0xB00, 0xB02, 0x344)],
        }


@cache
def rig(platform: str) -> Rig:
    """Kept for all examples: that also tries states that are loaded over quite other ones."""
    loaded = load(platform, PROGRAMS[platform])
    unit = Filler()
    loaded.device.attach(unit, BASE, "filler", LINE)
    if platform == "riscv32":
        loaded.device.board.add_instructions("mix", [MIX])
    loaded.device.counts.set_phases([(loaded.labels["work"], 1), (loaded.labels["job"], 2)])
    return Rig(loaded, unit, loaded.labels["start"])


@pytest.fixture(scope="module", autouse=True)
def close() -> Iterator[None]:
    yield
    for platform in PROGRAMS:
        rig(platform).device.close()
    rig.cache_clear()


@pytest.mark.parametrize("platform", PROGRAMS)
@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(first=st.integers(0, 9000), second=st.integers(1, 9000), between=st.integers(0, 3000))
def test_going_on_from_a_state_is_repeatable(
    platform: str, first: int, second: int, between: int
) -> None:
    one = rig(platform)
    one.device.reset()
    one.pc = one.loaded.labels["start"]
    one.advance(first)
    state, pc = one.device.board.save_state(), one.pc
    at_save = one.seen()
    one.advance(second)
    expected = one.seen()
    one.advance(between)
    for _ in range(2):
        one.device.board.load_state(state)
        one.pc = pc
        assert one.seen() == at_save
        one.advance(second)
        assert one.seen() == expected


@pytest.mark.parametrize("platform", PROGRAMS)
def test_a_state_holds_a_job_under_way(platform: str) -> None:
    """The job that is saved half done is done again after each load, and noted once."""
    one = rig(platform)
    one.device.reset()
    one.unit.forget_jobs()
    one.pc = one.loaded.labels["start"]
    while not one.unit.get("STATUS", "BUSY"):
        one.advance(1)
    state, pc = one.device.board.save_state(), one.pc
    for _ in range(3):
        one.device.board.load_state(state)
        one.pc = pc
        assert one.unit.get("STATUS", "BUSY") == 1 and one.unit.jobs == []
        while one.pc != one.loaded.labels["end"]:
            one.advance(100_000)
        assert len(one.unit.jobs) == 8


def test_code_that_was_overwritten_after_saving_runs_as_saved() -> None:
    loaded = load("riscv32", "start:\n li a0, 1\nend:\n j end\nother:\n li a0, 2\n")
    start, device = loaded.labels["start"], loaded.device
    with device:  # a trace goes on after a load, so that it does not add up to the totals
        state, code = device.board.save_state(), device.read(start, 2)
        device.write(start, device.read(loaded.labels["other"], 2))
        loaded.run()
        assert device.core.read_register("a0") == 2
        device.board.load_state(state)
        assert device.read(start, 2) == code
        loaded.run()
        assert device.core.read_register("a0") == 1


class Odd(Peripheral):
    """Holds what cannot be copied."""

    def __init__(self) -> None:
        self.handle = ctypes.pointer(ctypes.c_int())
        super().__init__()


def test_states_that_cannot_be_saved_or_loaded() -> None:
    with VirtualDevice(load_platform("riscv32")) as device:
        state = device.board.save_state()
        device.attach(Filler(), BASE, "filler")
        with pytest.raises(DeviceError, match=r"saved with the peripherals uart0, now .* filler"):
            device.board.load_state(state)
        device.board.detach("filler")
        device.board.add_instructions("mix", [MIX])
        with pytest.raises(DeviceError, match=r"saved with the units none .* mix"):
            device.board.load_state(state)
        device.board.remove_instructions("mix")
        device.board.load_state(state)
        with pytest.raises(DeviceError, match="state was not saved by a virtual device"):
            device.board.load_state({})
        device.attach(Odd(), BASE, "odd")
        with pytest.raises(AcceleratorError, match="odd: its state cannot be copied"):
            device.board.save_state()
    with pytest.raises(DeviceError, match="closed"):
        device.board.save_state()


class Linked(Peripheral):
    """Refers to itself, its clock and a callback."""

    def __init__(self, on_change: Callable[[int], None]) -> None:
        self.on_change = on_change
        self.history: list[int] = []
        self.me = [self]
        super().__init__()


def test_a_models_references_stay_and_its_data_is_copied() -> None:
    class Listener:
        def hear(self, value: int) -> None:
            self.value = value

    listener = Listener()
    with VirtualDevice(load_platform("riscv32")) as device:
        model = Linked(listener.hear)
        device.attach(model, BASE, "linked")
        event = device.clock.at(100, lambda: None)
        model.history.append(1)
        state = device.board.save_state()
        model.history.append(2)
        model.extra = event  # type: ignore[attr-defined]
        event.cancel()
        device.board.load_state(state)
        assert model.history == [1] and not hasattr(model, "extra")
        assert model.me == [model] and model.clock is device.clock
        model.on_change(5)
        assert listener.value == 5
        assert not event.cancelled and device.clock.next_event == 100
        assert copy.deepcopy(event) is event
