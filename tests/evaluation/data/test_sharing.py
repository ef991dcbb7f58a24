"""Samples in several processes: the same figures, errors as they are, nothing left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from covp.errors import UsageError
from covp.evaluation import Build, build
from covp.evaluation.data import Data, Quality, accuracy_of, bench
from covp.graph.zoo.tflite_writer import write_tflite
from tests.plain import plain
from tests.processes import descendants, running

from .networks import classifier, floats


@pytest.fixture(scope="module")
def made() -> Build:
    return build(classifier(), "riscv32")


@pytest.fixture
def data(tmp_path: Path) -> Data:
    """Ten parts, the last of them short."""
    np.save(tmp_path / "x.npy", floats((300, 6, 6, 2)))
    np.save(tmp_path / "y.npy", np.random.default_rng(1).integers(0, 12, 300))
    return Data(tmp_path / "x.npy", tmp_path / "y.npy")


def figures(quality: Quality) -> Quality:
    return replace(quality, seconds=0.0)


@pytest.mark.costly
@pytest.mark.parametrize("on", ["device", "reference"])
def test_any_number_of_processes_gives_the_same(
    on: Any, made: Build, data: Data, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = replace(data, on=on)
    wanted = figures(accuracy_of(made, given))
    monkeypatch.setattr(bench, "_ALONE", 0)
    steps: list[int] = []
    for jobs in (2, 3):
        found = accuracy_of(made, given, jobs=jobs, advance=lambda text, n: steps.append(n))
        assert figures(found) == wanted
    assert steps == [10] * 20


@pytest.mark.costly
def test_an_error_of_another_process_is_raised_here(
    made: Build, data: Data, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = np.load(data.samples)
    values[290] = np.inf
    np.save(data.samples, values)
    monkeypatch.setattr(bench, "_ALONE", 0)
    before = descendants(os.getpid())
    with pytest.raises(UsageError, match="samples 288 to 299: has values that are not finite"):
        accuracy_of(made, data, jobs=2)
    deadline = time.monotonic() + 20
    while running(descendants(os.getpid()) - before) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not running(descendants(os.getpid()) - before)


SPAWNED = """
import msgspec, multiprocessing, sys
from pathlib import Path
if __name__ == "__main__":
    multiprocessing.set_start_method("spawn")
    from covp.evaluation import build
    from covp.evaluation.data import Data, accuracy_of, bench
    bench._ALONE = 0
    folder = Path(sys.argv[1])
    made = build(folder / "model.tflite", "riscv32")
    quality = accuracy_of(made, Data(folder / "x.npy", folder / "y.npy"), jobs=2)
    print(msgspec.json.encode(quality.record()).decode())
"""


@pytest.mark.slow
def test_processes_that_are_not_forked(made: Build, data: Data) -> None:
    folder = data.samples.parent
    (folder / "model.tflite").write_bytes(write_tflite(classifier()))
    (folder / "main.py").write_text(SPAWNED)
    command = [sys.executable, str(folder / "main.py"), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert {**json.loads(done.stdout), "seconds": 0.0} == plain(
        figures(accuracy_of(made, data)).record()
    )


@pytest.mark.costly
@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_an_interrupt_leaves_nothing_behind(data: Data) -> None:
    folder = data.samples.parent
    (folder / "model.tflite").write_bytes(write_tflite(classifier()))
    np.save(folder / "many.npy", np.zeros((200_000, 6, 6, 2), np.int8))
    command = [sys.executable, "-c", "from covp.cli.main import main; main()", "run"]
    command += [str(folder / "model.tflite"), "-p", "riscv32", "--data", str(folder / "many.npy")]
    process = subprocess.Popen(
        [*command, "--jobs", "2"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        deadline = time.monotonic() + 60
        while len(descendants(process.pid)) < 2:
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.02)
        time.sleep(0.5)
        workers = descendants(process.pid)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    finally:
        process.kill()
        process.wait()
    deadline = time.monotonic() + 20
    while running(workers) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not running(workers)
    assert (process.returncode, out, err) == (130, "", "covp: interrupted\n")
