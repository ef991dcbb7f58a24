"""Custom instructions in Verilog: the template, planted mistakes, state, errors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import covp
from covp.accelerator import CoreUnit, CustomInstruction
from covp.accelerator.registry import find_backend
from covp.cli.main import covp as covp_command
from covp.device.virtual import VirtualDevice
from covp.errors import AcceleratorError, UsageError, WrongResult
from covp.graph.reference import run_reference
from covp.hardware.intrinsics import find_dot_product, unregister
from covp.testing import ConvCase
from covp.testing.verify import Executed, check_instructions
from covp.testing.verify.instruction_search import search_instructions

CASE = ConvCase(size=(5, 4), channels=(8, 9), kernel=(3, 3), same=True, bias=True, seed=1)
PLANTS = {
    "factors without a sign": (
        "$signed(cmd_payload_inputs_1[8*i+:8])",
        "{1'b0, cmd_payload_inputs_1[8*i+:8]}",
        r"dot4\(0x\w+, 0x\w+\), is 0x\w+ by compute and 0x\w+ by the RTL",
    ),
    "rsp_valid stays": ("rsp_valid <= cmd_valid;", "if (cmd_valid) rsp_valid <= 1;", "by the RTL"),
    "a lane twice": ("p[2] + p[3]", "p[2] + p[2]", "by the RTL"),
    "narrow products": ("wire signed [31:0] p", "wire signed [14:0] p", "by the RTL"),
    "an answer that does not wait": (
        "else if (cmd_ready) begin",
        "else begin",
        "changes before rsp_ready, for a core that takes answers late",
    ),
    "a command over an answer": (
        "assign cmd_ready = !rsp_valid || rsp_ready;",
        "assign cmd_ready = 1;",
        "changes before rsp_ready, for a core that takes answers late",
    ),
    "a cycle late": (
        "rsp_valid <= cmd_valid;",
        "late <= cmd_valid; rsp_valid <= late;",
        r"takes 2 cycles by the RTL; it states cycles=1",
    ),
    "never ready": (
        "assign cmd_ready = !rsp_valid || rsp_ready;",
        "assign cmd_ready = 0;",
        "no cmd_ready to the instruction of funct3 0, funct7 0 in 100000 cycles",
    ),
}
QUICK = ("rsp_valid stays", "an answer that does not wait")


@pytest.fixture(scope="module")
def dot4(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The template's instruction; kernels know it until the end of these tests."""
    folder = tmp_path_factory.mktemp("new") / "dot4"
    covp_command(["new", "instruction", "dot4", "-o", str(folder)], standalone_mode=False)
    yield folder / "dot4.py"
    if find_dot_product("dot4") is not None:
        unregister("dot4")


def planted(unit: Path, folder: Path, before: str, after: str) -> str:
    """Return the spec of the unit with a change of its Verilog."""
    text = unit.with_suffix(".v").read_text("utf-8")
    assert text.count(before) == 1
    text = text.replace(before, after).replace("genvar i;", "genvar i;\n  reg late;")
    (folder / "dot4.v").write_text(text, "utf-8")
    return f"{unit}:rtl={folder / 'dot4.v'}"


def test_the_template_has_thirty_lines_with_its_verilog(dot4: Path) -> None:
    lines = (dot4.read_text("utf-8") + dot4.with_suffix(".v").read_text("utf-8")).splitlines()
    assert sum(bool(line.strip()) for line in lines) <= 30


@pytest.mark.costly
@pytest.mark.parametrize("parameters", ["", ":rtl=yes"])
def test_layers_match_the_reference(dot4: Path, parameters: str) -> None:
    graph = CASE.graph()
    program = covp.compile(graph, "riscv32", accelerators=[f"{dot4}{parameters}"])
    assert [layer.target for layer in program.layers] == ["dot4"]
    with covp.Session("riscv32") as session:
        out = session.load(program).run(*CASE.inputs())
        np.testing.assert_array_equal(out, run_reference(graph, CASE.inputs())[0])
        assert session.profile().jobs["dot4"] > 0


@pytest.mark.costly
def test_instructions_agree_with_their_models(dot4: Path) -> None:
    for spec in (f"{dot4}:rtl=yes", "cfu"):
        unit = find_backend(spec)
        assert isinstance(unit, CoreUnit)
        assert search_instructions(unit, spec, 20, 0) == ("", "")


@pytest.mark.slow
def test_the_verilog_of_cfu_agrees_with_its_model() -> None:
    unit = find_backend("cfu:rtl=yes")
    assert isinstance(unit, CoreUnit)
    assert search_instructions(unit, "cfu:rtl=yes", 200, 0) == ("", "")


