"""Exact counting where a naive block counter is wrong, one test a case."""

from __future__ import annotations

import os
import signal
import struct
import threading

import pytest

import covp.device.machine.execution as execution
import covp.device.machine.mmio as mmio
from covp.chip.platform_file import load_platform
from covp.device.virtual import VirtualDevice
from covp.errors import DeviceError, DeviceFault
from covp.hardware.peripheral import Peripheral
from covp.hardware.registers import Register, RegisterMap

BASE = 0x50080000


class Sink(Peripheral):
    """Remembers every store; reads give the number of stores."""

    registers = RegisterMap(
        Register("DATA", 0, on_write="take", on_read="give"),
        Register("TIME", 4, access="ro", on_read="tell"),
    )

    def reset(self):
        super().reset()
        self.taken = []
        self.action = None

    def take(self, value):
        self.taken.append(value)
        if self.action:
            self.action()

    def give(self):
        self.values["DATA"] = len(self.taken)

    def tell(self):
        self.values["TIME"] = self.clock.now


def with_sink(loaded):
    sink = Sink()
    loaded.device.attach(sink, BASE, "sink")
    return sink


ARM_LOOP = """
start:
    movs r0, #0
loop:
    adds r0, #1
    cmp r0, #100
    bne loop
end:
    b end
"""
RISCV_LOOP = """
start:
    li a0, 0
    li a1, 100
loop:
    addi a0, a0, 1
    bne a0, a1, loop
end:
    j end
"""


@pytest.mark.parametrize(
    ("platform", "text", "count"),
    [("cortex-m4", ARM_LOOP, 301), ("cortex-m0plus", ARM_LOOP, 301), ("riscv32", RISCV_LOOP, 202)],
)
def test_loop(program, platform, text, count):
    loaded = program(platform, text)
    first, second = loaded.run(), loaded.run()
    assert first.instructions == count
    assert second == first
    assert loaded.device.instructions == 2 * count


@pytest.mark.parametrize("slice_length", [1, 2, 7, 50])
@pytest.mark.parametrize(
    ("platform", "text", "count"), [("cortex-m4", ARM_LOOP, 301), ("riscv32", RISCV_LOOP, 202)]
)
def test_stops_between_blocks_do_not_count(
    program, monkeypatch, platform, text, count, slice_length
):
    monkeypatch.setattr(execution, "SLICE", slice_length)
    assert program(platform, text).run().instructions == count


def test_stops_around_it_blocks(program, monkeypatch):
    text = """
start:
    movs r0, #0
    movs r1, #0
loop:
    adds r0, #1
    tst r0, #1
    itte eq
    addeq r1, #1
    addeq r1, #1
    addne r1, #3
    cmp r0, #20
    bne loop
end:
    b end
"""
    # an IT block's skipped instructions issue and count, as on QEMU
    whole = 2 + 20 * 8
    assert program("cortex-m4", text).run().instructions == whole
    monkeypatch.setattr(execution, "SLICE", 3)
    sliced = program("cortex-m4", text)
    assert sliced.run().instructions == whole
    assert sliced.device.core.read_register("r1") == 10 * 2 + 10 * 3


def test_fault_in_mid_block(program):
    loaded = program(
        "cortex-m4",
        "start:\n movs r1, #0\n nop\n nop\nbad:\n ldr r0, [r1]\n nop\n nop\nend:\n b end",
    )
    with pytest.raises(DeviceFault) as caught:
        loaded.run()
    assert caught.value.pc == loaded.labels["bad"]
    assert loaded.device.instructions == 3


def test_fault_in_mid_block_riscv(program):
    loaded = program(
        "riscv32", "start:\n li a1, 0\n nop\n nop\nbad:\n lw a0, 0(a1)\n nop\n nop\nend:\n j end"
    )
    with pytest.raises(DeviceFault) as caught:
        loaded.run()
    assert caught.value.pc == loaded.labels["bad"]
    assert loaded.device.instructions == 3


STORES = {
    "cortex-m4": """
start:
    ldr r1, =0x50080000
    movs r0, #0
loop:
    adds r0, #1
    str r0, [r1]
    adds r2, #1
    cmp r0, #10
    bne loop
end:
    b end
    .ltorg
""",
    "riscv32": """
start:
    lui a1, 0x50080
    li a0, 0
    li a2, 10
loop:
    addi a0, a0, 1
    sw a0, 0(a1)
    addi a3, a3, 1
    bne a0, a2, loop
end:
    j end
""",
}
STORES_COUNT = {"cortex-m4": 2 + 10 * 5, "riscv32": 3 + 10 * 4}


