"""pyproject.toml against the tree, and the rules about who imports whom."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from .conftest import FOLDERS, copy_sources


def test_packages_equal_the_tree(checkout: Path) -> None:
    settings = tomllib.loads((checkout / "pyproject.toml").read_text())["tool"]["setuptools"]
    found = set()
    for top in ("covp", *FOLDERS):
        for path in (checkout / top).rglob("__init__.py"):
            parts = path.parent.relative_to(checkout).parts
            if parts[0] != "covp":
                parts = ("covp", *parts)
            found.add(".".join(parts))
    assert sorted(settings["packages"]) == sorted(found)
    assert settings["package-dir"] == {f"covp.{name}": name for name in FOLDERS}
    assert settings["include-package-data"] is False


@pytest.mark.parametrize("folder", FOLDERS)
def test_links_lead_to_the_folders(checkout: Path, folder: str) -> None:
    assert (checkout / "covp" / folder).resolve() == checkout / folder


@pytest.mark.parametrize("name", ["peripherals", "accel_backends"])
def test_the_folders_are_imported_as_part_of_covp_only(checkout: Path, name: str) -> None:
    """Twice imported, `isinstance` would tell a model's two classes apart."""
    command = [sys.executable, "-c", f"import {name}"]
    done = subprocess.run(command, cwd=checkout, capture_output=True, text=True)
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("ImportError") and f"covp.{name}" in last
    ours = [sys.executable, "-c", f"import covp.{name}"]
    assert subprocess.run(ours, cwd=checkout).returncode == 0


def lint_imports(folder: Path) -> "subprocess.CompletedProcess[str]":
    pytest.importorskip("importlinter")
    code = "from importlinter.cli import lint_imports_command as c; c(['--no-cache'])"
    return subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True)


def test_imports_run_downwards(checkout: Path) -> None:
    done = lint_imports(checkout)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 broken" in done.stdout


TYPE_CHECKING_IMPORT = """from typing import TYPE_CHECKING
if TYPE_CHECKING:
    from covp.runtime.module import Module
"""


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("errors.py", "import covp.graph.graph"),
        ("graph/graph.py", "import covp.chip.platform_file"),
        ("codegen/planner.py", "import covp.runtime.session"),
        ("runtime/session.py", "import covp.codegen.generate"),
        ("hardware/clock.py", "import covp.peripherals.uart"),
        ("hardware/job.py", "import unicorn"),
        ("accelerator/limits.py", "import covp.device.machine.engine"),
        # cycles between packages, in a package, and for the type checker only
        ("runtime/resident.py", "import covp.runtime.session"),
        ("device/abilities.py", "import covp.device.virtual"),
        ("runtime/call.py", TYPE_CHECKING_IMPORT),
        ("building/builder.py", "import covp.cli.main"),
    ],
)
def test_the_rules_catch(checkout: Path, tmp_path: Path, file: str, line: str) -> None:
    source = copy_sources(checkout, tmp_path / "source")
    target = source / "covp" / file
    before = target.read_text() if target.is_file() else ""
    target.write_text(f"{before}\n{line}\n")
    done = lint_imports(source)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "BROKEN" in done.stdout
