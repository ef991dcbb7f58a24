"""`covp core check`: every core's RTL passes, planted faults are named; `covp core new`."""

from __future__ import annotations

import difflib
import json
import shutil
from pathlib import Path

import pytest

from covp.chip.cores import cores_dir, find_core
from covp.chip.platform_file import Platform, load_platform
from covp.cli.main import main
from covp.device.rtl.cores import BUSES, find_package, rtl_names, rtl_of
from covp.testing import core_check
from covp.testing.core_check import check_core
from tests.device.rtl.conftest import need_rtl

BOARD = """
name: board
core: ./{core}
clock_hz: 100_000_000
memory:
  - {{name: flash, kind: flash, start: 0x20000000, size: 4M, wait_states: 0}}
  - {{name: ram, kind: ram, start: {ram:#x}, size: 1M}}
"""
RANDOM = 500


def board(folder: Path, core: str, ram: int = 0x80000000) -> Platform:
    """A platform with the core of a folder."""
    file = folder / "board.yaml"
    file.write_text(BOARD.format(core=core, ram=ram), "utf-8")
    return load_platform(file)


def copy(name: str, folder: Path, *changes: tuple[str, str]) -> Path:
    """A core of covp's as one of a user's, with changes of its wrapper."""
    place = folder / f"own-{name}"
    shutil.copytree(cores_dir() / name, place)
    wrapper = place / "wrapper.sv"
    text = wrapper.read_text("utf-8")
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    wrapper.write_text(text, "utf-8")
    return place


def difference(platform: Platform) -> tuple[str, str]:
    """Name and difference of the last row, which has one."""
    row = list(check_core(platform, RANDOM))[-1]
    assert row.difference is not None
    return row.name, row.difference


@pytest.mark.costly
def test_a_core_passes(cv32e40p):
    rows = list(check_core(load_platform(cv32e40p), RANDOM))
    assert [row for row in rows if row.difference or row.notes or row.skipped] == []
    ran = {row.name: row.instructions for row in rows}
    assert ran["random instructions"] >= RANDOM
    assert {"loads", "traps", "interrupts", "phases", "wait states 3, 2"} <= ran.keys()


@pytest.mark.slow
@pytest.mark.parametrize("name", rtl_names())
def test_all_cores_pass(name):
    need_rtl(name)
    rows = list(check_core(load_platform(name), 10_000))
    assert [row.difference for row in rows] == [None] * len(rows)


@pytest.mark.costly
def test_a_core_may_notice_an_interrupt_some_cycles_later(tmp_path):
    """Synchronizers of its input: it sleeps on for a while."""
    need_rtl("ibex")
    late = (
        "  logic [2:0] late;\n  always_ff @(posedge clk_i) late <= {late[1:0], irq_i && rst_ni};\n"
    )
    copy(
        "ibex",
        tmp_path,
        ("  logic we, irq_pending", late + "  logic we, irq_pending"),
        (".irq_external_i        (irq_i)", ".irq_external_i        (late[2])"),
    )
    rows = {row.name: row for row in check_core(board(tmp_path, "own-ibex"), RANDOM)}
    assert rows["interrupts"].programs == 4 and rows["interrupts"].difference is None


FAULTS = {
    "retire": (
        "assign retire_o = core.launch_next_insn;",
        "assign retire_o = core.launch_next_insn && core.reg_next_pc[5:0] != 6'h14;",
        "the RTL retires",
    ),
    "byte enables": ("data_we_o ? strobes : 4'hf", "4'hf", "after sb a3, 0(s1) at"),
    "pc of traps": ("trap_pc_o = core.reg_pc", "trap_pc_o = core.reg_pc + 4", "RTL: "),
    "fetch": ("instr ? fetch_rdata_i :", "instr ? fetch_rdata_i & ~(address[7:2] == 9) :", "0x2"),
}


