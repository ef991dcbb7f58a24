"""Custom instructions of a RISC-V core: results, counts, cycles, and what debuggers see."""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import covp.device.machine.execution as execution
from covp.chip.platform_file import load_platform
from covp.device.machine.watchpoints import Watch
from covp.device.virtual import VirtualDevice
from covp.errors import AcceleratorError, DeviceError, DeviceFault, ToolchainError
from covp.hardware.custom_instruction import CustomInstruction
from covp.hardware.peripheral import Peripheral
from covp.hardware.registers import Register, RegisterMap

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


def model(one: CustomInstruction, a: int, b: int, state: list[int]) -> int:
    if one is ADD:
        state[0] = state[0] + a * b & WORD
        return state[0]
    return state[a & 15] if one is GET else one.compute(a, b)


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
        made.device.board.add_instructions("dsp", [DOT, MIX])
        made.device.board.add_instructions("mac", [ADD, GET])
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
        read = made.device.core.read_register
        assert read("a0") == _dot(0x01FF7F80, 0x0203807F)
        assert read("a3") == MIX.compute(_dot(0x01FF7F80, 0x0203807F), 0x01FF7F80)
        assert read("a1") == _dot(0x01FF7F80, 0x01FF7F80)
        assert read("s1") - read("s0") == 1 + DOT.cycles
        assert read("s2") - before == 4 + 1 + 1 + 1 + 1 + 1 + 1
        assert (stop.instructions, stop.cycles) == (11, 9 + 2 * DOT.cycles)
    causes = made.device.counts.trace().causes
    assert (causes["issue"], causes["custom"]) == (3 * 11, 3 * 2 * (DOT.cycles - 1))
    assert made.device.board.instruction_uses("dsp") == {"dot": 6, "mix": 3}
    assert made.device.board.instruction_uses("mac") == {"add": 0, "get": 0}


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
    assert made.device.core.read_register("a0") == 10 * 1000
    assert made.device.board.instruction_uses("dsp")["dot"] == 1000
    assert plain.instructions == 4 + 2 + 4 * 1000  # li of a large value is two instructions


@pytest.mark.parametrize("fast", [True, False], ids=["register array", "register calls"])
@settings(max_examples=30, deadline=None)
@given(
    steps=st.lists(
        st.tuples(
            st.sampled_from([DOT, MIX, ADD, GET]), *3 * [st.sampled_from([0, 5, 10, 11, 31])]
        ),
        min_size=1,
        max_size=12,
    ),
    values=st.lists(st.integers(0, WORD), min_size=4, max_size=4),
    turns=st.integers(1, 5),
    limit=st.sampled_from([1, 2, 5, 1 << 30]),
)
def test_equal_to_the_models(fast, steps, values, turns, limit):
    """Any registers, x0 and rd = rs1 too, in a loop; at full speed, in slices and step by step."""
    words = [one.encode(rd, rs1, rs2) for one, rd, rs1, rs2 in steps]
    back = -4 * (len(words) + 1) & 0x1FFF
    words.append(0xFFF38393)  # addi t2, t2, -1
    words.append(0x00039063 | (back >> 12) << 31 | (back >> 5 & 0x3F) << 25
                 | (back >> 1 & 15) << 8 | (back >> 11 & 1) << 7)  # fmt: skip
    registers, state = {0: 0, **dict(zip((5, 10, 11, 31), values, strict=True))}, [0] * 16
    uses: dict[str, int] = {}
    for _ in range(turns):
        for one, rd, rs1, rs2 in steps:
            result = model(one, registers[rs1], registers[rs2], state)
            registers[rd] = result if rd else 0
            uses[one.name] = uses.get(one.name, 0) + 1
    instructions = len(words) * turns
    cycles = turns * (sum(one.cycles for one, *_ in steps) + 2) + 2 * (turns - 1)
    for stepping in (False, True):
        with VirtualDevice(load_platform("riscv32")) as device, pytest.MonkeyPatch.context() as to:
            to.setattr(execution, "SLICE", limit)
            device.board.add_instructions("dsp", [DOT, MIX])
            device.board.add_instructions("mac", [ADD, GET])
            if fast and not device.core.counter.state.registers:
                pytest.skip("the emulator's register array is not found on this system")
            if not fast:
                device.core.counter.state.registers = None
            base = device.platform.flash.start
            end = base + 4 * len(words)
            device.write(base, struct.pack(f"<{len(words)}I", *words))
            for name, value in zip(("t0", "a0", "a1", "t6"), values, strict=True):
                device.core.write_register(name, value)
            device.core.write_register("t2", turns)
            device.core.write_register("pc", base)
            if stepping:
                for _ in range(instructions):
                    device.step()
                assert device.core.read_register("pc") == end
            else:
                device.execute(base, end)
            assert (device.instructions, device.cycles) == (instructions, cycles)
            used = {**device.board.instruction_uses("dsp"), **device.board.instruction_uses("mac")}
            assert {name: count for name, count in used.items() if count} == uses
            read = [device.core.read_register(name) for name in ("zero", "t0", "a0", "a1", "t6")]
            assert read == list(registers.values())


