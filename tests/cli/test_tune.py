"""``covp tune``: the table, the document, Ctrl-C, and what later commands make of the trials."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from covp.building.tune.records import read_trials
from covp.hardware.intrinsics import unregister

from .conftest import Call
from .test_process import COVP, run


@pytest.fixture
def records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the trials of an empty cache go."""
    monkeypatch.setenv("COVP_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache" / "records"


@pytest.mark.costly
def test_what_was_found_is_printed_and_used(call: Call, records: Path, small: Path) -> None:
    tuned = call("tune", small, "-p", "riscv32", "--trials", 3, "--jobs", 1, "--json").document
    assert tuned["schema"] == "covp.tune/1"
    trials = read_trials(Path(tuned["records"]))
    assert Path(tuned["records"]).parent == records
    assert len(trials) == sum(layer["tried"] for layer in tuned["layers"])
    for layer in tuned["layers"]:
        points = [(point["instructions"], point["flash_bytes"]) for point in layer["front"]]
        assert points == sorted(points) and len({flash for _, flash in points}) == len(points)
        best = min(layer["front"], key=lambda p: p["instructions"] + p["flash_bytes"] / 5)
        assert best["schedule"] == layer["schedule"] and layer["inexact"] == []
        assert best["instructions"] == layer["best_instructions"]
    found = {layer["index"]: layer["schedule"] for layer in tuned["layers"]}
    for command in (["run"], ["compare", "-a", "qconv2d"]):
        document = call(*command, small, "-p", "riscv32", "--json").document
        alone = document if command == ["run"] else document["rows"][0]["cpu"]
        used = {layer["index"]: layer["schedule"] for layer in alone["layers"]}
        assert used == found
    # a file that was measured elsewhere counts as soon as it is in the folder
    (taken,) = records.iterdir()
    shared = taken.rename(taken.with_name("from-a-colleague.jsonl"))
    again = call("tune", small, "-p", "riscv32", "--trials", 1, "--jobs", 1, "--json").document
    assert all(layer["tried"] > 1 for layer in again["layers"]) and shared.exists()


@pytest.mark.costly
def test_the_table_has_the_front(call: Call, records: Path, small: Path) -> None:
    done = call("tune", small, "-p", "riscv32", "--trials", 2, "--jobs", 1)
    assert done.status == 0 and done.err == ""
    for objective in ("cycles", "balanced", "size"):
        (line,) = (x for x in done.out.splitlines() if x.startswith(f"--optimize {objective} "))
        assert re.search(r" [\d,]+ cycles +[\d,]+ B flash", line)
    assert "new trials in" in done.out and "per second" in done.out
    assert "cycles pays at most 5,000 B of flash per thousand saved" in done.out


@pytest.mark.costly
def test_an_instruction_from_a_file(call: Call, records: Path, small: Path, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "from covp.hardware.intrinsics import DotProduct, register\n"
        "register(DotProduct('mine', frozenset(), 1, 'int8', '{sum} + {w} * {x}'))\n"
    )
    wanted = ("-p", "riscv32", "--search", "random", "--trials", 12, "--operators", file)
    try:
        tuned = call("tune", small, *wanted, "--json").document
    finally:
        unregister("mine")
    trials = read_trials(Path(tuned["records"]))
    assert any(trial.schedule.startswith("mine ") and trial.exact for trial in trials)


@pytest.mark.costly
def test_ctrl_c_keeps_what_was_found(tmp_path: Path, small: Path) -> None:
    environment = {**os.environ, "COVP_CACHE_DIR": str(tmp_path)}
    process = subprocess.Popen(
        [*COVP, "tune", str(small), "-p", "riscv32", "--search", "exhaustive", "--jobs", "2"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    deadline = time.monotonic() + 120
    while not (found := list(tmp_path.glob("records/*.jsonl"))):
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: the workers get it too
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, "", "covp: interrupted\n")
    kept = read_trials(found[0])
    assert kept and all(trial.exact for trial in kept)
    # it goes on: none of them is measured again
    again = run(
        "tune", small, "-p", "riscv32", "--trials", 2, "--jobs", 1, "--json", env=environment
    )
    assert again.returncode == 0, again.stderr
    schedules = [(trial.layer, trial.schedule) for trial in read_trials(found[0])]
    assert len(schedules) == len(set(schedules)) > len(kept)
    assert sum(layer["tried"] for layer in json.loads(again.stdout)["layers"]) == len(schedules)
