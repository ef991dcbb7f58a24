"""README's first command gives README's figures, with whatever compiler and models are here.

Never skipped: a new user has the newest compiler, and maybe no official model files.
"""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from covp.cli.main import main

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
TOLERANCE = 0.02
SYNTHETIC = {
    "resnet": (18_208_624, 332_635),
    "kws": (5_738_762, 20_417),
    "vww": (17_549_856, 9_768),
    "toycar": (591_432, 591_432),
}
"""Instructions alone and with qconv2d of the stand-ins, by zig 0.17.1."""
SYNTHETIC_GAIN = {"resnet": 0.30, "toycar": 0.17}
"""The share of the instructions that the schedules of the official weights save the stand-ins."""


def documented() -> dict[str, tuple[int, int]]:
    """The instructions in README's table, alone and with qconv2d."""
    (table,) = re.findall(r"<!-- results -->\n(.*?)\n\n", README, re.S)
    cells = [line.split("|")[1:4] for line in table.splitlines()[2:]]
    return {
        model.strip(): (int(alone.replace(",", "")), int(beside.replace(",", "")))
        for model, alone, beside in cells
    }


def test_the_stand_in_that_takes_more_is_named() -> None:
    assert f"vww takes {SYNTHETIC['vww'][0] / 1e6:.1f} million on the core alone" in README


@pytest.fixture(autouse=True)
def fresh_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("covp.building.tune.records.own_folder", lambda: tmp_path)


def compare(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, Any]]:
    with pytest.raises(SystemExit) as done:
        main([*arguments, "--check", "none", "--json"])
    output = capsys.readouterr()
    assert done.value.code == 0, output.err
    rows: list[dict[str, Any]] = json.loads(output.out)["rows"]
    return rows


def test_the_first_command_gives_the_figures(capsys: pytest.CaptureFixture[str]) -> None:
    demand_figures(capsys)


def test_the_first_command_without_the_official_models(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("COVP_MODEL_DIR", raising=False)
    demand_figures(capsys)


def demand_figures(capsys: pytest.CaptureFixture[str]) -> None:
    """Run README's first command, and compare its figures with those that are stated."""
    (command,) = re.findall(r"^pip install \. && covp (.*)$", README, re.M)
    figures = {"official": documented(), "synthetic": SYNTHETIC}
    rows = compare(capsys, *shlex.split(command))
    assert [row["model"] for row in rows] == list(SYNTHETIC) == list(documented())
    for row in rows:
        wanted = figures[row["cpu"]["model_source"]][row["model"]]
        found = row["cpu"]["instructions"], row["accelerated"]["instructions"]
        assert found == pytest.approx(wanted, rel=TOLERANCE), (row["model"], found, wanted)
        assert row["cpu"]["schedules"]["layers"] > 0


@pytest.mark.slow
def test_shipped_schedules_speed_up_other_weights(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("covp.graph.zoo.cache_dir", lambda name: Path("no downloads"))
    monkeypatch.delenv("COVP_MODEL_DIR", raising=False)
    call = ("compare", *SYNTHETIC_GAIN, "-p", "riscv32", "-a", "qconv2d")
    for tuned, plain in zip(
        compare(capsys, *call), compare(capsys, *call, "--untuned"), strict=True
    ):
        assert tuned["cpu"]["model_source"] == "synthetic"
        assert tuned["cpu"]["schedules"]["other_weights"] == tuned["cpu"]["schedules"]["layers"] > 0
        assert plain["cpu"]["schedules"]["layers"] == 0
        before, after = (row["cpu"]["instructions"] for row in (plain, tuned))
        gain = 1 - after / before
        assert gain == pytest.approx(SYNTHETIC_GAIN[tuned["model"]], abs=TOLERANCE), tuned["model"]