def test_an_encoding_that_was_not_added_is_illegal(loaded):
    made = loaded("bad:\n .insn r 0x0b, 0, 1, a0, a1, a2")
    with pytest.raises(DeviceFault) as caught:
        made.run()
    assert (caught.value.kind, caught.value.pc) == ("illegal instruction", made.labels["bad"])


def test_only_on_riscv(program):
    made = program("cortex-m4", "start:\n nop\nend:\n b end")
    with pytest.raises(DeviceError, match="RISC-V"):
        made.device.board.add_instructions("dsp", [DOT])


def test_branch_targets_and_block_ends(loaded):
    """Jumps to a custom instruction and to the following one; calls, compressed neighbours."""
    made = loaded("""
    li a1, 0x01010101
    li s0, 0
    li s1, 3
    j after
again:
    addi s0, s0, 1
at:
    dot s0, a1, a1
after:
    dot a2, a1, s0
    c.addi s0, 1
    dot a3, a1, a1
    c.addi s1, -1
    blt s0, s1, again
    bnez s1, at
    dot a4, a1, a1
    jal leaf
    j end
leaf:
    dot a5, a1, a1
    ret
    """)
    stop = made.run()
    # after: three times, at and again: twice in all
    assert made.device.board.instruction_uses("dsp")["dot"] == 3 * 2 + 2 + 2
    read = made.device.core.read_register
    assert [read(name) for name in ("s0", "a2", "a3", "a4", "a5")] == [5, 4, 4, 4, 4]
    assert stop.instructions == sum(
        b.instructions * b.count for b in made.device.core.counter.blocks()
    )


def test_stopping_directly_after(loaded):
    """The program's end, and where the next block is not entered."""
    made = loaded("    li a1, 0x01010101\n dot a0, a1, a1\nmiddle:\n dot a0, a0, a1\nlast:\n nop")
    for _ in range(2):
        made.device.core.write_register("a0", 0)
        made.run(stop="middle")
        assert made.device.core.read_register("a0") == 4
        assert made.run("middle", "last").instructions == 1
        assert made.device.core.read_register("a0") == 4
    assert made.device.board.instruction_uses("dsp")["dot"] == 4


def test_at_the_end_of_memory(loaded):
    """The instruction retires; the next fetch faults."""
    made = loaded("nop")
    region = made.device.platform.flash
    made.device.write(region.end - 4, struct.pack("<I", DOT.encode(10, 11, 11)))
    made.device.core.write_register("a1", 0x01010101)
    with pytest.raises(DeviceFault) as caught:
        made.device.execute(region.end - 4, made.labels["end"])
    assert (caught.value.kind, caught.value.pc) == ("unmapped fetch", region.end)
    assert made.device.core.read_register("a0") == 4
    assert made.device.board.instruction_uses("dsp")["dot"] == 1