@pytest.mark.costly
@pytest.mark.parametrize(
    "name",
    [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in PLANTS],
)
def test_a_planted_mistake_is_found(dot4: Path, tmp_path: Path, name: str) -> None:
    before, after, wanted = PLANTS[name]
    spec = planted(dot4, tmp_path, before, after)
    unit = find_backend(spec)
    assert isinstance(unit, CoreUnit)
    difference, test = search_instructions(unit, spec, 40, 0)
    assert re.search(wanted, difference)
    steps = test.count("Executed(")
    assert steps <= 3
    made: dict[str, object] = {}
    exec(test, made)
    with pytest.raises(WrongResult, match=re.escape(difference)):
        made["test_instructions"]()  # type: ignore[operator]


@pytest.mark.slow
@pytest.mark.parametrize(("ready", "cycles"), [("rsp_ready", 1), ("rsp_ready && &wait_", 3)])
def test_a_zero_latency_unit_is_right(dot4: Path, tmp_path: Path, ready: str, cycles: int) -> None:
    """The twin of the planted ones: it answers in the cycle that accepts the command."""
    text = dot4.with_suffix(".v").read_text("utf-8")
    head, _, _ = text.partition("  assign cmd_ready")
    head = head.replace("output reg", "output")
    body = f"  assign cmd_ready = {ready}, rsp_valid = cmd_valid && cmd_ready;\n"
    if "wait_" in ready:
        body += "  reg [1:0] wait_;\n  always @(posedge clk) "
        body += "wait_ <= reset || !cmd_valid || cmd_ready ? 0 : wait_ + 1;\n"
    body += "  assign rsp_payload_outputs_0 = p[0] + p[1] + p[2] + p[3];\nendmodule\n"
    (tmp_path / "dot4.v").write_text(head + body, "utf-8")
    text = dot4.read_text("utf-8").replace("macs=4", f"macs=4, cycles={cycles}")
    (tmp_path / "dot4.py").write_text(text, "utf-8")
    spec = f"{tmp_path / 'dot4.py'}:rtl=yes"
    unit = find_backend(spec)
    assert isinstance(unit, CoreUnit)
    assert search_instructions(unit, spec, 40, 0) == ("", "")


@pytest.mark.costly
def test_registers_of_the_rtl_are_part_of_a_snapshot(dot4: Path) -> None:
    unit = find_backend("cfu:rtl=yes").make_peripheral()
    by_name = {one.name: one for one in unit.instructions}
    get = by_name["requantize_3"].encode(12, 10, 11)
    code = [0x00500513, by_name["set_3"].encode(0, 10, 0), 0x40000537, 0x7F8005B7, get]
    with covp.Session("riscv32") as session:
        device = session.device
        assert isinstance(device, VirtualDevice)
        device.board.add_instructions("cfu", unit.instructions, unit.code)
        start = device.platform.flash.start
        program = [*code, 0x0000006F]
        device.write(start, b"".join(word.to_bytes(4, "little") for word in program))
        device.execute(start, start + 8)  # accumulator 3 is 5
        saved = device.board.save_state()
        device.reset()
        device.execute(start + 8, start + 20)
        assert device.board.cores[0].registers()["a2"] == 0  # a reset clears it
        device.board.load_state(saved)
        device.execute(start + 8, start + 20)
        assert device.board.cores[0].registers()["a2"] == 3  # 5 * 0.5, rounded


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("module dot4 (input clk, input cmd_valid); endmodule", "has no custom instruction port"),
        ("module dot4 (input clk); oops endmodule", r"dot4\.v:1:\d+: syntax error"),
    ],
)
def test_wrong_verilog_is_one_line(dot4: Path, tmp_path: Path, text: str, wanted: str) -> None:
    (tmp_path / "dot4.v").write_text(text, "utf-8")
    with pytest.raises(covp.CovpError, match=wanted) as raised:
        find_backend(f"{dot4}:rtl={tmp_path / 'dot4.v'}").make_peripheral()
    assert "\n" not in str(raised.value)


def _divide(a: int, b: int) -> int:
    return a // (b - b)


def test_a_model_that_raises_ends_the_run() -> None:
    class Broken(CoreUnit):
        """An instruction whose model raises."""

        name = "broken"
        instructions = (CustomInstruction("broken", 0, 0, _divide),)
        dot_product = "{sum} + (int32_t)broken({x}, {w})"

    program = covp.compile(CASE.graph(), "riscv32", accelerators=[Broken()])
    with covp.Session("riscv32") as session:
        module = session.load(program)
        with pytest.raises(AcceleratorError, match=r"broken: compute\(0x\w+, 0x\w+\) raised Zero"):
            module.run(*CASE.inputs())
    unregister("broken")


def test_what_is_no_core_unit_has_no_instructions() -> None:
    with pytest.raises(UsageError, match="gemm has no custom instructions"):
        check_instructions("gemm", [Executed("dot4", 1, 1)])
    with pytest.raises(UsageError, match="cfu has no instruction dot4"):
        check_instructions("cfu", [Executed("dot4", 1, 1)])
