"""Misaligned accesses on cores that forbid them, and none reported where there is none."""

from __future__ import annotations

import pytest

from covp.errors import DeviceFault

RISCV = "start:\n {before}\nbad:\n {bad}\n nop\nend:\n j end"
ARM = "start:\n {before}\nbad:\n {bad}\n nop\nend:\n b end"


def registers(loaded):
    arm = "arm" in str(loaded.device.platform.core.architecture)
    loaded.device.core.write_register("r1" if arm else "a1", 0x20001001 if arm else 0x80001001)
    loaded.device.core.write_register("r6" if arm else "s1", 0x20001000 if arm else 0x80001000)


@pytest.mark.parametrize(
    ("before", "bad", "address", "size"),
    [
        ("nop", "lw a0, 0(a1)", 0x80001001, 4),
        ("nop", "sw a0, 1(a1)", 0x80001002, 4),
        ("nop", "lh a0, 0(a1)", 0x80001001, 2),
        ("nop", "lhu a0, 2(a1)", 0x80001003, 2),
        ("nop", "sh a0, 0(a1)", 0x80001001, 2),
        ("addi a2, s1, 2", "sw a0, 4(a2)", 0x80001006, 4),
        ("mv a2, a1", "lw a0, 8(a2)", 0x80001009, 4),
        ("lui a2, 0x80001", "lw a0, -2(a2)", 0x80000FFE, 4),
        ("addi sp, sp, -6", "sw a0, 4(sp)", 0x80000FFE, 4),
        ("add a2, a1, s1", "nop\n lw a0, 3(s1)", 0x80001003, 4),
    ],
)
def test_riscv(program, before, bad, address, size):
    loaded = program("riscv32", RISCV.format(before=before, bad=bad))
    registers(loaded)
    with pytest.raises(DeviceFault) as caught:
        loaded.run()
    fault = caught.value
    assert (fault.kind, fault.address, fault.size) == ("misaligned access", address, size)
    nops = bad.count("nop")
    assert fault.pc == loaded.labels["bad"] + 2 * nops
    assert loaded.device.instructions == 1 + nops


@pytest.mark.parametrize(
    ("before", "good"),
    [
        ("nop", "lw a0, 3(a1)"),
        ("nop", "lh a0, 1(a1)"),
        ("nop", "lb a0, 0(a1)"),
        ("andi a1, a1, -4", "lw a0, 0(a1)"),
        ("lw a1, 0(s1)\n lui a1, 0x80001", "lw a0, 0(a1)"),
        ("c.addi a1, 3", "c.lw a0, 0(a1)"),
        ("addi sp, sp, -16", "sw a0, 4(sp)\n lw a2, 4(sp)\n addi sp, sp, 16"),
        ("srli a1, a1, 2\n slli a1, a1, 2", "sh a0, 2(a1)"),
        ("sub a1, a1, a1\n lui a2, 0x80001\n add a1, a1, a2", "lw a0, 0(a1)"),
    ],
)
def test_aligned_on_riscv(program, before, good):
    loaded = program("riscv32", RISCV.format(before=before, bad=good))
    registers(loaded)
    loaded.run()


def test_a_pointer_that_goes_wrong_in_a_loop(program):
    loaded = program(
        "riscv32", "start:\n li a2, 5\nloop:\n lw a0, 0(s1)\n addi s1, s1, 2\n addi a2, a2, -1\n"
        " bnez a2, loop\nend:\n j end",
    )  # fmt: skip
    registers(loaded)
    with pytest.raises(DeviceFault, match="misaligned access at address 0x80001002"):
        loaded.run()
    assert loaded.device.instructions == 1 + 4


@pytest.mark.parametrize(
    ("bad", "address"),
    [
        ("ldrd r2, r3, [r1]", 0x20001001),
        ("strd r2, r3, [r6, #4]!\n ldrd r2, r3, [r1, #8]", 0x20001009),
        ("ldm r1, {r2, r3}", 0x20001001),
        ("ldm.w r1!, {r2, r3, r8}", 0x20001001),
        ("stm r1!, {r2, r3}", 0x20001001),
        ("vldr s0, [r1, #-4]", 0x20000FFD),
        ("vldm r1, {s0-s3}", 0x20001001),
    ],
)
def test_arm_multiple_words(program, bad, address):
    loaded = program("cortex-m4", ARM.format(before="nop", bad=bad))
    registers(loaded)
    with pytest.raises(DeviceFault) as caught:
        loaded.run()
    assert (caught.value.kind, caught.value.address) == ("misaligned access", address)
    assert loaded.device.instructions == 1 + bad.count("\n")


@pytest.mark.parametrize(
    ("before", "good"),
    [
        ("nop", "ldr r0, [r1]"),
        ("nop", "strh r0, [r1]"),
        ("nop", "ldrd r2, r3, [r6]"),
        ("movs r1, #0\n add r1, r6", "ldm r1, {r2, r3}"),
        ("bic r1, r1, #3", "ldrd r2, r3, [r1]"),
        ("ldrb r0, [r1], #3", "vldr s0, [r1]"),
        ("adds r1, #3", "stm r1!, {r2, r3}"),
        ("mov r1, r6", "ldm r1!, {r2, r3}"),
        ("mov r12, r1\n mov r1, sp", "ldrd r2, r3, [r1, #-8]"),
        ("nop", "push {r0, r1}\n pop {r2, r3}"),
        ("nop", "ldrex r0, [r6]"),
        ("nop", "vmov d0, r1, r1"),
        ("nop", "vmov r1, r2, d0"),
        ("nop", "vmov s0, r1"),
        ("nop", "tbb [pc, r5]\n .byte 1, 1"),
    ],
)
def test_arm_that_is_fine(program, before, good):
    loaded = program("cortex-m4", ARM.format(before=before, bad=good))
    registers(loaded)
    loaded.run()
