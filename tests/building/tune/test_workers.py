"""Processes of `covp tune` end with it, whatever ends it."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.processes import descendants, running

COVP = [sys.executable, "-c", "from covp.cli.main import main; main()"]


@pytest.mark.costly
@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc and prctl")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_workers_end_with_their_parent(number: signal.Signals, tmp_path: Path) -> None:
    environment = {**os.environ, "COVP_TUNE_JOBS": "2", "XDG_CACHE_HOME": str(tmp_path)}
    arguments = ["tune", "kws", "-p", "riscv32", "--search", "exhaustive"]
    process = subprocess.Popen(
        [*COVP, *arguments],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        # under nohup it would be ignored
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),
    )
    try:
        deadline = time.monotonic() + 60
        while len(descendants(process.pid)) < 2:
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.02)
        time.sleep(0.2)
        workers = descendants(process.pid)
        process.send_signal(number)
        process.wait(timeout=60)
    finally:
        process.kill()
        process.wait()
    deadline = time.monotonic() + 20
    while running(workers) and time.monotonic() < deadline:
        time.sleep(0.05)
    left = running(workers)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert not left