def test_a_fault_in_front_of_it(loaded):
    """It does not retire where its block is left earlier, whether it ran before or not."""
    made = loaded("""
    dot a0, a1, a1
    nop
bad:
    lw a2, 0(a3)
    dot a0, a1, a1
    dot a0, a1, a1
    """)
    made.device.core.write_register("a3", made.device.platform.ram.start)
    assert made.run().instructions == 5
    made.device.core.write_register("a3", 0x70000000)
    for _ in range(2):
        before = made.device.instructions, made.device.cycles
        with pytest.raises(DeviceFault) as caught:
            made.run()
        assert (caught.value.kind, caught.value.pc) == ("unmapped read", made.labels["bad"])
        assert made.device.instructions - before[0] == 2
        assert made.device.cycles - before[1] == DOT.cycles + 1
    assert made.device.board.instruction_uses("dsp")["dot"] == 3 + 2


def test_breakpoints(loaded):
    made = loaded("""
    li a1, 0x01010101
    li a2, 3
loop:
    nop
here:
    dot a0, a1, a2
after:
    mix a2, a2, a0
    bnez a2, loop
    """)
    device, labels = made.device, made.labels
    device.set_breakpoints([labels["here"], labels["after"]])
    device.core.write_register("pc", labels["start"])
    a2 = 3
    for turn in range(3):
        device.run()
        assert device.core.read_register("pc") == labels["here"]
        assert device.board.instruction_uses("dsp") == {"dot": turn, "mix": turn}
        device.run()
        assert device.core.read_register("pc") == labels["after"]
        assert device.core.read_register("a0") == _dot(0x01010101, a2)
        assert device.board.instruction_uses("dsp") == {"dot": turn + 1, "mix": turn}
        a2 = MIX.compute(a2, _dot(0x01010101, a2))
    device.set_breakpoints([])
    device.step()
    assert device.core.read_register("pc") == labels["after"] + 4
    assert device.core.read_register("a2") == a2


def test_watched_store_in_front_of_it(loaded):
    made = loaded("store:\n sw a1, 0(a3)\n dot a0, a1, a1\n dot a0, a1, a1")
    device, ram = made.device, made.device.platform.ram.start + 0x2000
    device.core.write_register("a3", ram)
    made.run()
    device.set_watchpoints([Watch(ram, 4, False, True)])
    device.core.write_register("pc", made.labels["start"])
    device.run(watch=True)
    assert (
        device.core.watchpoints.hit is not None
        and device.core.read_register("pc") == made.labels["store"]
    )
    assert device.board.instruction_uses("dsp")["dot"] == 2
    device.set_breakpoints([made.labels["end"]])
    device.run()
    assert device.board.instruction_uses("dsp")["dot"] == 4


def test_state_is_one_units_and_reset_clears_it(loaded):
    made = loaded("add_ a0, a1, a2\n add_ a0, a1, a2\n get a3, zero, zero")
    device = made.device
    other = CustomInstruction("other", 7, 7, lambda a, b: 0, "++state->word[0]", opcode=0x7B)
    device.board.add_instructions("third", [other])
    for total in (12, 24, 12):
        if total == 12:
            device.reset()
        device.core.write_register("a1", 2)
        device.core.write_register("a2", 3)
        made.run()
        assert device.core.read_register("a3") == total == device.core.read_register("a0")


def test_words_that_are_not_executed_stay(loaded):
    made = loaded("""
    lw a0, data
    j over
    .balign 4
data:
    .insn r 0x0b, 0, 0, a0, a1, a2
over:
    dot a1, a1, a1
    """)
    device = made.device
    data = made.labels["data"]
    made.run()
    word = DOT.encode(10, 11, 12).to_bytes(4, "little")
    assert device.core.read_register("a0").to_bytes(4, "little") == word
    assert device.board.bus.read(data, 4) == device.read(data, 4) == word


def test_memory_shows_the_program(loaded):
    made = loaded("    dot a0, a1, a1\nsecond:\n mix a0, a1, a1\n nop")
    device, start = made.device, made.labels["start"]
    size = made.labels["end"] - start
    before = device.read(start, size)
    made.run()
    assert device.read(start, size) == before
    for offset in range(size):
        for length in range(1, size - offset):
            assert device.read(start + offset, length) == before[offset : offset + length]


