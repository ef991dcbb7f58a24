"""The page of the commands: every section is a command by the name that it is called by."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from covp.cli.main import covp

HOOKS = Path(__file__).parents[2] / "docs" / "hooks.py"
if not HOOKS.is_file():
    pytest.skip("not in a checkout", allow_module_level=True)


def sections() -> list[str]:
    spec = importlib.util.spec_from_file_location("hooks", HOOKS)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return list(module.sections(covp))


def test_sections_are_commands() -> None:
    """Each is called with --help as its heading says, which prints that usage."""
    found = sections()
    assert len(found) > 25
    for text in found:
        heading = re.match(r"## (.*)\n", text)
        assert heading is not None
        words = heading[1].split()
        done = CliRunner().invoke(covp, [*words[1:], "--help"], prog_name="covp")
        assert done.exit_code == 0, heading[1]
        usage = done.output.splitlines()[0]
        assert usage.startswith(f"Usage: {heading[1]} ") and usage in text
