"""Whole processes: what a shell or a script sees."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

COVP = [sys.executable, "-c", "from covp.cli.main import main; main()"]


def run(*arguments: object, **options: object) -> "subprocess.CompletedProcess[str]":
    command = [*COVP, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, **options)  # type: ignore[call-overload, no-any-return]


@pytest.mark.costly
def test_nothing_but_json_on_standard_output(small: Path) -> None:
    for command in (["run"], ["compare", "-a", "qconv2d"]):
        done = run(*command, small, "-p", "riscv32", "--json")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["schema"] == f"covp.{command[0]}/1"
        assert done.stderr == ""


@pytest.mark.costly
def test_the_installed_command() -> None:
    command = Path(sys.executable).parent / "covp"
    if not command.is_file():
        pytest.skip("covp is not installed as a command here")
    done = subprocess.run([command, "platforms"], capture_output=True, text=True)
    assert done.returncode == 0 and "riscv32" in done.stdout


@pytest.mark.costly
def test_an_error_is_one_line_and_a_status(tmp_path: Path) -> None:
    done = run("run", tmp_path, "-p", "riscv32")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("\n") == 1 and done.stderr.startswith("covp: ")
    assert run("compare", "kws").returncode == 2


@pytest.mark.costly
def test_debug_gives_the_traceback(tmp_path: Path) -> None:
    done = run("run", tmp_path, "-p", "riscv32", "--debug")
    assert done.returncode == 1
    assert "Traceback" in done.stderr and "ModelError" in done.stderr


@pytest.mark.costly
def test_a_reader_that_leaves_is_not_complained_about() -> None:
    """As `covp platforms | head -0` does."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run([*COVP, "platforms"], stdout=writing, stderr=subprocess.PIPE)
    finally:
        os.close(writing)
    assert done.stderr == b""


@pytest.mark.costly
@pytest.mark.parametrize("command", [["compare", "-a", "qconv2d"], ["run"]])
def test_interrupted(command: list[str], small: Path, tmp_path: Path) -> None:
    """Ctrl-C amid the work: status 130 and one line, whatever was being done."""
    many = [str(small)] * 200 if command[0] == "compare" else ["vww"]
    environment = {**os.environ, "COVP_CACHE_DIR": str(tmp_path)}
    process = subprocess.Popen(
        [*COVP, *command, *many, "-p", "riscv32"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    deadline = time.monotonic() + 120
    while not any(tmp_path.iterdir()):  # it has begun to compile
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.02)
    time.sleep(0.3)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: compilers get it too
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, "", "covp: interrupted\n")


@pytest.mark.costly
def test_the_cache_survives_an_interruption(small: Path, tmp_path: Path) -> None:
    """What was being written is there whole, or not at all."""
    environment = {**os.environ, "COVP_CACHE_DIR": str(tmp_path)}
    for delay in (0.5, 1.5):
        process = subprocess.Popen(
            [*COVP, "run", str(small), "-p", "riscv32"],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        time.sleep(delay)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert run("run", small, "-p", "riscv32", env=environment).returncode == 0