def test_code_that_is_written_over(loaded):
    made = loaded("    dot a0, a1, a1\nlast:\n nop")
    device, start = made.device, made.labels["start"]
    device.core.write_register("a1", 0x01010101)
    made.run()
    device.write(start, (0x00700513).to_bytes(4, "little"))  # li a0, 7
    made.run()
    assert device.core.read_register("a0") == 7
    device.write(start, MIX.encode(10, 11, 11).to_bytes(4, "little"))
    made.run()
    assert device.core.read_register("a0") == MIX.compute(0x01010101, 0x01010101)
    # half of an instruction that ran: rs2 becomes zero
    device.write(start + 2, MIX.encode(10, 11, 0).to_bytes(4, "little")[2:])
    made.run()
    assert device.core.read_register("a0") == MIX.compute(0x01010101, 0)
    assert device.board.instruction_uses("dsp") == {"dot": 1, "mix": 2}


def test_code_the_program_copies(loaded):
    """Executed in place, copied to RAM by the program, executed there; then changed by it."""
    made = loaded("""
    li a1, 0x01010101
    jal routine
    la t0, routine
    li t1, 0x80003000
    lw t2, 0(t0)
    sw t2, 0(t1)
    lw t2, 4(t0)
    sw t2, 4(t1)
    fence.i
    li a0, 0
    jalr t1
    mv s0, a0
    la t0, other
    lw t2, 0(t0)
    sw t2, 0(t1)
    fence.i
    jalr t1
    j end
    .option norvc
    .balign 4
routine:
    dot a0, a1, a1
    jr ra
other:
    mix a0, a1, a1
    """)
    for turn in (1, 2):
        made.run()
        assert made.device.core.read_register("s0") == 4
        assert made.device.core.read_register("a0") == MIX.compute(0x01010101, 0x01010101)
        assert made.device.board.instruction_uses("dsp") == {"dot": 2 * turn, "mix": turn}


@pytest.mark.parametrize("offset", [-2, 2, 0])
def test_across_a_page(loaded, offset):
    """Half of it on the page before; unaligned; then written over with another."""
    device = loaded("nop").device
    base = device.platform.flash.start + 0x1000 + offset
    device.core.write_register("a1", 0x01010101)
    for first, second in ((DOT, MIX), (MIX, DOT)):
        words = first.encode(10, 11, 11), second.encode(12, 11, 11)
        device.write(base, struct.pack("<2I", *words))
        for _ in range(2):
            assert device.execute(base, base + 8).instructions == 2
            for name, one in (("a0", first), ("a2", second)):
                assert device.core.read_register(name) == one.compute(0x01010101, 0x01010101)
        assert device.read(base, 8) == struct.pack("<2I", *words)


def test_a_store_over_the_one_ahead(loaded):
    """The program changes the code before it, which ran before."""
    made = loaded("""
    la t0, ahead
    lw t2, other
    j change
    .option norvc
    .balign 4
other:
    mix a0, a1, a1
change:
    sw t1, 0(t0)
    fence.i
ahead:
    dot a0, a1, a1
    """)
    device = made.device
    # in RAM, where the program can write it; la and lw are two instructions each
    code = device.read(made.labels["start"], made.labels["end"] - made.labels["start"])
    base = device.platform.ram.start + 0x3000
    device.write(base, code)
    entry, end = (base + made.labels[name] - made.labels["start"] for name in ("start", "end"))
    device.core.write_register("a1", 0x01010101)
    for word, result in (
        (DOT.encode(10, 11, 11), 4),
        (MIX.encode(10, 11, 11), MIX.compute(0x01010101, 0x01010101)),
        (0x00700513, 7),
        (DOT.encode(10, 11, 11), 4),
    ):
        device.core.write_register("t1", word)
        assert device.execute(entry, end).instructions == 8
        assert device.core.read_register("a0") == result
    assert device.board.instruction_uses("dsp") == {"dot": 2, "mix": 1}


@pytest.mark.costly
def test_too_many_different_ones(loaded):
    device = loaded("nop").device
    base = device.platform.flash.start
    registers = [(n & 31, n >> 5 & 31, n >> 10) for n in range(4096)]
    words = [MIX.encode(rd or 1, rs1, rs2 + 4 * (not rd)) for rd, rs1, rs2 in registers]
    device.write(base, struct.pack("<4096I", *words))
    assert device.execute(base, base + 4 * 4095).instructions == 4095
    with pytest.raises(DeviceError, match="4095"):
        device.execute(base + 4 * 4095, base + 4 * 4096)


