"""`covp new accelerator`: the skeleton, untouched, is installed and passes its own tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from covp.accelerator.registry import find_backend
from covp.cli.main import main


def new(*arguments: str) -> int:
    with pytest.raises(SystemExit) as done:
        main(["new", "accelerator", *arguments])
    return int(str(done.value.code))


@pytest.mark.slow  # tests/test_tutorial.py goes on from the skeleton
def test_the_skeleton_passes_its_own_tests_and_is_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert new("my_mac") == 0
    folder = tmp_path / "my_mac"
    names = {file.name for file in folder.iterdir()}
    assert names == {"my_mac.py", "test_my_mac.py", "pyproject.toml", "README.md"}
    lines = sum(len(file.read_text().splitlines()) for file in folder.iterdir())
    assert lines < 150
    assert not any("@" in file.read_text() for file in folder.iterdir())
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "."],
        cwd=folder, env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout
    assert "2 passed" in run.stdout
    assert find_backend(f"{folder}/my_mac.py:MyMac").name == "my_mac"


def test_nothing_is_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    assert new("mine") == 2
    assert "exists already" in capsys.readouterr().err
    assert list((tmp_path / "mine").iterdir()) == []
    assert new("mine", "-o", "deep/other") == 0
    assert (tmp_path / "deep" / "other" / "mine.py").is_file()
    assert {file.name for file in (tmp_path / "deep").iterdir()} == {"other"}


@pytest.mark.parametrize("name", ["Mac", "8mac", "my-mac", "class", "a/b", ""])
def test_names_that_cannot_be_are_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert new(name) == 2
    assert "cannot be a name" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert new("mac", "-o", str(tmp_path / "file" / "mac")) == 2
    error = capsys.readouterr().err
    assert "cannot be written" in error and error.count("\n") == 1


def test_the_name_of_an_accelerator_of_covp_s_own_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert new("gemm") == 2
    assert "'gemm' is an accelerator of covp's own" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
