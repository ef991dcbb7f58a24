"""Tables fit the terminal, and numbers stay whole."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from covp.cli.output import print_table
from covp.report.table import Table, Value, numbers, texts
from covp.report.text_table import fit

from .conftest import Call

COLUMNS = [
    *texts("layer", "operator"),
    *numbers("instructions", "est. cycles of core and unit", "schedule"),
]
ROWS: list[list[Value]] = [
    ["0", "DEPTHWISE_CONV_2D", 123_456_789, 987_654_321_012, "tile=4 unroll=2 packed=yes"],
    ["1", "ADD", 1, None, "a text of several words that says why the layer is where it is"],
]


@pytest.mark.parametrize("width", [30, 40, 60, 80, 100, 200])
def test_numbers_are_whole_and_lines_fit(
    width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    print_table(Table("", COLUMNS, ROWS))
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= width
    text = " ".join(out.split())
    for heading, number in (("instructions", "123,456,789"), ("est.", "987,654,321,012")):
        assert number in text or ("not shown" in text and heading in text.split("not shown")[1])
    assert "layer" in text and "0" in text


def test_all_columns_where_there_is_room(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    print_table(Table("", COLUMNS, ROWS))
    out = capsys.readouterr().out
    assert all(column.heading in out for column in COLUMNS)
    assert "not shown" not in out


def test_columns_leave_in_the_order_given() -> None:
    columns = ["name", "first", "second", "third"]
    rows = [["a", *["123,456,789,012"] * 3]]
    assert fit(columns, rows, 60)[0] == [0, 1, 2, 3]
    assert fit(columns, rows, 45)[0] == [0, 1, 2]
    assert fit(columns, rows, 45, ("first",))[0] == [0, 2, 3]
    assert fit(columns, rows, 25, ("second", "first"))[0] == [0, 3]
    assert fit(columns, rows, 5)[0] == [0]


@pytest.mark.costly
@pytest.mark.parametrize("command", ["platforms", "models", "doctor", "cache"])
@pytest.mark.parametrize("width", [80, 200])
def test_listings_fit(
    command: str, width: int, call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    if command == "cache":  # one of its own, and a small one
        monkeypatch.setenv("COVP_CACHE_DIR", str(tmp_path / "cache"))
        assert call("run", "toycar", "-p", "riscv32", "--check", "none").status == 0
    done = call(command)
    paths = [line for line in done.out.splitlines() if not re.match(r"\s*/", line)]
    assert done.status == 0 and max(map(len, paths)) <= width


@pytest.mark.costly
def test_streams_without_unicode_get_lines_that_they_can_hold() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "covp", "platforms"],
        env={**os.environ, "PYTHONIOENCODING": "latin-1"},
        capture_output=True,
        check=True,
    )
    assert b"riscv32" in done.stdout and b"internal error" not in done.stderr
