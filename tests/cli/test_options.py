"""Every option of every command with junk: a known status, one line, with --json one document."""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import resource
import signal
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from covp.cli.main import COMMANDS, main
from covp.graph.zoo.tflite_writer import write_tflite
from tests.codegen.fuzz.graphs import random_graph

HANGS_AFTER = 60
"""Seconds; a call takes a tenth of one, the first ones compile."""
JUNK = [
    "", " ", "-", "--", "-1", "0", "1e400", "nan", "inf", "-inf", "9" * 5000, "\u0663", "0x10",
    "\udcff", "a\nb", "\u202e", "%s%n", "{x}", "[bold]", "x" * 5000, "/", ".", "1_0", "/dev/null",
    "/dev/full", "/dev/zero", "/proc/self/mem", "junk.bin", "empty", "folder", "loop", "secret",
    "deep.json", "..", "a:b", ":", "=", "a=b=c",
    "gemm:size=9999999999", "gemm:size=nan", "x=x", "~", "$HOME",
    "junk.bin:Class", "kws/../kws", "http://[::1", "gdb:127.0.0.1:1", "openocd:x:99", "gdb::",
]  # fmt: skip
GOOD = {
    "run": ["model.tflite", "-p", "riscv32", "--check", "none"],
    "compare": ["model.tflite", "-p", "riscv32", "--check", "none"],
    "export": ["model.tflite", "-p", "riscv32", "-o", "out"],
    "show": ["model.tflite"],
    "tune": ["model.tflite", "-p", "riscv32", "--seconds", "0", "--jobs", "1"],
    "verify": ["nothing:such"],
    "multicore": ["main=nothing.elf", "-p", "dual-riscv32"],
    "check": ["deep.json"],
    "new": ["accelerator", "mine"],
    "openocd": ["start", "-p", "riscv32"],
    "gdbserver": ["-p", "nothing"],
    "firmware": ["none.elf", "-p", "riscv32"],
    "debugport": ["-p", "nothing"],
}
"""The rest of a call, which is quick."""
NAMES = sorted({*COMMANDS, "gdbserver", "debugport"} - {"debug", "doctor", "models"})
LONG = {"tune", "verify"}
SERVES = {"gdbserver", "debugport", "openocd"}


@pytest.fixture(autouse=True)
def bounded() -> Iterator[None]:
    """A file without end is an error here before it fills the machine."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    bounded_already = before[1] != resource.RLIM_INFINITY
    resource.setrlimit(resource.RLIMIT_AS, (before[1] if bounded_already else 8 << 30, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


def test_a_file_without_end() -> None:
    for words in (
        ["run", "/dev/zero", "-p", "riscv32"],
        ["run", "kws", "-p", "/dev/zero"],
        ["check", "/dev/zero", "--max-ms", "1"],
    ):
        err = io.StringIO()
        with contextlib.redirect_stderr(err), pytest.raises(SystemExit):
            main(words)
        assert err.getvalue().count("\n") == 1 and "/dev/zero: cannot be read" in err.getvalue()


def test_a_pipe_without_a_writer(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.npy"
    os.mkfifo(pipe)
    for words in (
        ["run", pipe, "-p", "riscv32"],
        ["run", "kws", "-p", pipe],
        ["run", "kws", "-p", "riscv32", "--input", pipe],
        ["run", "kws", "-p", "riscv32", "--data", pipe],
        ["run", "kws", "-p", "riscv32", "--data", "junk.bin", "--labels", pipe],
        ["firmware", pipe, "-p", "riscv32"],
        ["report", pipe, "-o", "report.html"],
        ["check", pipe, "--max-ms", "1"],
    ):
        err = io.StringIO()
        with contextlib.redirect_stderr(err), pytest.raises(SystemExit):
            main(list(map(str, words)))
        assert err.getvalue().count("\n") == 1, words


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with junk of every kind, and one good model."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.tflite").write_bytes(write_tflite(random_graph(3, as_litert=True)))
    (tmp_path / "junk.bin").write_bytes(bytes(range(256)) * 40)
    (tmp_path / "empty").touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "secret").write_text("x")
    (tmp_path / "secret").chmod(0)
    (tmp_path / "deep.json").write_text("[" * 100_000)


@contextlib.contextmanager
def no_hang(words: list[str]) -> Iterator[None]:
    def give_up(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(HANGS_AFTER)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def problem(words: list[str]) -> str | None:
    """What is wrong with how a call ended; None where nothing is."""
    out, err = io.StringIO(), io.StringIO()
    with (
        no_hang(words),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        pytest.raises(SystemExit) as done,
    ):
        main(words)
    status, said = done.value.code, err.getvalue()
    if status not in (0, 1, 2) or "Traceback" in said or "internal error" in said:
        return f"status {status}: {said[:300]!r}"
    lines = [line for line in said.splitlines() if line.startswith("covp: ")]
    if status == 2 and len(lines) != 1 and not said.startswith("Usage:"):
        return f"status 2: {said[:300]!r}"
    if "--json" in words and "--help" not in words and not said.startswith("Usage:"):
        try:
            json.loads(out.getvalue(), parse_constant=lambda name: 1 / 0)
        except (ValueError, ZeroDivisionError):
            return f"status {status}, not one JSON document: {out.getvalue()[:200]!r}"
    return None


def option_calls(name: str) -> Iterator[list[str]]:
    """Calls of a command with one option of junk each; its argument too."""
    command = getattr(importlib.import_module(f"covp.cli.{name}"), name)
    good = GOOD.get(name, [])
    json_too = ["--json"] if any("--json" in p.opts for p in command.params) else []
    for junk in JUNK:
        if name not in SERVES:
            yield [name, *json_too, junk, *good[1:]]
            yield [name, *json_too, *good, junk]
        for option in command.params:
            if not isinstance(option, click.Option) or option.is_flag:
                continue
            if name in LONG and option.name in ("seconds", "examples", "trials"):
                continue  # a number is not junk there
            yield [name, *good, f"{max(option.opts, key=len)}={junk}", *json_too]


def attack(name: str, every: int, first: int = 0) -> None:
    found = []
    for words in list(option_calls(name))[first::every]:
        if (wrong := problem(words)) is not None:
            found.append(f"{words}: {wrong}")
    assert not found, f"{len(found)} calls\n" + "\n".join(found)


@pytest.mark.skipif(os.name != "posix", reason="its junk is of POSIX")
@pytest.mark.parametrize("name", NAMES)
def test_some_junk(name: str) -> None:
    attack(name, 19)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_all_junk(name: str) -> None:
    attack(name, 1)
