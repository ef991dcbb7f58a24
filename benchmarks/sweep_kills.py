"""What kills do to a sweep: rows that are lost, there twice, or other than undisturbed.

    python -m benchmarks.sweep_kills [--sizes 8] [--jobs 8]

Designs of kws and toycar on two platforms with gemm, whose size takes a build and a run each and
whose port is retimed. First undisturbed; then with one of the workers killed by SIGKILL every five
seconds; with SIGKILL of the whole in the middle, started again; the same with PostgreSQL as the
store, and with its server lost for five seconds, three times; on a Dask scheduler with two workers
started by hand, of which one gets SIGKILL. Exits with 1 where anything is lost, there twice or
other, where a message speaks of a lock, or a process stays.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import yaml

from covp.errors import CovpError
from covp.exploration.sweep.points import Row
from covp.exploration.sweep.status import read_status
from covp.exploration.sweep.store import stored_rows
from tests.exploration.sweep import postgres
from tests.exploration.sweep.cluster import cluster
from tests.processes import descendants, running

COMMAND = [sys.executable, "-c", "from covp.cli.main import main; main()", "sweep"]
EVERY = 5.0
Disturb = Callable[[subprocess.Popen[str]], int]
"""Disturbs the coordinator of a sweep; returns the number of kills, -1: it is to be killed."""


@dataclass(frozen=True)
class Outcome:
    """What came of a sweep.

    Attributes:
        rows: by key.
        count: of rows in the store.
        kills, starts: how often something was killed, and the sweep started.
        seconds: of wall-clock time.
        problem: what is wrong; empty where nothing is.
    """

    rows: dict[str, Row]
    count: int
    kills: int
    starts: int
    seconds: float
    problem: str


@dataclass(frozen=True)
class Sweeps:
    """Sweeps of one file.

    Attributes:
        file: of the sweep.
        folder: for what they keep.
        jobs: workers of the local cluster.
    """

    file: Path
    folder: Path
    jobs: int

    def run(self, name: str, disturbed: Callable[[str], Disturb], *options: str) -> Outcome:
        """One sweep, started again until it is done.

        Args:
            name: of its folder.
            disturbed: gives what disturbs it, by where its rows are.
            options: of `covp sweep`.
        """
        output = self.folder / name
        where = options[1] if "--store" in options else str(output / "sweep.sqlite")
        started, errors, kills = time.monotonic(), "", 0
        stay, problems = set[int](), list[str]()
        status: int | None = None
        starts = 0
        while status != 0 and starts < 3:
            process = self._start(output, options)
            starts += 1
            if starts == 1:
                kills = disturbed(where)(process)
                below = descendants(process.pid)
                if kills < 0:
                    process.kill()
            message = process.communicate()[1]
            errors += message
            status = process.returncode
            if status != 0 and not (starts == 1 and kills < 0):
                problems.append(f"status {status}: {message[-300:].strip()}")
            if starts == 1:
                time.sleep(2)
                stay = running(below)
        problems += [text for text in errors.splitlines() if "locked" in text.lower()]
        problems += [f"{len(stay)} processes stay"] if stay else []
        rows = stored_rows(where)
        return Outcome(
            {row.key: row for row in rows},
            len(rows),
            abs(kills),
            starts,
            time.monotonic() - started,
            "; ".join(problems),
        )

    def _start(self, output: Path, options: tuple[str, ...]) -> subprocess.Popen[str]:
        jobs = [] if "--scheduler" in options else ["--jobs", str(self.jobs)]
        call = [*COMMAND, str(self.file), "-o", str(output), *jobs, *options]
        return subprocess.Popen(call, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def nothing(process: subprocess.Popen[str]) -> int:
    """Undisturbed."""
    return 0


def kill_workers(process: subprocess.Popen[str]) -> int:
    """SIGKILL one of the workers every five seconds, until the sweep ends."""
    kills = 0
    while True:
        try:
            process.wait(EVERY)
            return kills
        except subprocess.TimeoutExpired:
            workers = [pid for pid in descendants(process.pid) if is_worker(pid)]
            if workers:
                os.kill(random.choice(workers), signal.SIGKILL)
                kills += 1


def is_worker(pid: int) -> bool:
    """Whether a process is one that evaluates."""
    try:
        return b"covp.runtime.jobs.child" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def after(rows: int, where: str, then: Callable[[], int]) -> Disturb:
    """Wait until a store has some rows, and then do something."""

    def disturb(process: subprocess.Popen[str]) -> int:
        while process.poll() is None:
            with contextlib.suppress(CovpError):  # it is not there yet
                if read_status(where).done >= rows:
                    return then()
            time.sleep(0.2)
        return 0

    return disturb


def lose(server: postgres.Server, half: int, where: str) -> Disturb:
    """Stop the server for some seconds, after a quarter, half and three quarters of the rows."""

    def restart() -> int:
        server.stop()
        time.sleep(EVERY)
        server.start()
        return 1

    def disturb(process: subprocess.Popen[str]) -> int:
        parts = [half // 2, half, half + half // 2]
        return sum(after(rows, where, restart)(process) for rows in parts)

    return disturb


def specification(sizes: int) -> dict[str, object]:
    """The file of the sweep: 16 designs for each size."""
    return {
        "models": ["kws", "toycar"],
        "platforms": ["riscv32", "cortex-m4"],
        "accelerators": [["gemm"]],
        "vary": {
            "gemm.size": list(range(2, 2 + sizes)),
            "gemm.bytes_per_cycle": [1, 2, 4, 8],
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sizes", type=int, default=8)
    parser.add_argument("--jobs", type=int, default=8)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, cluster(2) as (address, (_, worker, _)):
        file = Path(folder) / "sweep.yaml"
        file.write_text(yaml.safe_dump(specification(given.sizes)))
        good = judge(Sweeps(file, Path(folder), given.jobs), 8 * given.sizes, address, worker)
    sys.exit(0 if good else 1)


def judge(sweeps: Sweeps, half: int, address: str, worker: subprocess.Popen[bytes]) -> bool:
    """Whether all ways give the rows of the undisturbed one."""

    def all_in_the_middle(where: str) -> Disturb:
        return after(half, where, lambda: -1)

    def killed() -> int:
        worker.kill()
        return 1

    def one_worker(where: str) -> Disturb:
        return after(half // 2, where, killed)

    found = {
        "undisturbed": sweeps.run("undisturbed", lambda where: nothing),
        "a worker killed every 5 s": sweeps.run("workers", lambda where: kill_workers),
        "all killed in the middle": sweeps.run("all", all_in_the_middle),
        "by hand, one worker killed": sweeps.run("hand", one_worker, "--scheduler", address),
    }
    if postgres.programs() is not None:
        with postgres.server() as server:
            found["PostgreSQL, all killed"] = sweeps.run(
                "PostgreSQL", all_in_the_middle, "--store", server.url
            )
        with postgres.server() as server:
            found["PostgreSQL, server lost"] = sweeps.run(
                "lost", lambda where: lose(server, half, where), "--store", server.url
            )
    wanted = found["undisturbed"].rows
    good = [said(name, outcome, wanted) for name, outcome in found.items()]
    return all(good)


def said(name: str, outcome: Outcome, wanted: dict[str, Row]) -> bool:
    """Print what came of a sweep; whether it is as it should be."""
    rows = outcome.rows
    lost, more = len(wanted.keys() - rows.keys()), outcome.count - len(wanted.keys() & rows.keys())
    other = sum(rows[key] != row for key, row in wanted.items() if key in rows)
    failed = sum(not row.is_ok for row in rows.values())
    print(f"{name:27} {outcome.kills} kills, {outcome.starts} starts, {outcome.seconds:.0f} s: "
          f"{outcome.count} rows, {lost} lost, {more} too many, {other} other, {failed} failed"
          f"{outcome.problem and '; ' + outcome.problem}")  # fmt: skip
    return not (lost or more or other or failed or outcome.problem)


if __name__ == "__main__":
    main()
