"""A stack overflow is one where the stack pointer says so, not any access below the RAM."""

import pytest

from .test_faults import RISCV, fault_of

RAM, STACK = 0x80000000, 4096


@pytest.mark.parametrize("below", [4, 64, 4096, 0x8000])
@pytest.mark.parametrize("sp", [RAM + STACK, RAM + STACK // 2, RAM + 512])
def test_a_wild_pointer_below_the_ram(program, below, sp):
    loaded = program("riscv32", RISCV.format("sw a0, 0(a1)"))
    loaded.device.core.write_register("a1", RAM - below)
    loaded.device.core.write_register("sp", sp)
    fault = fault_of(loaded)
    assert fault.kind == "unmapped write"
    assert f"{below} bytes below" in str(fault)


@pytest.mark.parametrize("instruction", ["sw a0, -4(sp)", "sw a0, 0(sp)", "lw a0, -64(sp)"])
@pytest.mark.parametrize("sp", [RAM - 4096, RAM - 16])
def test_a_stack_that_ran_over(program, instruction, sp):
    loaded = program("riscv32", RISCV.format(instruction))
    loaded.device.core.write_register("sp", sp)
    assert fault_of(loaded).kind == "stack overflow"
