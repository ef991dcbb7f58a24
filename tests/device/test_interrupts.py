"""Interrupts: entry, return, priorities, sleeping; a job's time on the core's own counter."""

from __future__ import annotations

import pytest

from covp.chip.platform_file import load_platform
from covp.device.virtual import VirtualDevice
from covp.errors import DeviceFault, PlatformError
from covp.hardware.peripheral import Peripheral
from covp.hardware.registers import Field, Register, RegisterMap

ARM = ["cortex-m0plus", "cortex-m4", "cortex-m7", "cortex-m33"]
BASE, LINE = 0x50000000, 5


class Worker(Peripheral):
    """A job of JOB cycles: DONE and the line go up at its end; STALL lets the bus wait for it."""

    registers = RegisterMap(
        Register("JOB", 0x00, on_write="start"),
        Register(
            "STATUS",
            0x04,
            fields=[Field("BUSY", 0, access="ro"), Field("DONE", 1, access="w1c")],
            on_write="acknowledge",
            on_read="wait",
        ),
        Register("STALL", 0x08, on_write="stall"),
    )

    def start(self, value: int) -> None:
        self.done_at = self.clock.now + value
        self.set("STATUS", "BUSY", 1)
        self.clock.at(self.done_at, self.finish)

    def finish(self) -> None:
        self.set("STATUS", "BUSY", 0)
        self.set("STATUS", "DONE", 1)
        self.interrupt.set(True)

    def wait(self) -> None:
        """Who asks waits for the end anyway: the time is skipped."""
        if self.get("STATUS", "BUSY"):
            self.clock.wait_until(self.done_at)
            self.clock.run_due()

    def acknowledge(self, value: int) -> None:
        if value & 2:
            self.interrupt.set(False)

    def stall(self, value: int) -> None:
        self.clock.wait_until(self.clock.now + value)


def arm(body: str, handler: str = "") -> str:
    """A vector table before ``start``, and a handler for line 5 that counts in r7."""
    vectors = "\n".join(f" .word {'handler + 1' if n == 16 + LINE else 0}" for n in range(16 + 8))
    return f"""
vectors:
{vectors}
start:
    ldr r6, =0x{BASE:08x}
    ldr r0, =0xe000e100
    movs r1, #{1 << LINE}
    str r1, [r0]
    movs r7, #0
{body}
end:
    b end
handler:
    adds r7, #1
    movs r0, #2
    str r0, [r6, #4]
{handler}
    bx lr
    .ltorg
"""


RISCV = """
start:
    la t0, handler
    csrw mtvec, t0
    lui s0, 0x50000
    li s1, 0
    li t0, 0x800
    csrs mie, t0
    csrsi mstatus, 8
@body
end:
    j end
    .balign 4
handler:
    addi s1, s1, 1
    li t0, 2
    sw t0, 4(s0)
    csrr s2, mcause
    csrr s3, mepc
    mret
"""


def attach(loaded):
    worker = Worker()
    loaded.device.attach(worker, BASE, "worker", LINE)
    return worker


@pytest.mark.parametrize("platform", ARM)
def test_a_loop_is_interrupted_and_goes_on(program, platform):
    loaded = program(
        platform,
        arm("""
    ldr r4, =500
    str r4, [r6]
    movs r1, #11
    movs r2, #22
    movs r3, #33
    movs r5, #0
loop:
    adds r5, #1
    cmp r7, #0
    beq loop
"""),
    )
    attach(loaded)
    sp = loaded.device.core.read_register("sp")
    stop = loaded.run()
    read = loaded.device.core.read_register
    assert read("r7") == 1
    assert [read(f"r{n}") for n in (1, 2, 3)] == [11, 22, 33]
    assert read("sp") == sp and read("xpsr") & 0x1FF == 0
    # two cycles or more an instruction: the loop ran for the job's time and not much longer
    assert 500 < stop.cycles < 700
    assert 50 < read("r5") < 500


