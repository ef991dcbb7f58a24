"""How long a sweep of 72 designs takes: with an empty cache, with a full one, and started again.

    python benchmarks/sweep.py [--jobs 2]

Four models of MLPerf Tiny on three platforms with six set-ups each, compiled, run and compared
with the reference. Exits with 1 where a design fails or differs from the reference, where the rows
of the three are not the same, or where one takes longer than it is to on two idle cores.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import msgspec
import yaml

from covp.exploration.sweep.points import Row
from covp.exploration.sweep.store import stored_rows

SWEEP = {
    "models": ["resnet", "kws", "vww", "toycar"],
    "platforms": ["riscv32", "cortex-m4", "cortex-m7"],
    "accelerators": [
        [],
        ["qconv2d"],
        ["qconv2d:macs_per_cycle=64"],
        ["gemm:size=16"],
        ["vector"],
        ["gemm", "vector"],
    ],
}
WANTED = {"empty cache": 180.0, "full cache, new folder": 20.0, "started again": 5.0}


@dataclass(frozen=True)
class Call:
    """One call of ``covp sweep``.

    Attributes:
        name: of `WANTED`.
        seconds: of wall-clock time.
        rows: of its folder, by key.
    """

    name: str
    seconds: float
    rows: dict[str, Row]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--jobs", type=int, default=2)
    jobs = parser.parse_args().jobs
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "sweep.yaml").write_text(yaml.safe_dump(SWEEP))
        os.environ["COVP_CACHE_DIR"] = str(folder / "cache")
        outputs = "first", "second", "second"
        calls = [_call(*pair, folder, jobs) for pair in zip(WANTED, outputs, strict=True)]
    print(f"{len(calls[0].rows)} designs, {jobs} processes, {os.cpu_count()} cores")
    for call in calls:
        wanted = WANTED[call.name]
        print(f"{call.name:24}{call.seconds:8.1f} s, at most {wanted:g} s")
    sys.exit(0 if all(map(_is_right, calls)) and _are_alike(calls) else 1)


def _call(name: str, output: str, folder: Path, jobs: int) -> Call:
    command = [sys.executable, "-c", "from covp.cli.main import main; main()", "sweep"]
    command += [str(folder / "sweep.yaml"), "-o", str(folder / output), "--jobs", str(jobs)]
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    seconds = time.perf_counter() - start
    rows = stored_rows(folder / output / "sweep.sqlite")
    return Call(name, seconds, {row.key: row for row in rows})


def _is_right(call: Call) -> bool:
    wrong = [row for row in call.rows.values() if not (row.is_ok and row.matches_reference)]
    for row in wrong:
        print(f"{row.model} on {row.platform} with {row.accelerators}: {row.reason or 'differs'}")
    return not wrong and len(call.rows) == 72 and call.seconds <= WANTED[call.name]


def _are_alike(calls: list[Call]) -> bool:
    documents = {msgspec.json.encode(dict(sorted(call.rows.items()))) for call in calls}
    return len(documents) == 1


if __name__ == "__main__":
    main()
