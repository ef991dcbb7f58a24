"""`pytest --changed`: which tests a change needs."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.changed import TESTS, changed_files, needed, rooms

COVP = TESTS.parent / "covp"
ROOMS = [path.parent.name for path in COVP.glob("*/__init__.py") if not path.parent.is_symlink()]


def test_every_room_has_a_row_and_its_tests_exist() -> None:
    table = rooms()
    assert len(ROOMS) > 10 and [room for room in ROOMS if not table.get(room)] == []
    assert all(path.exists() for paths in table.values() for path in paths)


@pytest.mark.parametrize(
    ("file", "wanted"),
    [
        ("covp/graph/ops/softmax.py", {"graph", "codegen/fuzz", "packaging"}),
        ("device_runtime/runtime.c", {"runtime", "laboratory", "firmware"}),
        ("peripherals/fir.py", {"hardware", "peripherals", "accelerator"}),
        ("tests/codegen/test_planner.py", {"codegen/test_planner.py"}),
        ("tests/codegen/conftest.py", {"codegen"}),
        ("docs/json.md", {"cli", "docs", "packaging", "test_readme.py", "test_tutorial.py"}),
        ("benchmarks/house.py", set()),
    ],
)
def test_what_a_file_needs(file: str, wanted: set[str]) -> None:
    assert needed([file]) == {TESTS / name for name in wanted}


def test_what_all_tests_depend_on_needs_all() -> None:
    assert needed(["docs/json.md", "tests/conftest.py"]) is None


def test_files_that_differ_from_a_commit(tmp_path: Path) -> None:
    def git(*arguments: str) -> None:
        name = ("-c", "user.name=a", "-c", "user.email=a@b")
        subprocess.run(["git", *name, *arguments], cwd=tmp_path, check=True, capture_output=True)

    git("init")
    (tmp_path / "old").write_text("1")
    git("add", ".")
    git("commit", "-m", "one")
    (tmp_path / "old").write_text("2")
    (tmp_path / "new").write_text("1")
    assert changed_files("HEAD", tmp_path) == ["old", "new"]
    with pytest.raises(pytest.UsageError, match="--changed none: "):
        changed_files("none", tmp_path)
