"""What benchmarks/ship_records.py keeps of the shipped trials and of those of this machine."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

from covp.building.tune.records import (
    FOLDER,
    VERSION,
    ScheduleTrial,
    append_trials,
    write_shipped_trials,
)

SCRIPT = Path(__file__).parents[3] / "benchmarks" / "ship_records.py"
SPEC = importlib.util.spec_from_file_location("ship_records", SCRIPT)
assert SPEC is not None and SPEC.loader is not None
ship_records = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(ship_records)


def trial(layer, schedule, cycles, flash, memory="", core="rv32imc", version=VERSION):
    return ScheduleTrial(
        layer, core, "zig 1", version, schedule, None, cycles, flash, 0, True, memory=memory
    )


def test_shipped_trials_stay_and_newer_ones_replace(tmp_path):
    shipped, own = tmp_path / "shipped", tmp_path / "own"
    shipped.mkdir()
    own.mkdir()
    old = [
        trial("a", "mac x=1", 100, 50),
        trial("a", "mac x=2", 90, 60),
        trial("b", "mac x=1", 10, 10),
    ]
    write_shipped_trials(shipped / "rv32imc-zig-1.jsonl", old)
    other = trial("a", "mac x=1", 5, 5, core="other")
    write_shipped_trials(shipped / "other-zig-1.jsonl", [other])
    slow = trial("a", "mac x=2", 70, 60, memory="waits")
    new = [trial("a", "mac x=2", 80, 60), trial("a", "mac x=4", 200, 70), slow]
    append_trials(own / "rv32imc-zig-1.jsonl", [*new, trial("a", "mac x=8", 1, 1, memory="?")])
    assert ship_records.fronts(shipped, ship_records.own_trials(own)) == {
        "rv32imc-zig-1-waits.jsonl": [slow],
        "rv32imc-zig-1.jsonl": [
            trial("a", "mac x=2", 80, 60),
            trial("a", "mac x=1", 100, 50),
            trial("b", "mac x=1", 10, 10),
        ],
    }


def test_asking_for_help_writes_nothing(tmp_path):
    files = sorted(FOLDER.glob("*.jsonl"))
    before = [path.read_bytes() for path in files]
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--help"], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0 and "--dry-run" in done.stdout
    assert [path.read_bytes() for path in files] == before
