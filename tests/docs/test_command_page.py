"""The page of the commands: every section is a command by the name that it is called by."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest
from click.testing import CliRunner

from covp.base.dependencies import INSTALL, get_extra, load_extra
from covp.cli.main import covp
from covp.errors import UsageError

HOOKS = Path(__file__).parents[2] / "docs" / "hooks.py"
if not HOOKS.is_file():
    pytest.skip("not in a checkout", allow_module_level=True)


def hooks() -> ModuleType:
    spec = importlib.util.spec_from_file_location("hooks", HOOKS)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def sections() -> list[str]:
    return list(hooks().sections(covp))


def test_covp_comes_from_its_index_as_soon_as_it_is_there() -> None:
    """The sites' commands that install covp, and those that install something else."""
    install = hooks().install_from
    changed = {
        "pip install .": "pip install covp",
        "`pip install '.[sweep,report]'`": "`pip install 'covp[sweep,report]'`",
        "pip install ../covp pytest": "pip install covp pytest",
        "pip install ziglang==0.17.0 ./covp": "pip install ziglang==0.17.0 covp",
    }
    for text, wanted in changed.items():
        assert install(".", text) == text
        assert install("covp", text) == wanted
    for text in ("pip install -e '.[docs]'", "`pip install ziglang`. covp", "pip install a==1.2"):
        assert install("covp", text) == text
    pages = [HOOKS.parents[1] / "README.md", *HOOKS.parent.glob("*.md")]
    text = install("covp", "\n".join(page.read_text(encoding="utf-8") for page in pages))
    assert text.count("pip install covp") >= 5 and text.count("pip install 'covp[") >= 4
    assert not re.search(r"pip install (?!-e)[^\n`]*['\s/]\.[./\[]", text)


def test_the_program_names_the_same_place() -> None:
    """Messages about extras, and the pages before they are rendered."""
    command = get_extra("sweep")
    assert command.startswith(f"pip install '{INSTALL}[sweep]'")
    with pytest.raises(UsageError, match=re.escape(f"this needs covp_absent: {command}")):
        load_extra("covp_absent", "sweep")


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