@pytest.mark.parametrize("platform", STORES)
def test_stop_in_a_store_to_a_device_writes_it_once(program, monkeypatch, platform):
    monkeypatch.setattr(mmio, "_ACCESSES_PER_CHECK", 1)
    loaded = program(platform, STORES[platform])
    sink = with_sink(loaded)
    pc, stops = loaded.labels["start"], 0
    while True:
        try:
            loaded.device.execute(pc, loaded.labels["end"], timeout=-1.0)
            break
        except DeviceFault as fault:
            assert fault.kind == "timeout"
            pc, stops = fault.pc, stops + 1
    assert sink.taken == list(range(1, 11))
    assert stops >= 9
    assert loaded.device.instructions == STORES_COUNT[platform]


@pytest.mark.parametrize("platform", STORES)
def test_a_model_that_raises_stops_at_the_store(program, platform):
    loaded = program(platform, STORES[platform])
    sink = with_sink(loaded)

    def fail():
        if len(sink.taken) == 4:
            raise sink.fault("full")

    sink.action = fail
    with pytest.raises(DeviceFault, match="sink: full") as caught:
        loaded.run()
    assert sink.taken == [1, 2, 3, 4]
    head = STORES_COUNT[platform] // 10 * 3 + STORES_COUNT[platform] % 10
    assert loaded.device.instructions == head + 1  # the store itself did not retire
    assert caught.value.registers["pc"] == caught.value.pc


def test_time_is_exact_inside_a_block(program):
    text = """
start:
    ldr r1, =0x50080000
    nop
    nop
    ldr r2, [r1, #4]
    nop
    ldr r3, [r1, #4]
    nop
    nop
end:
    b end
    .ltorg
"""
    loaded = program("cortex-m0plus", text)
    with_sink(loaded)
    for _ in range(3):
        start = loaded.device.cycles
        assert loaded.run().instructions == 8
        assert loaded.device.core.read_register("r2") - start == 2 + 1 + 1
        assert loaded.device.core.read_register("r3") - start == 2 + 1 + 1 + 2 + 1


def test_writing_the_pc_from_a_model_is_refused(program):
    loaded = program("riscv32", STORES["riscv32"])
    sink = with_sink(loaded)
    sink.action = lambda: loaded.device.core.write_register("pc", 0)
    with pytest.raises(DeviceError, match="pc"):
        loaded.run()


def test_waiting_adds_cycles_and_no_instructions(program):
    loaded = program("riscv32", STORES["riscv32"])
    plain = program("riscv32", STORES["riscv32"])
    with_sink(plain)
    sink = with_sink(loaded)
    sink.action = lambda: sink.clock.wait_until(sink.clock.now + 1000)
    waited, quick = loaded.run(), plain.run()
    assert waited.instructions == quick.instructions
    assert waited.cycles == quick.cycles + 10 * 1000


def test_hints_on_arm(program):
    loaded = program("cortex-m4", "start:\n nop\n wfe\n nop\n nop\nend:\n b end")
    assert loaded.run().instructions == 4


NOPS = "start:\n nop\n nop\nmiddle:\n nop\n nop\nlater:\n nop\nend:\n{jump} end"


@pytest.mark.parametrize(("platform", "jump"), [("cortex-m4", "b"), ("riscv32", "j")])
def test_two_stops_for_one_start(program, platform, jump):
    loaded = program(platform, NOPS.format(jump=jump))
    runs = ["end", "middle", "later", "end", "middle", "end"]
    assert [loaded.run(stop=stop).instructions for stop in runs] == [5, 2, 4, 5, 2, 5]
    assert loaded.device.instructions == 23


@pytest.mark.parametrize(("platform", "jump"), [("cortex-m4", "b"), ("riscv32", "j")])
def test_a_stop_inside_a_cached_block(program, platform, jump):
    loaded = program(platform, NOPS.format(jump=jump))
    assert loaded.run(stop="end").instructions == 5
    stop = loaded.run(stop="middle")
    assert (stop.pc, stop.instructions) == (loaded.labels["middle"], 2)


def test_code_changed_by_the_host(program):
    loaded = program("cortex-m4", "start:\n nop\n nop\n nop\n nop\nend:\n b end")
    assert loaded.run().instructions == 4
    # movw r0, #1 is one instruction where two nops were
    loaded.device.write(loaded.labels["start"], struct.pack("<HH", 0xF240, 0x0001))
    assert loaded.run().instructions == 3
    assert loaded.device.core.read_register("r0") == 1


SELF_MODIFYING = {
    "cortex-m4": """
start:
    ldr r0, =0x0501f240
    ldr r1, =patch
    movs r2, #2
again:
    bl code
    str r0, [r1]
    subs r2, #1
    bne again
end:
    b end
code:
    nop
patch:
    nop
    nop
    bx lr
    .balign 4
    .ltorg
""",
    "riscv32": """
start:
    li t0, 0x00100513
    la t1, patch
    li t2, 2
again:
    jal code
    sw t0, 0(t1)
    fence.i
    addi t2, t2, -1
    bnez t2, again
end:
    j end
    .balign 4
code:
    nop
    nop
patch:
    nop
    nop
    ret
""",
}


