"""docs/results.md and the README's figures: made from the JSON files, which still hold."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from covp.cli.main import main
from covp.graph import zoo

ROOT = Path(__file__).parents[2]
DATA = ROOT / "benchmarks" / "results"


@pytest.fixture
def generator(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """benchmarks/results.py."""
    spec = importlib.util.spec_from_file_location("results", ROOT / "benchmarks" / "results.py")
    if not DATA.is_dir():
        pytest.skip("not in a checkout")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(sys, "argv", ["results.py", "--check"])
    return module


def rows(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((DATA / f"{name}.json").read_text())["rows"]
    return found


def test_the_page_and_the_readme_are_what_the_files_give(
    generator: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    assert generator.main() == 0, capsys.readouterr().out


def test_another_figure_is_noticed(
    generator: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows = json.loads((DATA / "accelerators.json").read_text())["rows"]
    count = next(r["instructions"] for r in rows if r["accelerator"] == "qconv2d")
    for file in (path for path in DATA.iterdir() if path.is_file()):
        text = file.read_text().replace(f'"instructions": {count}', f'"instructions": {count - 1}')
        (tmp_path / file.name).write_text(text)
    monkeypatch.setattr(generator, "DATA", tmp_path)
    assert generator.main() == 1
    said = capsys.readouterr().out
    assert "README.md is not" in said and "results.md is not" in said


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    with pytest.raises(SystemExit) as done:
        main(["run", *arguments, "--json"])
    output = capsys.readouterr()
    assert done.value.code == 0, output.err
    document: dict[str, Any] = json.loads(output.out)
    return document


def skip_without_official_file(model: str) -> None:
    if zoo.find(model).source != "official":
        pytest.skip(f"needs the official file of {model}: set COVP_MODEL_DIR")


@pytest.mark.parametrize(
    ("model", "accelerator", "call"),
    [
        ("toycar", "core alone", ()),
        ("toycar", "gemm 8x8", ("gemm",)),
        ("kws", "core alone", ()),
        ("kws", "qconv2d", ("qconv2d",)),
        ("kws", "cfu", ("cfu",)),
    ],
)
def test_whole_models_still_need_as_many_instructions(
    model: str, accelerator: str, call: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    skip_without_official_file(model)
    (claimed,) = (
        row
        for row in rows("accelerators")
        if (row["model"], row["accelerator"]) == (model, accelerator)
    )
    options = [option for name in call for option in ("-a", name)]
    found = run(capsys, model, "-p", "riscv32", *options)
    if found["toolchain"] != claimed["compiler"]:
        pytest.skip(f"the figures are of {claimed['compiler']}, this is {found['toolchain']}")
    assert found["instructions"] == claimed["instructions"]
    assert found["cycles"] == claimed["cycles"]


@pytest.mark.costly
@pytest.mark.parametrize("toolchain", ["zig", "gcc"])
def test_layers_still_need_as_many_instructions(
    toolchain: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    skip_without_official_file("kws")
    claimed = {
        int(row["layer"].split()[0]): row
        for row in rows("kernels")
        if (row["core"], row["model"]) == ("rv32imc", "kws") and row["by"].startswith(toolchain)
    }
    assert claimed
    compiler = {row["by"] for row in claimed.values()}
    try:
        by = ("--toolchain", toolchain, "--optimize", "instructions")
        found = run(capsys, "kws", "-p", "riscv32", *by)
    except AssertionError as error:
        if "not installed" in str(error):
            pytest.skip(str(error))
        raise
    if {found["toolchain"]} != compiler:
        pytest.skip(f"the figures are of {compiler}, this is {found['toolchain']}")
    by_layer = {layer["index"]: layer["instructions"] for layer in found["layers"]}
    assert {index: by_layer[index] for index in claimed} == {
        index: row["ours"] for index, row in claimed.items()
    }
