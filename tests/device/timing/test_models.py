"""Timing models: every mistake in a file is one line, and the rules say what the manuals say."""

from __future__ import annotations

from pathlib import Path

import pytest

from covp.device.timing.instructions import LETTERS, load_instructions
from covp.device.timing.model import load_timing, model_names, read_model
from covp.device.timing.trace import BlockRuns, Instruction, RunCycles, Runs, Trace, cost, pack
from covp.errors import PlatformError

UNKNOWN = (RunCycles((), (), ()),)


def cycles(model: str, *code: int, taken: int = 0) -> int:
    """Of straight-line code that runs once; instructions above 16 bits have 4 bytes."""
    block = tuple(Instruction(bits, 2 if bits < 1 << 16 else 4) for bits in code)
    fallen = (Runs(0), Runs(1, taken, 1 - taken))
    runs = BlockRuns(0, 0, pack(block), fallen, (), 0, UNKNOWN)
    return cost(Trace((runs,)), load_timing(model))


LDR_R1, LDR_R2, LDR_R3 = 0x6861, 0x68A2, 0x68E3  # from [r4, #4] on
ADD, LDR, STR, MUL = 0x1889, 0x6820, 0x6020, 0x4351  # adds r1, r1, r2; r0, [r4]; muls r1, r2
AND = 0x4011  # ands r1, r2
BEQ, PUSH, POP_PC = 0xD0FE, 0xB5F0, 0xBDF0  # {r4-r7, lr}; {r4-r7, pc}


@pytest.mark.process
@pytest.mark.parametrize(
    ("model", "code", "expected"),
    [
        ("m0plus", (ADD,), 1),  # Arm DDI0484C, table 3-1
        ("m0plus", (LDR,), 2),
        ("m0plus", (LDR, LDR), 4),
        ("m0plus", (MUL,), 1),
        ("m0plus", (PUSH,), 1 + 5),
        ("m0plus", (POP_PC,), 3 + 4),
        ("m0plus", (0xF000F800,), 3),  # bl
        ("m4", (LDR,), 2),  # Arm 100166_0001, table 3-1
        ("m4", (LDR, LDR), 3),  # "neighbouring load and store instructions can pipeline"
        ("m4", (LDR, STR), 2),
        ("m4", (STR, LDR), 4),  # measured by jnk0le: a load after a store waits a cycle
        ("m4", (0xFB01F002,), 1),  # mul
        ("m4", (0xFBB1F0F2,), 3),  # udiv: 2-12, with operands that were not recorded
        ("m4", (0xEE800A00,), 14),  # vdiv
        ("m4", (0xEC910A04,), 1 + 4),  # vldm of four
        ("m4", (0xE8910078,), 1 + 4),  # ldm of four
        ("m7", (ADD, LDR), 1),  # different units issue together
        ("m7", (ADD, ADD), 1),  # the second executes in the late stage, with the first's result
        ("m7", (ADD, AND, AND), 2),  # an and only in the late one
        ("m7", (ADD, 0x1B65), 1),  # subs r5, r4, r5: independent
        ("m7", (LDR, LDR_R1, LDR_R2, LDR_R3), 2),  # two loads a cycle
        ("m7", (LDR, 0x1840), 2),  # a load and an add of what was loaded
        ("m7", (LDR, 0x4348), 3),  # ... a multiplication
        ("m7", (LDR, 0x6803), 4),  # ... a load from there
        ("m7", (0xF8143B04, 0xF8141B04), 2),  # ldr r3, [r4], #4; the base is there a cycle later
        ("m7", (0xFB210002, 0xFB210002), 2),  # smlad r0, r1, r2, r0: the accumulator comes late
        ("cv32e40p", (0x00052583, 0x00158613), 3),  # lw a1, 0(a0); addi a2, a1, 1
        ("cv32e40p", (0x00052583, 0x00168613), 2),
        ("cv32e40p", (0x00052583, 0x00100593), 3),  # the result is overwritten unread
        ("ibex", (0x00052583, 0x00100593), 2),
        ("cv32e40p", (0x00150093, 0x8082), 4),  # addi ra, a0, 1; ret
        ("cv32e40p", (0x02C59533, 0x8082), 6),  # the return passes while mulh executes
        ("cv32e40p", (0x418C, 0x0585), 3),  # c.lw a1, 0(a1); c.addi a1, 1
        ("rv32", (0x00C58533,), 1),  # add a0, a1, a2
        ("rv32", (0x02C59533,), 5),  # mulh
        ("rv32", (0x0040006F,), 2),  # jal
        ("rv32", (0x8082,), 2),  # ret
        ("unit", (0x02C59533, 0x8082), 2),
    ],
)
def test_cycles(model: str, code: tuple[int, ...], expected: int) -> None:
    assert cycles(model, *code) == expected


