"""`covp fits`: every platform beside a budget, and `-p all` in `covp compare`."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from covp.chip.platform_file import every_platform, platforms_dir
from covp.errors import UsageError
from covp.evaluation.fits import Limits

from .conftest import Call

BOARDS = ("-p", "nucleo-f401re", "-p", "hifive1", "-p", "nrf52840", "-p", "riscv32")


@pytest.mark.costly  # compiles for each
def test_every_platform_is_in_the_table_and_the_figures_are_those_of_run(
    call: Call, small: Path
) -> None:
    document = call("fits", small, "--json").document
    assert document["schema"] == "covp.fits/1"
    rows = {row["platform"]: row for row in document["rows"]}
    assert sorted(rows) == [board.name for board in every_platform()] and len(rows) >= 30
    for name in ("nucleo-u575zi", "cv32e40p"):
        run = call("run", small, "-p", name, "--json").document
        for key in ("instructions", "cycles", "seconds", "energy_j", "cycles_source"):
            assert rows[name][key] == run[key], key
        for key in ("flash_bytes", "ram_bytes"):
            assert rows[name][key] == run["memory"][key]
    assert all(row["matches_reference"] and row["fits"] for row in rows.values())
    seconds = [row["seconds"] for row in document["rows"]]
    assert seconds == sorted(seconds)


@pytest.mark.costly
def test_what_is_too_big_is_said_in_bytes(call: Call) -> None:
    """kws needs 16,768 bytes of arena; a HiFive1 has 16 KB of RAM."""
    told = call("fits", "kws", *BOARDS)
    assert told.status == 0
    assert "kws: fits 3 of 4 platforms" in told.out
    (row,) = re.findall(r"^ hifive1 .*", told.out, re.MULTILINE)
    document = call("fits", "kws", *BOARDS, "--json").document
    last = document["rows"][-1]
    assert last["platform"] == "hifive1" and not last["fits"] and last["seconds"] is None
    lacking = last["too_small"]["ram"]
    assert lacking > 0 and f"NO: ram {lacking:,} B too small" in row
    assert f"{lacking} bytes too much" in last["reason"]


@pytest.mark.costly
def test_where_the_fastest_schedules_do_not_fit_smaller_ones_are_tried(
    call: Call, tmp_path: Path
) -> None:
    """resnet's weights are 77 KB, three times that for the fastest kernels."""
    board = (platforms_dir() / "nucleo-f401re.yaml").read_text()
    (tmp_path / "small.yaml").write_text(board.replace("size: 512K", "size: 160K"))
    boards = ("-p", tmp_path / "small.yaml", "-p", "nucleo-f401re")
    document = call("fits", "resnet", *boards, "--json").document
    large, small = document["rows"]
    assert (large["fits"], large["optimize"]) == (True, "cycles")
    assert (small["fits"], small["optimize"]) == (True, "size")
    again = call("run", "resnet", "-p", boards[1], "--optimize", "size", "--json").document
    assert small["cycles"] == again["cycles"] > large["cycles"]
    assert "yes (size)" in call("fits", "resnet", *boards).out


@pytest.mark.slow
def test_a_budget_sorts_and_marks(call: Call, tmp_path: Path) -> None:
    page = tmp_path / "fits.html"
    document = call("fits", "kws", *BOARDS, "--budget", "ms=71,ram=64K", "--json").document
    assert document["budget"] == {"ms": 71, "ram": 65536}
    by_name = {row["platform"]: row for row in document["rows"]}
    for row in document["rows"]:
        within = row["seconds"] is not None and row["seconds"] <= 0.071
        assert row["fits"] == within and (row["reason"] is None) == within
    assert by_name["nrf52840"]["reason"] == "over 71 ms"
    assert [row["fits"] for row in document["rows"]] == [True, True, False, False]
    by_flash = call("fits", "kws", *BOARDS, "--budget", "flash=2M", "--json").document["rows"]
    flash = [row["flash_bytes"] for row in by_flash if row["flash_bytes"]]
    assert flash == sorted(flash)
    energy = call("fits", "kws", *BOARDS, "--budget", "mj=100", "--json").document["rows"]
    assert [row["platform"] for row in energy if row["fits"]] == ["nrf52840"]
    assert "energy not known" in {row["reason"] for row in energy}
    assert call("fits", "kws", *BOARDS, "-o", page).status == 0
    text = page.read_text()
    assert "hifive1" in text and "too small" in text and "<script src" not in text


@pytest.mark.costly
def test_accelerators_and_several_models(call: Call, small: Path) -> None:
    rows = call("fits", small, "kws", "-p", "pico", "-p", "esp32-c3", "-a", "qconv2d", "--json")
    found = [(row["model"], row["platform"]) for row in rows.document["rows"]]
    assert len(found) == 4 and [model for model, _ in found] == ["small", "small", "kws", "kws"]
    assert max(row["cycles"] for row in rows.document["rows"]) < 1_000_000


@pytest.mark.costly
def test_the_command_for_more_runs(
    call: Call, small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    call("new", "platform", "own", "--core", "ibex", "--flash", "1M", "--ram", "64K")
    for board in ("pico", "own.yaml"):
        told = call("fits", small, "-p", board, "-a", "gemm").out
        (line,) = re.findall(r"^more of one: covp (.*)$", told, re.MULTILINE)
        assert line == f"run {small} -p {board} -a gemm --seed 0"
        assert call(*line.split()).status == 0


@pytest.mark.costly
def test_all_in_compare(call: Call, small: Path) -> None:
    document = call("compare", small, "-p", "all", "--check", "none", "--json").document
    assert document["schema"] == "covp.survey/1"
    assert document["platforms"] == [board.name for board in every_platform()]
    assert json.dumps(document).count('"fits": true') == len(document["platforms"])


def test_eighty_columns_show_time_and_memory(
    call: Call, small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    told = call("fits", small, *BOARDS).out
    assert all(word in told for word in ("fits", "time", "flash", "RAM"))
    assert max(map(len, told.splitlines())) <= 80


@pytest.mark.parametrize(
    ("budget", "told"),
    [
        ("rom=1", "no limit 'rom': did you mean ram"),
        ("ms=1,ms=2", "ms is there twice"),
        ("ms", "ms=: write a number of ms, above 0"),
        ("ms=0", "ms=0: write"),
        ("ms=nan", "ms=nan: write"),
        ("ram=64Q", "ram=64Q: write bytes or a size such as 64K"),
        ("ram=0", "ram=0: write"),
        ("flash=-1", "flash=-1: write"),
    ],
)
def test_a_wrong_budget_is_one_line(call: Call, budget: str, told: str) -> None:
    assert told in call("fits", "kws", "--budget", budget).refusal


def test_a_budget_is_read() -> None:
    assert Limits.read("").limits == {}
    read = Limits.read("ms=.5, ram=64K,flash=1000,mj=2.25").limits
    assert read == {"ms": 0.5, "ram": 65536, "flash": 1000, "mj": 2.25}
    assert [*read] == ["ms", "ram", "flash", "mj"]
    with pytest.raises(UsageError):
        Limits.read("ms=1e400")