@pytest.mark.costly
@pytest.mark.parametrize("fault", FAULTS)
def test_a_wrong_wrapper_is_found(fault, tmp_path):
    need_rtl("picorv32")
    old, new, said = FAULTS[fault]
    copy("picorv32", tmp_path, (old, new))
    assert said in difference(board(tmp_path, "own-picorv32", 0x40000000))[1]


@pytest.mark.costly
def test_an_interrupt_that_never_comes(cv32e40p, tmp_path):
    copy(cv32e40p, tmp_path, ("{20'h0, irq_i, 11'h0}", "32'h0"))
    name, found = difference(board(tmp_path, "own-cv32e40p"))
    assert name == "interrupts" and "endless sleep" in found


@pytest.mark.costly
def test_a_patched_source_is_what_runs(tmp_path):
    """An arithmetic shift that takes the wrong sign; the package stays as it is."""
    need_rtl("picorv32")
    package = rtl_of(find_core("picorv32")).package
    source = find_package(package) / "picorv32.v"
    before = source.read_text("utf-8")
    after = before.replace("instr_sra || instr_srai ? reg_op1[31]", "instr_srai ? reg_op1[31]")
    assert before != after
    one, other = (text.splitlines(keepends=True) for text in (before, after))
    place = copy("picorv32", tmp_path)
    (place / "shift.patch").write_text(
        "".join(difflib.unified_diff(one, other, "a/picorv32.v", "b/picorv32.v")), "utf-8"
    )
    with (place / "rtl.yaml").open("a") as file:
        file.write("patches: [shift.patch]\n")
    name, found = difference(board(tmp_path, "own-picorv32", 0x40000000))
    assert name == "arithmetic" and "sra a2, a0, a1" in found
    assert source.read_text("utf-8") == before


@pytest.mark.costly
def test_the_command(cv32e40p, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    copy(cv32e40p, tmp_path, ("{20'h0, irq_i, 11'h0}", "32'h0"))
    board(tmp_path, "own-cv32e40p")
    arguments = ["core", "check", "board.yaml", "--instructions", "100"]
    for more, code in (([], 1), (["--json"], 1)):
        with pytest.raises(SystemExit) as done:
            main([*arguments, *more])
        assert done.value.code == code
        printed = capsys.readouterr().out
    found = json.loads(printed)
    assert not found["equal"] and found["checks"][-1]["name"] == "interrupts"
    with pytest.raises(SystemExit) as done:
        main(["core", "check", "cortex-m4"])
    assert done.value.code == 2
    assert "only RISC-V cores have RTL" in capsys.readouterr().err


@pytest.mark.costly
@pytest.mark.parametrize("bus", BUSES)
def test_a_new_core_never_starts(bus, tmp_path, monkeypatch, capsys):
    """The wrapper of each bus is translated as it is written; nothing retires yet."""
    need_rtl("picorv32")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(core_check, "_TIMEOUT", 0.05)
    with pytest.raises(SystemExit) as done:
        main(["core", "new", "mine", "--bus", bus])
    assert done.value.code == 0
    with pytest.raises(SystemExit) as done:
        main(["core", "check", "mine/board.yaml"])
    assert done.value.code == 1 and "sources: there are none" in capsys.readouterr().err
    Path("mine/core.v").write_text("module mine; endmodule\n", "utf-8")
    stated = Path("mine/rtl.yaml").read_text("utf-8")
    Path("mine/rtl.yaml").write_text(stated.replace("sources: []", "sources: [./core.v]"), "utf-8")
    name, found = difference(load_platform(Path("mine/board.yaml")))
    assert name == "start and stop"
    assert "timeout" in found and "retire_o" in found


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["ibex"], "is a core of covp's own"),
        (["Mine"], "cannot be a name"),
        (["mine", "--isa", "armv7-m"], "are RISC-V"),
        (["mine", "--isa", "rv32iq"], "no extension"),
        (["mine", "--package", "p", "--root", "."], "in one of them"),
    ],
)
def test_a_new_core_that_cannot_be(arguments, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as done:
        main(["core", "new", *arguments])
    assert done.value.code == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
