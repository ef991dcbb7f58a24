"""The notebooks in examples: stored without outputs, and every cell runs."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))


def cells(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return found


RUN = """
import ast, json, sys
globals().pop("__file__", None)

def execute(source, where):
    *body, last = ast.parse(source, where).body
    if isinstance(last, ast.Expr):
        exec(compile(ast.Module(body, []), where, "exec"), globals())
        value = eval(compile(ast.Expression(last.value), where, "eval"), globals())
        view = getattr(value, "_repr_html_", None)
        print(repr(value) if view is None else view())
    else:
        exec(compile(ast.parse(source, where), where, "exec"), globals())

for number, source in enumerate(json.loads(sys.argv[1])):
    execute(source, f"cell {number}")
"""
"""Runs cells as IPython does: in a module without a file, the last expression is shown."""


def test_there_are_three() -> None:
    if not (ROOT / "examples").is_dir():
        pytest.skip("not in a checkout")
    assert len(NOTEBOOKS) == 3


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_outputs_are_not_stored(path: Path) -> None:
    for cell in cells(path):
        if cell["cell_type"] == "code":
            assert cell["outputs"] == [] and cell["execution_count"] is None


@pytest.mark.slow  # CI runs it beside the site that they are a part of
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_cell_runs(path: Path) -> None:
    code = ["".join(cell["source"]) for cell in cells(path) if cell["cell_type"] == "code"]
    done = subprocess.run(
        [sys.executable, "-", json.dumps(code)],
        input=RUN,
        cwd=path.parent,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) >= 4, "a notebook shows something"


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_kernel_runs_it(path: Path) -> None:
    nbformat = pytest.importorskip("nbformat")
    client = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    client.NotebookClient(notebook, kernel_name="python3", timeout=300).execute()


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_its_page_has_outputs_and_a_plot(path: Path) -> None:
    for needed in ("mkdocs", "nbclient", "ipykernel", "vl_convert"):
        pytest.importorskip(needed)
    spec = importlib.util.spec_from_file_location("hooks", ROOT / "docs" / "hooks.py")
    assert spec is not None and spec.loader is not None
    hooks = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hooks)
    page = hooks._notebook(path)
    assert '<img class="plot"' in page and "```text\n" in page
    assert "RendererRegistry" not in page and "Traceback" not in page
