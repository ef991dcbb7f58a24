"""What is printed on a terminal of 80 columns: figures before texts, lines folded at words."""

from __future__ import annotations

from pathlib import Path

import pytest

import covp.cli.doctor
from covp.cli.output import echo

from .conftest import Call

LONG = "gemm:technology=gemmini-22nm,startup_cycles=64"
SWEEP = f"""
models: [{{model}}]
platforms: [nucleo-l4r5zi, nucleo-f746zg]
accelerators: [["{LONG}"]]
vary:
  gemm.bytes_per_cycle: [1, 16]
  platform.flash.wait_states.fetch: [0, 4]
search: {{{{kind: grid, objectives: [cycles]}}}}
"""


@pytest.fixture(autouse=True)
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


@pytest.mark.costly
def test_a_sweep_prints_figures(call: Call, small: Path, tmp_path: Path) -> None:
    pytest.importorskip("sqlalchemy", reason="covp[sweep] is not installed")
    file = tmp_path / "s.yaml"
    file.write_text(SWEEP.format(model=small))
    done = call("sweep", file, "-o", tmp_path / "rows", "--jobs", "1")
    assert done.status == 0, done.err
    table = done.out.partition("designs with figures")[0]
    assert "cycles" in table and "(est.)" in table
    assert table.count(LONG) == 1  # what is the same of all stands once
    assert max(map(len, table.splitlines())) <= 80


def test_doctor_says_how_to_get_what_is_missing(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(covp.cli.doctor, "_tool_version", lambda name: None)
    text = " ".join(call("doctor").out.split())
    assert "missing: apt install openocd" in text and "--device openocd:HOST:PORT" in text


def test_platforms_have_all_figures_and_few_lines(call: Call) -> None:
    done = call("platforms")
    table, _, rest = done.out.partition("not shown")
    assert "other names: " in rest
    lines = [line for line in table.splitlines() if line.strip()]
    head = lines[0].split()
    assert head == ["platform", "description", "clock", "flash", "RAM"]
    continued = ["x" if line.startswith("  ") else "." for line in lines[2:]]
    assert "xxxx" not in "".join(continued), "a description takes four lines at most"


@pytest.mark.costly
def test_lines_are_folded_at_words(call: Call, small: Path) -> None:
    wide = call("run", small, "-p", "nucleo-l4r5zi", "--verbose").out.splitlines()
    assert max(map(len, wide)) <= 80
    text = " ".join(" ".join(wide).split())
    assert "STMicroelectronics NUCLEO_L4R5ZI, X-CUBE-AI" in text


def test_commands_and_pipes_stay_whole(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    again = f"again: covp run {'long/' * 30}model.tflite -p riscv32"
    for text in (again, f"| {'model | ' * 20}"):
        echo(text)
        assert capsys.readouterr().out == f"{text}\n"
    monkeypatch.delenv("COLUMNS")
    echo("word " * 40)
    assert capsys.readouterr().out == "word " * 40 + "\n"
