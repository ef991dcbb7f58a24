"""The README's commands: what installs is checked for its form, everything else is run."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from covp.chip.platform_file import load_platform
from covp.cli.main import COMMANDS
from covp.graph import zoo

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
INSTALL = ("pip install .", "pip install -e '.[test]'")


def commands() -> list[str]:
    """Each command of the ``sh`` blocks, split at ``&&``; comments and continuations resolved."""
    if not README.is_file():
        return []
    blocks = re.findall(r"^```sh\n(.*?)^```", README.read_text(encoding="utf-8"), re.M | re.S)
    lines = "".join(blocks).replace("\\\n", " ").splitlines()
    stripped = [re.sub(r"\s+#.*", "", line).strip() for line in lines]
    wanted = [line for line in stripped if line and not line.startswith("#")]
    return [part.strip() for line in wanted for part in line.split("&&")]


def runnable(command: str) -> bool:
    return not command.startswith(("pip ", "pytest", "git ", "python benchmarks/"))


@pytest.fixture(autouse=True)
def in_a_checkout() -> None:
    if not README.is_file():
        pytest.skip("not in a checkout")


def test_the_two_commands_stand_there() -> None:
    text = README.read_text(encoding="utf-8")
    assert "\npip install . && covp compare resnet kws vww toycar -p riscv32 -a qconv2d\n" in text
    assert "\npip install -e '.[test]' && pytest -q\n" in text


def test_installation_takes_no_other_form() -> None:
    found = [command for command in commands() if command.startswith("pip ")]
    assert set(found) == set(INSTALL)


def test_every_command_is_of_a_kind_that_is_checked() -> None:
    for command in commands():
        words = shlex.split(command)
        known = ("pip", "pytest", "covp", "python", "git", "ruff", "mypy", "lint-imports", "cd")
        assert words[0] in known, command
        if words[0] == "python":
            assert (ROOT / words[1]).is_file(), command
        if words[0] == "covp":
            assert words[1] in COMMANDS, command


LONG = (
    "covp verify",  # tests/testing/verify
    "covp tune",  # docs/getting-started.md
    "covp compare resnet kws vww toycar",  # tests/test_readme_figures.py, with its figures
)


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(command, marks=[pytest.mark.slow] * command.startswith(LONG))
        for command in dict.fromkeys(commands())
        if runnable(command)
    ],
)
def test_command(command: str) -> None:
    words = shlex.split(command)
    if words[0] == "covp":
        entry = "from covp.cli.main import main; main()"
        called = [sys.executable, "-c", entry, *words[1:]]
    else:
        assert words[0] == "python", command
        called = [sys.executable, *words[1:]]
    if "fetch" in words:
        pytest.skip("needs the network")
    done = subprocess.run(called, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    if words[1] in ("run", "compare"):
        assert "DIFFER" not in done.stdout


def test_names_in_the_text_exist() -> None:
    text = README.read_text(encoding="utf-8")
    for platform in re.findall(r"covp (?:run|compare)[^`\n]* -p ([\w-]+)", text):
        assert load_platform(platform).memory
    for model in re.findall(r"covp run (\w+) -p", text):
        assert model in zoo.names()
    for path in re.findall(r"\]\(((?!https?:)[^)#]+)\)", text):
        assert (ROOT / path).exists(), path
    for script in re.findall(r"python ((?:benchmarks|examples)/\w+\.py)", text):
        assert (ROOT / script).is_file(), script
