"""Other users of the machine: they reach the loopback interface, and may write where we stand."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from covp.runtime.jobs import Processes
from tests.exploration.sweep import standins
from tests.processes import descendants

SHADOWS = ("ziglang", "signal", "json", "tokenize", "multiprocessing", "socket", "numpy", "yaml")


@pytest.fixture
def hostile_folder(tmp_path: Path) -> Path:
    """A folder with Python files that say that they were executed."""
    for name in SHADOWS:
        log = tmp_path / "executed"
        text = f"open({str(log)!r}, 'a').write({name!r})\nraise SystemExit(9)\n"
        (tmp_path / f"{name}.py").write_text(text)
    return tmp_path


def covp(*arguments: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """The command as it is installed: the current folder is not on its own search path."""
    start = (
        "import sys; sys.path[:] = filter(None, sys.path); from covp.cli.main import main; main()"
    )
    return subprocess.run(
        [sys.executable, "-c", start, *arguments],
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )


def listening(pids: set[int]) -> set[str]:
    """The sockets of processes that others could connect to, by inode (Linux)."""
    tables = [path for name in ("tcp", "tcp6") if (path := Path("/proc/net", name)).is_file()]
    lines = [line.split() for table in tables for line in table.read_text().splitlines()]
    inodes = {f"socket:[{fields[9]}]" for fields in lines if fields[3] == "0A"}
    files = [f"/proc/{pid}/fd/{name}" for pid in pids for name in os.listdir(f"/proc/{pid}/fd")]
    # but for those of the listing itself
    return inodes & {os.readlink(file) for file in files if os.path.lexists(file)}


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_nobody_else_gets_into_the_workers() -> None:
    """They talk over pipes; nothing of a sweep on this machine listens."""
    points, before = standins.points(4), descendants(os.getpid())
    with socket.create_server(("127.0.0.1", 0)):
        assert listening({os.getpid()})
    with Processes(standins.arithmetic, 1) as workers:
        (done,) = workers.call([tuple(points)])
        assert done.result == standins.arithmetic(points)
        started = descendants(os.getpid()) - before
        assert started and not listening({os.getpid(), *started})


@pytest.mark.costly
def test_modules_of_the_current_folder_are_not_executed(hostile_folder: Path) -> None:
    """Neither by the compiler for the host, nor by workers of a sweep or of the tuner."""
    spec = "models: [toycar]\nplatforms: [riscv32]\nvary: {platform.clock_hz: [1000000, 2000000]}\n"
    (hostile_folder / "sweep.yaml").write_text(spec)
    cache = str(hostile_folder / "cache")
    swept = covp("sweep", "sweep.yaml", "-o", "out", cwd=hostile_folder, COVP_CACHE_DIR=cache)
    assert swept.returncode == 0, swept.stderr
    tuned = ("tune", "toycar", "-p", "riscv32", "--trials", "1", "--jobs", "2")
    assert covp(*tuned, cwd=hostile_folder, COVP_CACHE_DIR=cache).returncode == 0
    assert not (hostile_folder / "executed").exists(), (hostile_folder / "executed").read_text()


@pytest.mark.costly
def test_tuning_that_cannot_be_kept_does_not_begin(tmp_path: Path) -> None:
    tuned = covp("tune", "toycar", "-p", "riscv32", cwd=tmp_path, COVP_CACHE_DIR="/proc/covp")
    assert tuned.returncode == 1 and tuned.stdout == ""
    assert "/proc/covp cannot be used" in tuned.stderr.splitlines()[-1]
