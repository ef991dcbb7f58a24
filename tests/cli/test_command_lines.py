"""Random command lines: a status of 0, 1 or 2, one line, and never a traceback."""

import contextlib
import io
import random
from pathlib import Path

import pytest

from covp.cli.main import COMMANDS, main

MODELS = ["kws", "toycar", "nope", "none.tflite", "none.onnx", "/", "", ".", "\u00e4", "k" * 300]
PLATFORMS = ["riscv32", "cortex-m4", "host", "zzz", "none.yaml", "/", "", "-1", "p" * 300]
ACCELERATORS = ["qconv2d", "gemm:size=0", "gemm:size=x", "gemm:=", "x=gemm", "none.py:A", ":", "="]
NUMBERS = ["0", "1", "-1", "1e9", "nan", "inf", "", "x", "9" * 30, "\u0663"]
OPTIONS = {
    "-p": PLATFORMS, "--platform": PLATFORMS, "-a": ACCELERATORS, "--accel": ACCELERATORS,
    "--device": ["virtual", "host", "gdb:", "gdb:x:y", "openocd:", "virtual:1", "", "gdb:[::1"],
    "--toolchain": ["zig", "icc", ""], "--seed": NUMBERS, "--trials": NUMBERS,
    "--seconds": ["nan", "inf", "-1", "x", "0.01"], "--examples": ["0", "-1", "x"],
    "--max-scratch": NUMBERS, "--input": ["none.npy", "/", "", "/dev/null"],
    "--operators": ["none.py", "/", "", "/dev/null"], "--optimize": ["cycles", "size", "x"],
    "-o": ["/proc/x", "/dev/null/x", ""], "--elf": ["none.elf", "/", "/dev/null", ""],
    "--require-offload": ["CONV_2D", "x", ""], "--port": ["-1", "70000", "x"],
    "--json": [], "--profile": [], "--explain": [], "--untuned": [], "--debugg": [], "--": [],
    "--help": [], "": [],
}  # fmt: skip
SERVERS = ("debug", "board")  # they would wait for Ctrl-C
LONG = ("tune", "verify", "mlperf", "sweep", "bisect", "calibrate", "openocd")


def line(rng: random.Random) -> list[str]:
    """A call that is wrong, or quick."""
    command = rng.choice([*COMMANDS, "rum", ""])
    words = [command]
    if rng.random() < 0.8:
        words.append(rng.choice(MODELS))
    if rng.random() < 0.8:
        words += ["-p", rng.choice(PLATFORMS)]
    for _ in range(rng.randrange(4)):
        option = rng.choice(list(OPTIONS))
        words.append(option)
        if OPTIONS[option]:
            words.append(rng.choice(OPTIONS[option]))
    if command in SERVERS:
        words += ["--port", rng.choice(["-1", "x", "70000"])]
    if command in LONG:
        words += ["--toolchain", "icc"]
    if command == "models" and "fetch" in words:
        words.append("--no-such-option")
    return words


def attack(seeds: range) -> None:
    for seed in seeds:
        words = line(random.Random(seed))
        out, err = io.StringIO(), io.StringIO()
        with (
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            pytest.raises(SystemExit) as done,
        ):
            main(words)
        said = err.getvalue()
        assert done.value.code in (0, 1, 2), words
        assert "Traceback" not in said and "internal error" not in said, (words, said)
        if done.value.code == 2 and said and not said.startswith("Usage:"):
            assert said.count("\n") == 1 and said.startswith("covp: "), (words, said)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("part", range(3))
def test_random_command_lines(part: int) -> None:
    attack(range(part * 20, part * 20 + 20))


@pytest.mark.slow
def test_three_hundred_random_command_lines() -> None:
    attack(range(1000, 1300))
