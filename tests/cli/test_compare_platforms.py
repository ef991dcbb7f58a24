"""`covp compare` with several platforms: one row per model and platform."""

import re
import shlex
from pathlib import Path

import pytest

from covp.chip.platform_file import load_platform, platforms_dir

from .conftest import Call, wrong_outputs
from .documents import run_of

BOARDS = ("-p", "hifive1", "-p", "stm32h743", "-p", "cortex-m0plus")


@pytest.mark.costly
def test_rows_are_those_of_single_runs_and_say_what_does_not_fit(call: Call, small: Path) -> None:
    done = call("compare", small, "kws", *BOARDS, "--json")
    assert (done.status, done.err) == (0, "")
    rows = {(row["model"], row["platform"]): row for row in done.document["rows"]}
    assert len(rows) == 6
    assert [row["fits"] for row in rows.values()] == [True, True, True, False, True, True]
    refused = rows.pop(("kws", "hifive1"))
    assert "bytes too much" in refused["reason"] and refused["run"] is None
    for (model, platform), row in rows.items():
        alone = call("run", small if model == "small" else model, "-p", platform, "--json").document
        for key in ("instructions", "cycles", "memory", "outputs", "seconds"):
            assert row["run"][key] == alone[key], key
        run_of(row["run"])


@pytest.mark.costly
def test_free_and_used_bytes_are_the_regions(call: Call, small: Path) -> None:
    for row in call("compare", small, *BOARDS, "--json").document["rows"]:
        platform = load_platform(row["platform"])
        sizes = {region.name: region.bytes for region in platform.memory}
        assert {r["name"]: r["size_bytes"] for r in row["regions"]} == sizes
        assert all(r["free_bytes"] + r["used_bytes"] == r["size_bytes"] for r in row["regions"])
        memory = row["run"]["memory"]
        used = {k: sum(r["used_bytes"] for r in row["regions"] if r["kind"] == k) for k in
                ("flash", "ram")}  # fmt: skip
        assert memory["ram_bytes"] <= used["ram"], "the loaded input lies there too"
        assert 0.9 < used["flash"] / memory["flash_bytes"] <= 1


@pytest.mark.costly
def test_table(call: Call, small: Path) -> None:
    done = call("compare", "kws", *BOARDS, "-a", "qconv2d")
    assert (done.status, done.err) == (0, "")
    lines = [line for line in done.out.splitlines() if line.startswith(" kws")]
    assert [line.split()[:3] for line in lines] == [
        ["kws", "hifive1", "NO"],
        ["kws", "stm32h743", "yes"],
        ["kws", "cortex-m0plus", "yes"],
    ]
    assert "kws on hifive1: " in done.out and "bytes too much" in done.out
    assert "dtcm" in lines[1] and "100%" in lines[1]
    assert lines[1].split()[-1] == "yes"


@pytest.mark.costly
def test_a_platform_without_a_place_for_accelerators_is_a_row(call: Call, small: Path) -> None:
    done = call("compare", small, "-p", "mps3-an547", "-p", "riscv32", "-a", "qconv2d", "--json")
    assert done.status == 0
    first, second = done.document["rows"]
    assert "has no place for accelerators" in first["reason"]
    assert second["mac_coverage"] > 0.5


def test_a_difference_is_status_1_and_is_shown_again(
    call: Call, small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("covp.evaluation.sample.run_all", wrong_outputs)
    board = tmp_path / "mine.yaml"
    board.write_text((platforms_dir() / "nrf52840.yaml").read_text())
    done = call("compare", small, "-p", "riscv32", "-p", board)
    assert done.status == 1
    lines = done.out.splitlines()
    assert len([line for line in lines if line.startswith(" small") and "DIFFER" in line]) == 2
    again = re.findall(r"again: covp (.*)$", done.out, re.M)
    assert [str(small) in line for line in again] == [True, True]
    assert [call(*shlex.split(line)).status for line in again] == [1, 1]
    assert str(board) in again[1]


def test_a_wrong_call_is_one_line(call: Call, small: Path) -> None:
    assert "nix" in call("compare", "nix", *BOARDS).refusal
    assert "unknown platform 'nix'" in call("compare", small, *BOARDS, "-p", "nix").refusal
    assert "--accel" in call("compare", small, "-p", "riscv32").refusal
