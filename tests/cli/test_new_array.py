"""`covp new array`: the walk of docs/tiled-units.md, in an empty folder."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from covp.accelerator import Tile
from covp.accelerator.registry import find_backend
from covp.accelerator.tiled.commands import NAMES
from covp.cli.main import covp
from covp.evaluation import evaluate

PAGE = Path(__file__).parents[2] / "docs" / "tiled-units.md"


@pytest.fixture
def array(tmp_path: Path) -> Path:
    covp(["new", "array", "mac16", "-o", str(tmp_path / "mac16")], standalone_mode=False)
    return tmp_path / "mac16" / "mac16.py"


@pytest.mark.costly
def test_it_runs_bit_exactly_and_is_short(array: Path) -> None:
    assert len(array.read_text().splitlines()) <= 120
    result = evaluate("toycar", "riscv32", [f"{array}:size=8"])
    assert result.matches_reference
    assert {entry.layer.target for entry in result.profile.layers} == {"mac16"}


def test_the_page_shows_that_array(array: Path, tmp_path: Path) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)
    shown = tmp_path / "shown.py"
    shown.write_text(code)
    written: Any = find_backend(str(array))
    quoted: Any = find_backend(str(shown))
    assert quoted.multipliers() == written.multipliers() == 256
    for tile in (Tile(1, 1, 1, 1), Tile(125, 64, 40, 1), Tile(25, 1, 9, 64)):
        assert quoted.cycles(tile) == written.cycles(tile)


def test_the_page_names_the_commands_that_there_are() -> None:
    rows = re.findall(r"^\| (\d) \| ([A-Z]+)", PAGE.read_text(encoding="utf-8"), re.M)
    assert rows == [(str(code), name) for code, name in enumerate(NAMES) if name]


def test_its_sweep_names_what_there_is(array: Path) -> None:
    text = (array.parent / "sweep.yaml").read_text()
    names = {parameter.name for parameter in find_backend(str(array)).parameters}
    varied = set(re.findall(r"mac16\.(\w+):", text))
    assert varied == {"size", "scratchpad", "stationary"} and varied <= names