@pytest.mark.process
@pytest.mark.parametrize(
    ("model", "branch", "extra"),
    [
        ("m0plus", BEQ, 1),
        ("m4", BEQ, 1),
        ("m33", BEQ, 1),
        ("rv32", 0x00B50463, 2),
        ("unit", BEQ, 0),
    ],
)
def test_a_taken_branch(model: str, branch: int, extra: int) -> None:
    assert cycles(model, branch, taken=1) == cycles(model, branch) + extra


def test_every_model_loads() -> None:
    assert {"m0plus", "m3", "m4", "m7", "m33", "rv32", "cv32e40p", "ibex", "unit"} <= set(
        model_names()
    )
    for name in model_names():
        model = load_timing(name)
        assert model.name == name and model.source
        assert hash(model) == hash(load_timing(name))


@pytest.mark.parametrize("name", ["thumb", "rv32"])
def test_patterns_are_whole_instructions(name: str) -> None:
    for one in load_instructions(name).classes:
        for pattern in one.patterns:
            text = pattern.replace(" ", "")
            assert len(text) in (16, 32) and set(text) <= set(LETTERS), (one.name, pattern)


GOOD = "source: me\nassumes: nothing\ninstructions: rv32\n"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (GOOD + "cycles: {jmp: 2}\n", "cycles.jmp: no such class of instructions.*jump"),
        (GOOD + "taken: {branches: 2}\n", "taken.branches: no such class.*branch"),
        (GOOD + "cycles: {jump: -1}\n", r"Expected `int` >= 0 - at `\$.cycles"),
        (GOOD + "cycle: {jump: 1}\n", "unknown field `cycle`"),
        (GOOD + "late: {lod: 1}\n", "late.lod: no such class.*load"),
        (GOOD + "decoded: [jmp]\n", "decoded.jmp: no such class"),
        (GOOD + "slots: {alu: 1}\n", "slots.alu: no such unit"),
        (GOOD + "fetch: {bytes: 3, ahead: 2}\n", "fetch.bytes"),
        # an instruction in two fetches would wait for ever
        (GOOD + "fetch: {bytes: 4, ahead: 1}\n", "fetch.ahead"),
        ("source: me\nassumes: nothing\ninstructions: rv64\n", "instructions: 'rv64' is unknown"),
        ("assumes: nothing\n", "missing required field `source`"),
        ("source: [\n", "not valid YAML"),
    ],
)
def test_mistakes(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    with pytest.raises(PlatformError, match=complaint) as caught:
        read_model(path)
    assert str(caught.value).startswith(f"{path}: ") and "\n" not in str(caught.value)


def test_names(tmp_path: Path) -> None:
    with pytest.raises(PlatformError, match="unknown timing model 'm5'"):
        load_timing("m5")
    with pytest.raises(PlatformError, match="no such timing model file"):
        load_timing(str(tmp_path / "none.yaml"))
    path = tmp_path / "mine.yaml"
    path.write_text(GOOD + "cycles: {jump: 9}\n")
    assert load_timing(str(path)).name == "mine"
