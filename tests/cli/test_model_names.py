"""A zoo model's name in a folder that holds a folder or file of that name."""

import re
from pathlib import Path

import pytest

from .conftest import Call, small_model
from .test_gdbserver import serving

NAME = "cifar10"
"""There is no official file: this model is synthetic everywhere."""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.costly
def test_a_folder_does_not_take_the_label_away(call: Call, folder: Path) -> None:
    (folder / NAME).mkdir()
    run = ("run", NAME, "-p", "riscv32")
    assert call(*run, "--json").document["model_source"] == "synthetic"
    assert "SYNTHETIC" in call(*run).out
    comparison = ("compare", NAME, "-p", "riscv32", "-a", "qconv2d")
    (row,) = call(*comparison, "--json").document["rows"]
    assert row["cpu"]["model_source"] == row["accelerated"]["model_source"] == "synthetic"
    assert f"{NAME} (synthetic)" in call(*comparison).out
    export = ("export", NAME, "-p", "riscv32")
    assert call(*export, "-o", "a", "--json").document["model_source"] == "synthetic"
    assert "SYNTHETIC" in call(*export, "-o", "b").out
    assert "SYNTHETIC" in (folder / "b" / "README.md").read_text()


def test_nor_from_the_tuner(call: Call, folder: Path) -> None:
    (folder / NAME).mkdir()
    search = ("tune", NAME, "-p", "riscv32", "--seconds", "0", "--jobs", "1")
    assert "SYNTHETIC" in call(*search).out
    assert call(*search, "--json").document["model_source"] == "synthetic"


@pytest.mark.costly
def test_nor_from_the_debugger_s_greeting(folder: Path) -> None:
    (folder / NAME).mkdir()
    with serving("-p", "riscv32", "--model", NAME, hints=3) as server:
        assert f"{NAME}: SYNTHETIC" in server.lines[2]


def test_a_file_is_taken_instead(call: Call, folder: Path) -> None:
    (folder / NAME).write_bytes(small_model())
    found = call("run", NAME, "-p", "riscv32", "--json").document
    assert found["model_source"] == "file"
    assert [layer["op"] for layer in found["layers"]] == ["CONV_2D", "FULLY_CONNECTED", "SOFTMAX"]
    out = call("compare", NAME, "-p", "riscv32", "-a", "qconv2d").out
    assert "synthetic" not in out and re.search(rf"^ {NAME} ", out, re.M)
    export = call("export", NAME, "-p", "riscv32", "-o", "out", "--json").document
    assert export["model_source"] == "file"
    assert "SYNTHETIC" not in (folder / "out" / "README.md").read_text()
    search = ("tune", NAME, "-p", "riscv32", "--seconds", "0", "--jobs", "1", "--json")
    assert call(*search).document["model_source"] == "file"