def test_removal(loaded):
    made = loaded("    dot a0, a1, a1\n add_ a0, a1, a1")
    device, start = made.device, made.labels["start"]
    made.run()
    device.board.remove_instructions("dsp")
    assert device.read(start, 4) == DOT.encode(10, 11, 11).to_bytes(4, "little")
    before = device.instructions
    with pytest.raises(DeviceFault) as caught:
        made.run()
    assert (caught.value.kind, caught.value.pc) == ("illegal instruction", start)
    assert f"0x{DOT.encode(10, 11, 11):x}" in str(caught.value)
    assert device.instructions == before
    assert device.board.instruction_uses("mac")["add"] == 1
    slow = replace(DOT, cycles=40, native="a + b")
    device.core.write_register("a1", 21)
    device.board.add_instructions("again", [slow])
    stop = made.run()
    assert (stop.instructions, stop.cycles) == (2, 40 + ADD.cycles)
    assert device.board.instruction_uses("again") == {"dot": 1}
    assert device.board.instruction_uses("mac")["add"] == 2


def test_interrupts_between_them(program):
    """A timer interrupts a loop of custom instructions; the handler uses some, too."""
    made = program("riscv32", ASM + INTERRUPTED)
    device = made.device
    device.board.add_instructions("dsp", [DOT, MIX])
    device.board.add_instructions("mac", [ADD, GET])
    device.attach(Ticker(), 0x50000000, "ticker", 5)
    made.run()
    read = device.core.read_register
    assert read("s1") >= 10
    assert read("a0") == 2000 * 6
    assert device.board.instruction_uses("mac")["add"] == 2000 + read("s1")
    assert device.board.instruction_uses("mac")["get"] == 1


class Ticker(Peripheral):
    """Raises its line every 97 cycles, from the write of GO on."""

    registers = RegisterMap(
        Register("GO", 0x00, on_write="go"), Register("OFF", 0x04, on_write="off")
    )

    def go(self, value: int) -> None:
        self.clock.at(self.clock.now + 97, self.tick)

    def tick(self) -> None:
        self.interrupt.set(True)
        self.go(0)

    def off(self, value: int) -> None:
        self.interrupt.set(False)


INTERRUPTED = """
    la t0, handler
    csrw mtvec, t0
    lui s0, 0x50000
    li s1, 0
    li a1, 2
    li a2, 3
    li a3, 2000
    sw a1, 0(s0)
    li t0, 0x800
    csrs mie, t0
    csrsi mstatus, 8
loop:
    add_ a0, a1, a2
    addi a3, a3, -1
    bnez a3, loop
    csrci mstatus, 8
    get a0, zero, zero
end:
    j end
    .balign 4
handler:
    addi s1, s1, 1
    add_ t0, zero, zero
    sw t0, 4(s0)
    mret
"""


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"funct3": 8}, "funct3 8"),
        ({"funct7": 128}, "funct7 128"),
        ({"cycles": 0}, "cycles 0"),
        ({"opcode": 0x33}, "opcode 0x33"),
        ({"name": "a b"}, "identifier"),
    ],
)
def test_wrong_fields(changes, message):
    with pytest.raises(AcceleratorError, match=message):
        replace(DOT, **changes)


def test_what_cannot_be_added(loaded):
    device = loaded("nop").device
    with pytest.raises(DeviceError, match="already exists"):
        device.board.add_instructions("dsp", [])
    with pytest.raises(AcceleratorError, match="dot of dsp"):
        device.board.add_instructions("new", [replace(DOT, name="same")])
    with pytest.raises(AcceleratorError, match="two instructions are called dot"):
        device.board.add_instructions("new", [replace(DOT, funct3=3), replace(DOT, funct3=4)])
    with pytest.raises(ToolchainError, match=r"custom instructions of new .*wrong:1.*nonsense"):
        device.board.add_instructions(
            "new", [replace(DOT, name="wrong", funct3=3, native="nonsense")]
        )
    for ask in (device.board.remove_instructions, device.board.instruction_uses):
        with pytest.raises(DeviceError, match="dsp, mac"):
            ask("new")
