"""Whatever is killed: the rows are those of an undisturbed sweep, and no process stays."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from covp.errors import CovpError
from covp.exploration.sweep.execute import execute
from covp.exploration.sweep.status import read_status
from covp.exploration.sweep.store import Store, stored_rows
from covp.runtime.jobs import Processes, open_jobs
from tests.exploration.sweep import standins
from tests.exploration.sweep.cluster import cluster
from tests.processes import descendants, running


def coordinator(*arguments: object, **environment: str) -> subprocess.Popen[str]:
    """A process that does a sweep of stand-ins, in a group of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.exploration.sweep.coordinator", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        cwd=Path(__file__).parents[3],
        env={**os.environ, **environment},
    )


def holds(where: object, count: int) -> bool:
    """Whether a store has exactly the rows of an undisturbed sweep."""
    points = standins.points(count, binaries=40)
    found = stored_rows(str(where))
    by_key = {row.key: row for row in found}
    return len(found) == count and [by_key[p.key] for p in points] == standins.arithmetic(points)


@contextmanager
def killing(victims: Iterator[int], every: float) -> Iterator[list[int]]:
    """Kill the next victim from time to time; gives those that were.

    A few only: a machine under load may take longer to start one than it takes to kill it.
    """
    over, killed = threading.Event(), list[int]()

    def kill() -> None:
        while len(killed) < 3 and not over.wait(every):
            victim = next(victims)
            os.kill(victim, signal.SIGKILL)
            killed.append(victim)

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield killed
    finally:
        over.set()
        thread.join()


@pytest.mark.costly
def test_interrupted_and_started_again(tmp_path: Path) -> None:
    store, folder = tmp_path / "s.sqlite", tmp_path / "temporary"
    folder.mkdir()
    for number, status in ((signal.SIGKILL, -9), (signal.SIGTERM, 130), (signal.SIGINT, 130)):
        process = coordinator(store, 160, TMPDIR=str(folder))
        assert process.stdout and process.stdout.readline() == "working\n"
        below = descendants(process.pid)
        assert read_status(store).running[0].endswith(f":{process.pid}")
        os.killpg(process.pid, number) if number == signal.SIGINT else process.send_signal(number)
        errors = process.communicate(timeout=60)[1]
        assert process.returncode == status
        assert number == signal.SIGKILL or errors == ""
        deadline = time.monotonic() + 30
        while running(below) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert below and not running(below)
    assert 0 < read_status(store).left < 160
    assert coordinator(store, 160, TMPDIR=str(folder)).wait(timeout=120) == 0
    assert holds(store, 160)
    assert list(folder.iterdir()) == []  # nor what the killed one had left


@pytest.mark.costly
def test_killed_workers_are_not_missed(tmp_path: Path) -> None:
    points, before = standins.points(100, binaries=40), descendants(os.getpid())
    with Store(tmp_path / "s.sqlite") as store, Processes(standins.slowly, 4) as workers:

        def victims() -> Iterator[int]:
            while True:
                pids = descendants(os.getpid()) - before
                if pids:
                    yield random.choice(sorted(pids))

        with killing(victims(), 0.5) as killed:
            execute(points, store, workers)
        rows = store.rows([point.key for point in points])
    assert rows == standins.arithmetic(points)
    assert killed


@pytest.mark.costly
def test_a_cluster_started_by_hand(postgres_url: str) -> None:
    with cluster(2) as (address, (scheduler, worker, _)):
        process = coordinator(postgres_url, 120, address)
        assert process.stdout and process.stdout.readline() == "working\n"
        worker.kill()
        assert process.wait(timeout=120) == 0
        assert holds(postgres_url, 120)
        process = coordinator(postgres_url, 400, address)
        assert process.stdout and process.stdout.readline() == "working\n"
        scheduler.kill()
        errors = process.communicate(timeout=60)[1]
        assert process.returncode == 1
        assert errors.startswith(f"covp: {address}: the work cannot go on there")
        assert errors.count("\n") == 1


@pytest.mark.slow
def test_a_scheduler_without_workers(tmp_path: Path) -> None:
    with (
        cluster(0) as (address, _),
        Store(tmp_path / "s.sqlite") as store,
        open_jobs(standins.arithmetic, scheduler=address) as workers,
        pytest.raises(CovpError, match=f"dask worker {address}"),
    ):
        execute(standins.points(3), store, workers)


@pytest.mark.slow
def test_two_coordinators_share_work(postgres_url: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    both = [coordinator(postgres_url, 200, 1, **{standins.LOG: str(log)}) for _ in range(2)]
    assert [process.wait(timeout=120) for process in both] == [0, 0]
    assert holds(postgres_url, 200)
    evaluated = log.read_text().split()
    assert len(evaluated) == len(set(evaluated)) == 200


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "nothing://here", "nonsense"])
def test_a_scheduler_that_is_not_there(address: str, tmp_path: Path) -> None:
    points = standins.points(3)
    with (
        Store(tmp_path / "s.sqlite") as store,
        open_jobs(standins.arithmetic, scheduler=address) as workers,
        pytest.raises(CovpError, match=f"^{address}: no ") as error,
    ):
        execute(points, store, workers)
    assert "\n" not in str(error.value)
