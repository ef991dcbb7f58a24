"""Custom instructions of a RISC-V core: results, counts, cycles, and what debuggers see."""

from __future__ import annotations

import pytest

from covp.errors import DeviceError, DeviceFault
from covp.machine.custom_instructions import CustomInstruction

WORD = 0xFFFFFFFF


def _int8(word: int) -> list[int]:
    return [(word >> 8 * lane & 0xFF ^ 0x80) - 0x80 for lane in range(4)]


def _dot(a: int, b: int) -> int:
    return sum(x * y for x, y in zip(_int8(a), _int8(b), strict=True)) & WORD


DOT = CustomInstruction(
    "dot",
    funct3=0,
    funct7=0,
    compute=_dot,
    native="""
    int32_t sum = 0;
    for (int lane = 0; lane < 4; lane++)
        sum += (int8_t)(a >> 8 * lane) * (int8_t)(b >> 8 * lane);
    return (uint32_t)sum;
    """,
    cycles=3,
)
MIX = CustomInstruction(
    "mix", 5, 0x7F, lambda a, b: (a * 3 ^ b) + 1 & WORD, "(a * 3 ^ b) + 1", opcode=0x2B
)
ADD = CustomInstruction("add", 1, 2, lambda a, b: 0, "state->word[0] += a * b", cycles=7)
GET = CustomInstruction("get", 2, 2, lambda a, b: 0, "state->word[a & 15]")

ASM = """
.macro dot rd, rs1, rs2
    .insn r 0x0b, 0, 0, \\rd, \\rs1, \\rs2
.endm
.macro mix rd, rs1, rs2
    .insn r 0x2b, 5, 0x7f, \\rd, \\rs1, \\rs2
.endm
.macro add_ rd, rs1, rs2
    .insn r 0x0b, 1, 2, \\rd, \\rs1, \\rs2
.endm
.macro get rd, rs1, rs2
    .insn r 0x0b, 2, 2, \\rd, \\rs1, \\rs2
.endm
start:
"""
END = "\nend:\n j end\n"


@pytest.fixture
def loaded(program):
    """Assemble, with two units on the core."""

    def load(text: str):
        made = program("riscv32", ASM + text + END)
        made.device.add_instructions("dsp", [DOT, MIX])
        made.device.add_instructions("mac", [ADD, GET])
        return made

    return load


def test_straight_line(loaded):
    made = loaded("""
    li a1, 0x01ff7f80
    li a2, 0x0203807f
    csrr s0, mcycle
    dot a0, a1, a2
    csrr s1, mcycle
    mix a3, a0, a1
    nop
    dot a1, a1, a1
    csrr s2, minstret
    """)
    for _ in range(3):
        before = made.device.instructions
        stop = made.run()
        read = made.device.read_register
        assert read("a0") == _dot(0x01FF7F80, 0x0203807F)
        assert read("a3") == MIX.compute(_dot(0x01FF7F80, 0x0203807F), 0x01FF7F80)
        assert read("a1") == _dot(0x01FF7F80, 0x01FF7F80)
        assert read("s1") - read("s0") == 1 + DOT.cycles
        assert read("s2") - before == 4 + 1 + 1 + 1 + 1 + 1 + 1
        assert (stop.instructions, stop.cycles) == (11, 9 + 2 * DOT.cycles)
    assert made.device.instruction_uses("dsp") == {"dot": 6, "mix": 3}
    assert made.device.instruction_uses("mac") == {"add": 0, "get": 0}


def test_loop(loaded):
    made = loaded("""
    li a0, 0
    li a1, 0x01020304
    li a2, 0x01010101
    li a3, 1000
loop:
    dot a4, a1, a2
    add a0, a0, a4
    addi a3, a3, -1
    bnez a3, loop
    """)
    plain = made.run()
    assert made.device.read_register("a0") == 10 * 1000
    assert made.device.instruction_uses("dsp")["dot"] == 1000
    assert plain.instructions == 4 + 2 + 4 * 1000  # li of a large value is two instructions


def test_an_encoding_nobody_added_is_illegal(loaded):
    made = loaded("bad:\n .insn r 0x0b, 0, 1, a0, a1, a2")
    with pytest.raises(DeviceFault) as caught:
        made.run()
    assert (caught.value.kind, caught.value.pc) == ("illegal instruction", made.labels["bad"])


def test_only_on_riscv(program):
    made = program("stm32l4r5", "start:\n nop\nend:\n b end")
    with pytest.raises(DeviceError, match="RISC-V"):
        made.device.add_instructions("dsp", [DOT])
