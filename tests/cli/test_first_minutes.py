"""What a new user meets: `covp` alone, as a module, completed by a shell, a short report."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest

from covp.cli.main import COMMANDS, COMPLETION, covp

from .conftest import Call


def test_covp_alone_shows_five_commands_that_there_are(call: Call) -> None:
    told = call()
    assert (told.status, told.err) == (0, "")
    lines = re.findall(r"^  (covp .*?)(?: {2,}|$)", told.out, re.MULTILINE)
    assert len(lines) == 5
    for line in lines:
        name, *given = shlex.split(line)[1:]
        assert name in COMMANDS
        command: click.Command | None = covp.get_command(click.Context(covp), name)
        assert command is not None
        command.make_context(name, list(given)).close()  # raises where an option is wrong


def test_covp_is_a_module_too() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "covp", "--version"], capture_output=True, text=True
    )
    assert done.returncode == 0 and done.stdout.startswith("covp, version ")


@pytest.mark.parametrize(
    ("typed", "wanted"),
    [
        ("covp ru", {"run"}),
        ("covp run --verb", {"--verbose"}),
        ("covp run kws -p riscv32", {"riscv32", "riscv32f"}),
        ("covp run kws -p riscv32 -a qco", {"qconv2d"}),
        ("covp compare kws toy", {"toycar"}),
    ],
)
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_completes_commands_options_and_names(
    typed: str, wanted: set[str], shell: str
) -> None:
    words = typed.split()
    place = words[-1] if shell == "fish" else str(len(words) - 1)
    asked = {"COMP_WORDS": typed, "COMP_CWORD": place, COMPLETION: f"{shell}_complete"}
    done = subprocess.run(
        [sys.executable, "-m", "covp"], env={**os.environ, **asked}, capture_output=True, text=True
    )
    found = {word for line in done.stdout.splitlines() for word in line.split(",")}
    assert wanted <= {word.split("\t")[0] for word in found}, done.stdout + done.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_a_shell_is_one_that_the_shell_reads(shell: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "covp"], env={**os.environ, COMPLETION: f"{shell}_source"},
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0 and "_COVP_COMPLETE" in done.stdout
    script = tmp_path / "completion"
    script.write_text(done.stdout)
    if (program := shutil.which(shell)) is not None:
        assert subprocess.run([program, "-n", script], capture_output=True).returncode == 0


def test_bash_offers_what_fits() -> None:
    """The script is sourced by a real bash, and its function called as at the Tab key."""
    if (bash := shutil.which("bash")) is None or not (
        Path(sys.executable).parent / "covp"
    ).exists():
        pytest.skip("no bash, or covp is not installed as a command")
    script = (
        f'eval "$({COMPLETION}=bash_source covp)"; COMP_WORDS=(covp run kws -p mps3); '
        "COMP_CWORD=4; _covp_completion covp; echo ${COMPREPLY[@]}"
    )
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        [bash, "-c", script], env={**os.environ, "PATH": path}, capture_output=True, text=True
    )
    assert done.stdout.strip() == "mps3-an547", done.stderr


def test_a_report_has_at_most_twelve_lines_below_its_table(call: Call, small: Path) -> None:
    arguments = ("run", small, "-p", "nucleo-l4r5zi", "-a", "gemm:technology=gap9")
    told = call(*arguments)
    assert told.status == 0, told.err
    below = told.out.rstrip().split("\n")
    below = below[max(i for i, line in enumerate(below) if "  total  " in line) + 2 :]
    assert 4 <= len(below) <= 12
    energy = [line for line in below if line.startswith("energy: ")]
    assert len(energy) == 1 and "--verbose" in energy[0] and "pJ" not in told.out
    assert "pJ" in call(*arguments, "--verbose").out
