"""What a machine is short of, in the errors of compilers that do not say it."""

from __future__ import annotations

import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from covp.base import shortage
from covp.compilers.compiler_process import failure
from tests.cli.test_process import COVP


def test_a_full_disk_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    class Usage:
        free = 12 << 10

    monkeypatch.setattr(shutil, "disk_usage", lambda folder: Usage)
    said = failure("sub-compilation of compiler_rt failed\n", "zig", (tmp_path,))
    assert said.endswith(f"; the disk of {tmp_path} has 12 KB left")
    blamed = failure("/tmp/x/conv.c:3:1: error: expected ';'\n", "zig", (tmp_path,))
    assert blamed == "conv.c:3: expected ';'"


def test_a_disk_with_room_is_not() -> None:
    assert shortage.full_disk([Path("/nowhere/at/all"), Path("/")]) is None


def limited(which: int, most: int, cache: Path) -> tuple[int, list[str]]:
    done = subprocess.run(
        [*COVP, "run", "toycar", "-p", "riscv32"],
        env={"PATH": "/usr/bin:/bin", "COVP_CACHE_DIR": str(cache)},
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(which, (most, most)),
    )
    return done.returncode, done.stderr.splitlines()


@pytest.mark.costly
@pytest.mark.skipif(sys.platform != "linux", reason="limits of Linux")
def test_limits_are_named(tmp_path: Path) -> None:
    status, lines = limited(resource.RLIMIT_AS, 150 << 20, tmp_path / "a")
    assert status == 1 and len(lines) == 1
    assert lines[0].startswith("covp: the address space is limited to 150 MB (ulimit -v); covp")
    status, lines = limited(resource.RLIMIT_FSIZE, 100 << 10, tmp_path / "b")
    assert status == 1
    assert "files are limited to 102,400 bytes (ulimit -f)" in lines[-1] or (
        "File too large" in lines[-1]  # the cache was written first
    )
