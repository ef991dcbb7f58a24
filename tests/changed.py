"""``--changed [REF]``: the tests of what differs from a commit, by the table of tests/README.md."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
_ROW = re.compile(r"^\| (.*?) \| (.*?) \| .* \|$", re.M)
_NAMES = re.compile(r"`([\w./]+)`")
_EVERYWHERE = ("tests/conftest.py", "pyproject.toml")
"""Files whose change needs all tests."""


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out what has nothing to do with the changes."""
    ref = config.getoption("--changed", None)
    if ref is None:
        return None
    if not hasattr(config, "covp_changed"):
        config.covp_changed = needed(changed_files(ref))  # type: ignore[attr-defined]
    wanted: set[Path] | None = config.covp_changed  # type: ignore[attr-defined]
    if wanted is None:
        return None
    path = collection_path
    is_needed = any(path.is_relative_to(one) or one.is_relative_to(path) for one in wanted)
    return None if is_needed else True


def changed_files(ref: str, root: Path = TESTS.parent) -> list[str]:
    """Return the files that differ from a commit, and new ones, relative to the root."""
    commands = ["diff", "--name-only", ref], ["ls-files", "--others", "--exclude-standard"]
    found: list[str] = []
    for command in commands:
        done = subprocess.run(["git", *command], cwd=root, capture_output=True, text=True)
        if done.returncode:
            raise pytest.UsageError(f"--changed {ref}: {done.stderr.strip()}")
        found += done.stdout.splitlines()
    return found


def needed(files: Iterable[str], tests: Path = TESTS) -> set[Path] | None:
    """Return the folders and files of tests that changed files need; None: all of them."""
    table, found = rooms(tests), set()
    for file in files:
        if file in _EVERYWHERE:
            return None
        top, _, rest = file.partition("/")
        if top == "tests":
            path = tests / rest
            found.add(path if path.name.startswith("test_") else path.parent)
        elif top == "docs" or file.endswith(".md"):
            found.update(table["documents"])
        elif top == "covp":
            found.update(table.get(rest.partition("/")[0], ()))
            found.add(tests / "packaging")
        else:
            found.update(table.get(f"{top}/", ()))
    return found


def rooms(tests: Path = TESTS) -> dict[str, list[Path]]:
    """Return the table: what to run for a changed room of covp, or a folder beside it."""
    text = (tests / "README.md").read_text(encoding="utf-8")
    return dict(_rows(text, tests))


def _rows(text: str, tests: Path) -> Iterator[tuple[str, list[Path]]]:
    for changed, run in _ROW.findall(text[text.index("| changed in") :]):
        paths = [tests / name for name in _NAMES.findall(run.partition(" (")[0] + run)]
        paths = [path for path in paths if path.exists()]
        for name in [*_NAMES.findall(changed), *(["documents"] if "documents" in changed else [])]:
            yield name, paths