def test_a_loop_is_interrupted_on_riscv(program):
    body = """
    li t1, 500
    sw t1, 0(s0)
    li a0, 0
loop:
    addi a0, a0, 1
    beqz s1, loop
"""
    loaded = program("riscv32", RISCV.replace("@body", body))
    attach(loaded)
    stop = loaded.run()
    read = loaded.device.core.read_register
    assert (read("s1"), read("s2")) == (1, 0x8000000B)
    assert loaded.labels["loop"] <= read("s3") < loaded.labels["end"]
    assert 500 < stop.cycles < 700


@pytest.mark.parametrize("cycles", [1000, 10**9])
@pytest.mark.parametrize("platform", [*ARM, "riscv32"])
def test_sleeping_is_skipped(program, platform, cycles):
    text = (
        RISCV.replace("@body", f" li t1, {cycles}\n sw t1, 0(s0)\n wfi\n nop")
        if platform == "riscv32"
        else arm(f" ldr r4, ={cycles}\n str r4, [r6]\n wfi\n nop")
    )
    loaded = program(platform, text)
    attach(loaded)
    stop = loaded.run()
    assert stop.instructions < 30
    assert cycles < stop.cycles < cycles + 150
    assert loaded.device.core.read_register("s1" if platform == "riscv32" else "r7") == 1


@pytest.mark.parametrize("platform", ["cortex-m4", "riscv32"])
def test_a_sleep_that_nothing_ends(program, platform):
    text = RISCV.replace("@body", " wfi") if platform == "riscv32" else arm(" nop\nhere: wfi")
    loaded = program(platform, text)
    attach(loaded)
    with pytest.raises(DeviceFault, match="endless sleep") as caught:
        loaded.run()
    assert caught.value.pc == loaded.labels["end"] - (4 if platform == "riscv32" else 2)


@pytest.mark.parametrize("platform", ARM)
def test_primask_keeps_it_out_and_wfi_wakes_all_the_same(program, platform):
    body = """
    cpsid i
    ldr r4, =300
    str r4, [r6]
    wfi
    mov r5, r7
    cpsie i
    nop
"""
    loaded = program(platform, arm(body))
    attach(loaded)
    loaded.run()
    assert loaded.device.core.read_register("r5") == 0
    assert loaded.device.core.read_register("r7") == 1


def test_mstatus_keeps_it_out(program):
    body = """
    csrci mstatus, 8
    li t1, 300
    sw t1, 0(s0)
    wfi
    mv a0, s1
    csrr a1, mip
    csrsi mstatus, 8
    nop
    csrr a2, mip
"""
    loaded = program("riscv32", RISCV.replace("@body", body))
    attach(loaded)
    loaded.run()
    read = loaded.device.core.read_register
    assert (read("a0"), read("s1"), read("a1"), read("a2")) == (0, 1, 0x800, 0)


def test_more_urgent_ones_interrupt_handlers_and_others_wait(program):
    """PendSV (lowest), line 5 above it; the order is noted in memory."""
    vectors = {14: "pendsv + 1", 16 + LINE: "handler + 1"}
    table = "\n".join(f" .word {vectors.get(n, 0)}" for n in range(24))
    text = f"""
vectors:
{table}
start:
    ldr r6, =0x{BASE:08x}
    ldr r4, =0x20000100
    ldr r0, =0xe000e100
    movs r1, #{1 << LINE}
    str r1, [r0]
    ldr r0, =0xe000ed20
    ldr r1, =0x00f00000
    str r1, [r0]
    ldr r0, =0xe000e400 + {LINE}
    movs r1, #0x10
    strb r1, [r0]
    ldr r0, =0xe000ed04
    ldr r1, =0x10000000
    str r1, [r0]
    nop
    nop
end:
    b end
note:
    strb r0, [r4]
    adds r4, #1
    bx lr
pendsv:
    push {{lr}}
    movs r0, #1
    bl note
    movs r0, #100
    str r0, [r6]
    mov r5, r0
spin:
    subs r5, #1
    bne spin
    movs r0, #2
    bl note
    pop {{pc}}
handler:
    push {{lr}}
    movs r0, #3
    bl note
    movs r0, #2
    str r0, [r6, #4]
    pop {{pc}}
    .ltorg
"""
    loaded = program("cortex-m4", text)
    attach(loaded)
    loaded.run()
    # r4 is the callee's to keep: handlers change it for all
    assert loaded.device.read(0x20000100, 3) == bytes([1, 3, 2])


