"""Compilers end with the process that started them."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from covp.compilers.compiler_process import run_compiler

PROGRAM = """
import sys, threading
from pathlib import Path
from covp.chip.cores import find_core
from covp.compilers.toolchain import SourceText, get_toolchain
body = "".join(f"int f{n}(int x) {{ return x * {n} + (x >> {n % 31}); }}\\n" for n in range(60000))
source = SourceText(sys.argv[1], body)
compiler = get_toolchain("zig", find_core("cortex-m4f"))
work = threading.Thread(target=compiler.compile, args=([source],))
work.start()
work.join()
"""


def compilers(name: str) -> list[int]:
    """The processes that compile a file, zig or clang."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if name.encode() in words and Path(os.fsdecode(words[0])).name == "zig":
            found.append(int(entry.name))
    return found


def seconds(name: str) -> float:
    """Processor time that those have taken."""
    spent = 0
    for process in compilers(name):
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
            spent += int(fields[11]) + int(fields[12])
    return spent / os.sysconf("SC_CLK_TCK")


def wait_until(true: Callable[[], bool]) -> None:
    while not true():
        time.sleep(0.05)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_build_ends_with_a_process_that_is_killed(tmp_path: Path) -> None:
    name = f"killed_{os.getpid()}.c"
    environment = {**os.environ, "COVP_CACHE_DIR": str(tmp_path)}
    parent = subprocess.Popen([sys.executable, "-c", PROGRAM, name], env=environment)
    try:
        wait_until(lambda: bool(compilers(name)) or parent.poll() is not None)
        assert parent.poll() is None
    finally:
        parent.kill()
        parent.wait()
    spent = seconds(name)
    while compilers(name):  # for at most a moment; the whole build takes many
        assert seconds(name) < spent + 2
        time.sleep(0.05)


def test_a_fork_has_a_group_of_its_own() -> None:
    show = ["/bin/sh", "-c", "ps -o pgid= -p $$ 2>/dev/null || cut -d' ' -f5 /proc/$$/stat"]
    here = run_compiler(show, os.environ).stdout.strip()
    assert int(here) != os.getpgrp()
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.write(write, run_compiler(show, os.environ).stdout.encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(read, 99).decode().strip() not in ("", here)
    os.close(read)
    os.close(write)
    assert run_compiler(show, os.environ).stdout.strip() == here