@pytest.mark.parametrize(("platform", "start_cost"), [("cortex-m4", 3), ("riscv32", 5)])
def test_code_that_changes_itself(program, platform, start_cost):
    """Two nops become one instruction of four bytes: the same address and size, another count."""
    base = 0x20001000 if platform == "cortex-m4" else 0x80001000
    loaded = program(platform, SELF_MODIFYING[platform], base)
    arm = platform == "cortex-m4"
    body = 4 if arm else 5  # of the code before it is changed
    loop = 4 if arm else 5
    assert loaded.run().instructions == start_cost + loop + body + loop + body - 1
    assert loaded.device.core.read_register("r5" if arm else "a0") == 1
    # the first block of a later run is looked at afresh, too
    assert loaded.device.execute(
        loaded.labels["code"], loaded.labels["patch"] + 4
    ).instructions == (2 if arm else 3)


def test_blocks_that_cross_pages_and_are_very_long(program):
    text = "start:\n" + " nop\n" * 3000 + "end:\n b end"
    assert program("cortex-m4", text).run().instructions == 3000
    assert program("riscv32", text.replace("b end", "j end")).run().instructions == 3000


def test_instruction_limit_does_not_depend_on_the_host(program):
    loaded = program("riscv32", "start:\n j start\nend:\n nop")
    with pytest.raises(DeviceFault, match="1000 instructions") as caught:
        loaded.run(max_instructions=1000)
    assert caught.value.kind == "timeout"
    assert loaded.device.instructions == 1000


@pytest.mark.parametrize(("platform", "jump"), [("cortex-m4", "b"), ("riscv32", "j")])
def test_time_limit(program, platform, jump):
    loaded = program(platform, f"start:\n {jump} start\nend:\n nop")
    with pytest.raises(DeviceFault, match="seconds of host time"):
        loaded.run(timeout=0.01)
    assert loaded.device.instructions > 0


def test_time_limit_in_a_polling_loop(program):
    loaded = program(
        "riscv32", "start:\n lui a1, 0x50080\npoll:\n lw a0, 0(a1)\n beqz a0, poll\nend:\n j end"
    )
    with_sink(loaded)
    with pytest.raises(DeviceFault, match="seconds of host time") as caught:
        loaded.run(timeout=0.01)
    assert caught.value.pc in (loaded.labels["poll"], loaded.labels["poll"] + 2)


@pytest.mark.skipif(os.name == "nt", reason="signals are sent otherwise")
def test_ctrl_c(program):
    loaded = program("riscv32", "start:\n addi a0, a0, 1\n j start\nend:\n nop")
    timer = threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        loaded.run(timeout=60)
    timer.join()
    # a stop lies between instructions, and the device can go on
    before = loaded.device.instructions
    assert before == 2 * loaded.device.core.read_register("a0")
    with pytest.raises(DeviceFault, match="timeout"):
        loaded.run(max_instructions=10)
    assert loaded.device.instructions == before + 10


MARKED = """
start:
    mov r4, #3
again:
    bl first
    bl second
    subs r4, #1
    bne again
end:
    b end
first:
    push {lr}
    bl inner
    bl inner
    pop {pc}
second:
    bx lr
inner:
    nop
    bx lr
"""


def test_phases_count_callees_to_the_current_one(program):
    loaded = program("cortex-m4", MARKED)
    loaded.device.counts.set_phases([(loaded.labels["first"], 1), (loaded.labels["second"] | 1, 2)])
    stop = loaded.run()
    counts = stop.phases
    # phase 1: first, its two calls of inner, and the call of second; 2: bx, subs, bne (, bl first)
    assert [count.instructions for count in counts] == [1 + 1, 3 * (8 + 1), 3 * 3 + 2]
    assert sum(count.instructions for count in counts) == stop.instructions
    assert sum(count.cycles for count in counts) == stop.cycles
    # each execution tells its own counts
    assert loaded.run() == stop


def test_blocks_add_up(program):
    loaded = program("cortex-m4", MARKED)
    stop = loaded.run()
    blocks = loaded.device.core.counter.blocks()
    assert sum(block.instructions * block.count for block in blocks) == stop.instructions
    assert sum(block.total_cycles for block in blocks) == stop.cycles
    inner = [block for block in blocks if block.address == loaded.labels["inner"]]
    assert [(block.instructions, block.count) for block in inner] == [(2, 6)]


def test_a_fault_counts_the_code_that_is_there_now():
    """Two instructions of two bytes are replaced by one of four, before a load that faults."""
    with VirtualDevice(load_platform("riscv32")) as device:
        start = device.platform.flash.start
        device.core.write_register("a4", 0x60000000)
        for before, count in (("01000100", 2), ("13000000", 1), ("01000100", 2)):
            device.write(start, bytes.fromhex(before + "03250700"))  # lw a0, 0(a4)
            counted = device.instructions
            with pytest.raises(DeviceFault, match="unmapped read"):
                device.execute(start, start + 8)
            assert device.instructions - counted == count