def test_floating_point_registers_are_kept(program):
    body = """
    ldr r0, =0xe000ed88
    ldr r1, =0xf00000
    str r1, [r0]
    vmov.f32 s0, #1.5
    vmov.f32 s15, #2.5
    vadd.f32 s1, s0, s15
    ldr r4, =100
    str r4, [r6]
loop:
    vadd.f32 s1, s1, s0
    cmp r7, #0
    beq loop
"""
    handler = " vmov.f32 s0, #-3.0\n vmov.f32 s15, #-3.0\n vmov.f32 s1, #-1.0"
    loaded = program("cortex-m4", arm(body, handler))
    attach(loaded)
    from unicorn import arm_const

    loaded.run()
    engine = loaded.device.core.engine
    assert engine.reg_read(arm_const.UC_ARM_REG_S0) == 0x3FC00000
    assert engine.reg_read(arm_const.UC_ARM_REG_S15) == 0x40200000
    assert engine.reg_read(arm_const.UC_ARM_REG_S1) >> 31 == 0


def test_systick_ticks(program):
    vectors = "\n".join(f" .word {'tick + 1' if n == 15 else 0}" for n in range(16))
    text = f"""
vectors:
{vectors}
start:
    ldr r0, =0xe000e010
    ldr r1, =999
    str r1, [r0, #4]
    movs r7, #0
    str r7, [r0, #8]
    movs r1, #7
    str r1, [r0]
sleep:
    wfi
    cmp r7, #5
    bne sleep
end:
    b end
tick:
    adds r7, #1
    bx lr
    .ltorg
"""
    loaded = program("cortex-m0plus", text)
    stop = loaded.run()
    assert loaded.device.core.read_register("r7") == 5
    assert 5000 <= stop.cycles < 5100


MODES = {
    "polling": ("str r4, [r6]\n1: ldr r0, [r6, #4]\n lsrs r0, r0, #2\n bcc 1b",
                "sw t1, 0(s0)\n1: lw t2, 4(s0)\n andi t2, t2, 2\n beqz t2, 1b"),
    "sleeping": ("str r4, [r6]\n wfi", "sw t1, 0(s0)\n wfi"),
    "stalled": ("str r4, [r6, #8]", "sw t1, 8(s0)"),
}  # fmt: skip


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("platform", ["cortex-m4", "cortex-m7", "riscv32"])
def test_a_job_moves_the_cores_own_counter_by_its_cycles(program, platform, mode):
    """The conformance test: N cycles and a constant, whatever the way of waiting."""
    taken = []
    for cycles in (100, 1000, 50_000, 3_000_000):
        if platform == "riscv32":
            job = MODES[mode][1]
            body = " csrci mstatus, 8\n"
            body += f" li t1, {cycles}\n csrr a0, mcycle\n {job}\n csrr a1, mcycle"
            loaded = program(platform, RISCV.replace("@body", body))
            registers = "a0", "a1"
        else:
            job = MODES[mode][0]
            body = f"""
    cpsid i
    ldr r5, =0xe0001000
    movs r0, #1
    str r0, [r5]
    movw r4, #{cycles & 0xFFFF}  // the same code for all of them
    movt r4, #{cycles >> 16}
    ldr r2, [r5, #4]
    {job}
    ldr r3, [r5, #4]
"""
            loaded = program(platform, arm(body))
            registers = "r2", "r3"
        attach(loaded)
        loaded.run()
        before, after = (loaded.device.core.read_register(name) for name in registers)
        taken.append(after - before - cycles)
    assert len(set(taken)) == 1, taken
    assert 0 <= taken[0] < 40


def test_a_line_that_a_small_core_does_not_have_is_refused():
    with VirtualDevice(load_platform("cortex-m0plus")) as device:
        device.attach(Worker(), BASE, "last", 31)
        with pytest.raises(PlatformError, match="a cortex-m0plus has 32 interrupt lines"):
            device.attach(Worker(), BASE + 0x1000, "beyond", 32)
