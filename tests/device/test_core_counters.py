"""Firmware that measures itself: DWT_CYCCNT, SysTick, mcycle and minstret."""

from __future__ import annotations

from unittest import mock

import pytest

from covp.device.machine.mmio import MmioPort
from covp.errors import DeviceFault


def test_instret_and_cycle_on_riscv(program):
    text = """
start:
    nop
    csrr a0, minstret
    csrr a1, mcycle
    mul a2, a2, a2
    rdinstret a3
    rdcycle a4
    csrr a5, minstreth
end:
    j end
"""
    loaded = program("riscv32", text)
    for _ in range(2):
        before, cycles = loaded.device.instructions, loaded.device.cycles
        assert loaded.run().instructions == 7
        read = loaded.device.core.read_register
        assert read("a0") == before + 1
        assert read("a1") == cycles + 2
        assert read("a3") == before + 4
        assert read("a4") == cycles + 5
        assert read("a5") == 0


def test_counters_can_be_written(program):
    text = """
start:
    li a0, -2
    csrw minstret, a0
    csrrwi a1, minstreth, 5
    nop
    csrr a2, minstret
    csrr a3, minstreth
end:
    j end
"""
    loaded = program("riscv32", text)
    assert loaded.run().instructions == 6
    # after the write: csrw itself, csrrwi, nop retire before the read
    assert loaded.device.core.read_register("a2") == (-2 + 3) & 0xFFFFFFFF
    assert loaded.device.core.read_register("a3") == 6  # with the carry


def test_read_only_counters(program):
    loaded = program("riscv32", "start:\n nop\nbad:\n csrw cycle, a0\nend:\n j end")
    with pytest.raises(DeviceFault) as caught:
        loaded.run()
    assert (caught.value.kind, caught.value.pc) == ("illegal instruction", loaded.labels["bad"])


def test_counters_in_a_loop(program):
    text = """
start:
    li a0, 50
    rdinstret a1
loop:
    rdinstret a2
    addi a0, a0, -1
    bnez a0, loop
end:
    j end
"""
    loaded = program("riscv32", text)
    assert loaded.run().instructions == 2 + 50 * 3
    assert (
        loaded.device.core.read_register("a2") - loaded.device.core.read_register("a1")
        == 1 + 49 * 3
    )


CYCCNT = """
start:
    ldr r0, =0xe000edfc
    ldr r1, [r0]
    orr r1, #0x01000000
    str r1, [r0]
    ldr r0, =0xe0001000
    movs r1, #0
    str r1, [r0, #4]
    movs r1, #1
    str r1, [r0]
    nop  // a load directly after a store waits for it
    ldr r2, [r0, #4]
    nop
    nop
    nop
    nop
    ldr r3, [r0, #4]
    subs r3, r2
    mov r4, #10
loop:
    subs r4, #1
    bne loop
    ldr r5, [r0, #4]
    subs r5, r2
end:
    b end
    .ltorg
"""


def test_cyccnt(program):
    loaded = program("cortex-m4", CYCCNT)
    for _ in range(2):
        loaded.run()
        assert loaded.device.core.read_register("r3") == 2 + 4
        # ldr 2, 4 nops, ldr 2, subs, mov, 10 x (subs, bne), 9 taken x 1
        assert loaded.device.core.read_register("r5") == 2 + 4 + 2 + 1 + 1 + 20 + 9


def test_no_cyccnt_on_a_small_core(program):
    loaded = program(
        "cortex-m0plus", "start:\n ldr r0, =0xe0001004\n ldr r1, [r0]\nend:\n b end\n .ltorg"
    )
    with pytest.raises(DeviceFault, match="unmapped read at address 0xe0001004"):
        loaded.run()


SYSTICK = """
start:
    ldr r0, =0xe000e010
    movs r1, #99
    str r1, [r0, #4]
    movs r1, #0
    str r1, [r0, #8]
    movs r1, #5
    str r1, [r0]
    nop
    ldr r2, [r0, #8]
    nop
    nop
    nop
    ldr r3, [r0, #8]
    subs r3, r2, r3
    movs r4, #100
loop:
    subs r4, #1
    bne loop
    ldr r5, [r0]
    lsrs r5, #16
    ldr r6, [r0]
    lsrs r6, #16
end:
    b end
    .ltorg
"""


@pytest.mark.parametrize("platform", ["cortex-m4", "cortex-m0plus"])
def test_systick(program, platform):
    loaded = program(platform, SYSTICK)
    loaded.run()
    read = loaded.device.core.read_register
    assert read("r3") == 2 + 3  # counts down: the load and three nops
    assert 90 < read("r2") < 100
    assert (read("r5"), read("r6")) == (1, 0)  # passed zero; reading clears the flag


@pytest.mark.parametrize("register", ["r4", "r12", "lr"])
def test_a_division_takes_time_by_the_operands_in_any_register(program, register):
    """A cycle for four bits of the quotient, at least that of a quotient of zero."""
    cycles = []
    for divisor in (1, 1 << 12, 1 << 31):
        loaded = program(
            "cortex-m4",
            f"start:\n ldr {register}, =0x7fffffff\n ldr r1, ={divisor}\n"
            f" udiv r0, {register}, r1\nend:\n b end\n .ltorg\n",
        )
        cycles.append(loaded.run().cycles)
        assert loaded.device.core.read_register("r0") == 0x7FFFFFFF // divisor
    assert cycles[0] > cycles[1] > cycles[2]


POLLING = """
start:
    ldr r0, =0xe000e018
    movs r2, #100
loop:
    adds r3, #1
    ldr r1, [r0]
    adds r3, #1
    ldr r1, [r0]
    subs r2, #1
    bne loop
end:
    b end
    .ltorg
"""


@pytest.mark.parametrize("platform", ["cortex-m4", "cortex-m0plus"])
def test_an_access_is_given_up_to_learn_its_time_once(program, platform):
    """Blocks end before it from then on: those that begin at start, and at loop."""
    loaded = program(platform, POLLING)
    with mock.patch.object(
        MmioPort, "mark_block_start", autospec=True, side_effect=MmioPort.mark_block_start
    ) as cut:
        loaded.run()
    assert 2 <= cut.call_count <= 4
