"""Timing models: every mistake in a file is one line, and the rules say what the manuals say."""

from __future__ import annotations

from pathlib import Path

import pytest

import covp.timing.model as model_module
from covp.errors import PlatformError
from covp.timing.model import load_timing, model_names, read_model
from covp.timing.trace import BlockRuns, Instruction, Trace, cost


def cycles(model: str, *code: int, taken: int = 0) -> int:
    """Of straight-line code that runs once; instructions above 16 bits have 4 bytes."""
    block = tuple(Instruction(bits, 2 if bits < 1 << 16 else 4) for bits in code)
    return cost(Trace((BlockRuns(0, 0, block, 1, taken, 0, 0),)), load_timing(model))


ADD, LDR, STR, MUL = 0x1889, 0x6820, 0x6020, 0x4351  # adds r1, r1, r2; r0, [r4]; muls r1, r2
BEQ, PUSH, POP_PC = 0xD0FE, 0xB5F0, 0xBDF0  # {r4-r7, lr}; {r4-r7, pc}


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
        ("m4", (STR, LDR), 3),
        ("m4", (0xFB01F002,), 1),  # mul
        ("m4", (0xFBB1F0F2,), 7),  # udiv: 2-12
        ("m4", (0xEE800A00,), 14),  # vdiv
        ("m4", (0xEC910A04,), 1 + 4),  # vldm of four
        ("m4", (0xE8910078,), 1 + 4),  # ldm of four
        ("m7", (ADD, LDR), 2),  # different units issue together
        ("m7", (ADD, ADD), 2),
        ("m7", (MUL, ADD, LDR), 3),  # a pair, and one more
        ("rv32", (0x00C58533,), 1),  # add a0, a1, a2
        ("rv32", (0x02C59533,), 5),  # mulh
        ("rv32", (0x0040006F,), 2),  # jal
        ("rv32", (0x8082,), 2),  # ret
        ("unit", (0x02C59533, 0x8082), 2),
    ],
)
def test_cycles(model: str, code: tuple[int, ...], expected: int) -> None:
    assert cycles(model, *code) == expected


@pytest.mark.parametrize(
    ("model", "branch", "extra"),
    [
        ("m0plus", BEQ, 1),
        ("m4", BEQ, 2),
        ("m33", BEQ, 1),
        ("rv32", 0x00B50463, 2),
        ("unit", BEQ, 0),
    ],
)
def test_a_taken_branch(model: str, branch: int, extra: int) -> None:
    assert cycles(model, branch, taken=1) == cycles(model, branch) + extra


def test_every_model_loads() -> None:
    assert {"m0plus", "m3", "m4", "m7", "m33", "rv32", "unit"} <= set(model_names())
    for name in model_names():
        model = load_timing(name)
        assert model.name == name and model.source and model.assumes and model.error is None
        assert hash(model) == hash(load_timing(name))


@pytest.mark.parametrize("name", ["thumb", "rv32"])
def test_patterns_are_whole_instructions(name: str) -> None:
    path = Path(model_module.__file__).parent / "instructions" / f"{name}.yaml"
    for one in model_module._classes(path):
        for pattern in one.patterns:
            text = pattern.replace(" ", "")
            assert len(text) in (16, 32) and set(text) <= set("01xrn"), (one.name, pattern)


GOOD = "source: me\nassumes: nothing\ninstructions: rv32\n"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (GOOD + "cycles: {jmp: 2}\n", "cycles.jmp: no such class of instructions.*jump"),
        (GOOD + "taken: {branches: 2}\n", "taken.branches: no such class.*branch"),
        (GOOD + "cycles: {jump: -1}\n", r"Expected `int` >= 0 - at `\$.cycles"),
        (GOOD + "cycle: {jump: 1}\n", "unknown field `cycle`"),
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
