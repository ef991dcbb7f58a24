"""The pages of docs: their commands run, their links lead somewhere, their code works."""

from __future__ import annotations

import dataclasses
import os
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

import covp
from covp.chip.platform_file import load_platform
from covp.cli.main import COMMANDS, main
from covp.graph import user_operators, zoo
from covp.graph.graph import Graph, Op
from covp.graph.tflite import read_tflite
from covp.graph.zoo.tflite_writer import write_tflite
from covp.testing.tensors import int8
from tests import action

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted(DOCS.glob("*.md"))
START = "getting-started.md"


def blocks(page: str, language: str) -> list[str]:
    text = (DOCS / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.M | re.S)


def run(line: str, capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as done:
        main(shlex.split(line)[1:])
    output = capsys.readouterr()
    assert done.value.code == 0, f"{line}: {output.err}"
    return output.out


@pytest.mark.costly
def test_getting_started(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [line for block in blocks(START, "sh") for line in block.splitlines()]
    printed = {}
    for line in lines:
        if line.startswith("covp tune"):  # the last one: its records stay here
            monkeypatch.setenv("COVP_CACHE_DIR", str(tmp_path / "cache"))
        if line.startswith("covp "):
            printed[line] = run(line, capsys)
    assert len(printed) == len(lines) - 1, "all but pip"
    profile = next(text for line, text in printed.items() if line.endswith("--profile"))
    columns = re.findall(r"^\| `([^`]+)` \|", (DOCS / START).read_text(), re.M)
    assert len(columns) == 6
    assert [name for name in columns if name not in profile] == []


def test_the_python_of_getting_started(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = blocks(START, "python")
    exec(code, {})
    assert "qconv2d" in capsys.readouterr().out


def test_the_code_and_the_model_of_timing(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = blocks("timing.md", "python")
    exec(code, {})
    assert " cycles" in capsys.readouterr().out
    (model,) = blocks("timing.md", "yaml")
    file = DOCS.parent / "platforms" / "cores" / "cv32e40p" / "timing.yaml"
    assert yaml.safe_load(model) == yaml.safe_load(file.read_text())


@pytest.mark.costly
def test_states_and_streams(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (code,) = blocks("streaming.md", "python")
    exec(code, {})
    assert "[[1. 1. 1. 1.]] [[2. 2. 2. 2.]]" in capsys.readouterr().out
    (lines,) = blocks("streaming.md", "sh")
    first, _, _ = [run(line, capsys) for line in lines.splitlines()]
    assert "1 of 30 rows are new" in first and "of a whole window from inference 30 on" in first
    header = (tmp_path / "wake_word/model/include/sww.h").read_text()
    assert "int sww_reset(sww_context *context);" in header


@pytest.mark.costly
def test_onnx(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from covp.graph.onnx.converters import CONVERTERS

    monkeypatch.chdir(tmp_path)
    network, converter = blocks("onnx.md", "python")
    names: dict[str, Any] = {}
    exec(network, names)
    assert "[[" in capsys.readouterr().out
    (line,) = blocks("onnx.md", "sh")
    assert "/fc/MatMul" in run(line, capsys)
    model = names["model"]
    model.graph.node[1].op_type, model.graph.node[1].domain = "Square", "com.example"
    names["onnx"].save(model, "own.onnx")
    (tmp_path / "square.py").write_text(converter)
    own = "covp run own.onnx -p stm32l4r5 --shape x=1,3 --profile --operators square.py"
    try:
        assert "/act/Relu" in run(own, capsys)
    finally:
        CONVERTERS.pop(("com.example", "Square"), None)
    kinds = {kind for domain, kind in CONVERTERS if not domain}
    assert {"Conv", "LSTM", "Resize", "QLinearConv"} <= kinds


def test_the_code_of_memory_safety(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = blocks("memory-safety.md", "python")
    exec(code, {})
    printed = capsys.readouterr().out.strip()
    (shown,) = re.findall(
        r"^    (uninitialised .*)$", (DOCS / "memory-safety.md").read_text(), re.M
    )
    pattern = re.escape(shown).replace(r"\.\.\.", "[0-9a-f]+")
    assert re.fullmatch(pattern, printed), printed


@pytest.mark.costly
def test_the_code_of_testing() -> None:
    names: dict[str, Any] = {}
    ran = []
    for code in blocks("testing.md", "python"):
        exec(code, names)
        for name in [name for name in names if name.startswith("test_")]:
            names.pop(name)()
            ran.append(name)
    assert len(ran) == 3


def test_the_platform_of_the_text_is_one(tmp_path: Path) -> None:
    (text,) = blocks("boards.md", "yaml")
    file = tmp_path / "board.yaml"
    file.write_text(text)
    assert load_platform(file).flash.bytes == 512 * 1024


def test_the_operator_and_the_pass_of_the_text(tmp_path: Path) -> None:
    operator, own_pass = blocks("own-operators.md", "python")
    file = tmp_path / "squeeze.py"
    file.write_text(operator)
    x, y = int8("x", (1, 1, 4, 1), 0.1, 3), int8("y", (1, 4), 0.1, 3)
    graph = Graph("squeeze", [x], [y], [Op("SQUEEZE", "squeeze_0", [x], [y])])
    user_operators.load_operator_file(file)
    try:
        model = read_tflite(write_tflite(graph), "squeeze")
        value = np.array([-128, 0, 5, 127], np.int8).reshape(1, 1, 4, 1)
        with covp.Session("riscv32") as session:
            out = session.load(covp.compile(model, "riscv32")).run(value)
        assert np.array_equal(out, value.reshape(1, 4))
    finally:
        user_operators.unregister_operator("SQUEEZE")
    names: dict[str, Any] = {}
    exec(own_pass, names)
    assert "SOFTMAX" not in [layer.op for layer in names["program"].layers]
    table = {f.name for f in dataclasses.fields(user_operators.UserOperator)}
    text = (DOCS / "own-operators.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `(\w+)` \|", text, re.M)) == table


@pytest.mark.costly
def test_the_job_of_ci_runs(tmp_path: Path) -> None:
    """Its shell lines but pip, twice: the first run's results are the baseline."""
    (text,) = blocks("ci.md", "yaml")
    steps = yaml.safe_load(text)["jobs"]["figures"]["steps"]
    (install,) = (step["run"] for step in steps if "pip install" in step.get("run", ""))
    assert re.search(r"ziglang==\d", install), "the compiler is pinned"
    (script,) = (step["run"] for step in steps if step.get("run", "").startswith("covp"))
    (use,) = (step for step in steps if step.get("uses", "").startswith("./covp/"))
    assert DOCS.parent / use["uses"].removeprefix("./covp/") == action.PATH.parent
    given = {key: str(value) for key, value in use["with"].items() if key != "comment"}
    ours = action.Action(tmp_path, given)
    (tmp_path / "model.tflite").symlink_to(zoo.find("kws").path)
    make, elsewhere = blocks("ci.md", "sh")
    environment = {
        **os.environ,
        "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}",
        "PYTHONPATH": str(DOCS.parent),
    }
    for lines in (make.partition("git add")[0], script, elsewhere):
        done = subprocess.run(
            ["bash", "-eo", "pipefail", "-c", lines],
            cwd=tmp_path, env=environment, capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
    done = ours.run("Check")
    assert done.returncode == 0, done.stderr
    assert ours.run("Verdict").returncode == 0
    assert "## covp check: passed" in ours.summary.read_text()
    assert (tmp_path / "summary.md").read_text() == ours.summary.read_text()


def test_the_page_of_ci_has_the_inputs_of_the_action() -> None:
    text = (DOCS / "ci.md").read_text(encoding="utf-8")
    table = text.partition("| input of the action |")[2].partition("\n\n")[0]
    inputs = yaml.safe_load(action.PATH.read_text(encoding="utf-8"))["inputs"]
    assert re.findall(r"^\| `([\w-]+)` \|", table, re.M) == list(inputs)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files_and_headings(page: Path) -> None:
    for target in re.findall(r"\]\(((?!https?:)[^)]+)\)", page.read_text(encoding="utf-8")):
        name, _, anchor = target.partition("#")
        file = page.parent / name if name else page
        assert file.is_file() or file.is_dir(), f"{page.name}: {target}"
        if anchor and file.parent.name != "reference":  # those are generated: mkdocs checks them
            titles = re.findall(r"^#+ (.*)$", file.read_text(encoding="utf-8"), re.M)
            assert anchor in {slug(title) for title in titles}, f"{page.name}: {target}"


def slug(title: str) -> str:
    """As GitHub and MkDocs name a heading."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_exist(page: Path) -> None:
    for command in re.findall(r"^(?: {4})?covp (\w+)", page.read_text(encoding="utf-8"), re.M):
        assert command in COMMANDS, command


def test_terms_are_in_order() -> None:
    """The glossary is alphabetical within its sections."""
    for section in (DOCS / "glossary.md").read_text().split("\n## ")[1:]:
        terms = re.findall(r"^#### (.*)$", section, re.M)
        assert len(terms) > 5
        assert terms == sorted(terms, key=str.lower)


def test_files_that_are_named_exist() -> None:
    """Paths in any page, and the kernels' files that kernels.md names alone."""
    root = DOCS.parent
    text = {page.name: page.read_text(encoding="utf-8") for page in PAGES}
    for name, content in text.items():
        for path in re.findall(
            r"\b((?:covp|tests|benchmarks|platforms)/[\w/]+\.(?:py|yaml|c|h))\b", content
        ):
            assert (root / path).is_file(), f"{name}: {path}"
    for file in re.findall(r"`(\w+\.py)`", text["kernels.md"]):
        assert list((root / "covp" / "codegen" / "kernels").rglob(file)), file
