"""Documents of runs, written as ``covp run --json`` does."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from covp.evaluation import Wanted, build, run
from covp.evaluation.documents import Run
from covp.report.run_labels import read_runs
from tests.plain import plain as as_json


@pytest.fixture(scope="session")
def document() -> dict[str, Any]:
    """kws with its convolutions on a unit; traffic and energy are known."""
    made = build("kws", "nucleo-l4r5zi", ["gemm:technology=horowitz-45nm,bytes_per_cycle=2"])
    return dict(as_json(run(made, wanted=Wanted(traffic=True)).record()))


@pytest.fixture(scope="session")
def plain() -> dict[str, Any]:
    """The same on the core alone, without anything on top; its timing model is unchecked."""
    return dict(as_json(run(build("kws", "riscv32"), check="none").record()))


Written = Callable[[Any], Path]


@pytest.fixture
def written(tmp_path: Path) -> Written:
    """Writes a document to a file."""

    def write(content: Any) -> Path:
        path = tmp_path / f"run{len(list(tmp_path.glob('run*.json')))}.json"
        path.write_text(json.dumps(content))
        return path

    return write


@pytest.fixture
def kws(document: dict[str, Any], written: Written) -> Run:
    """The document as a run."""
    return read_runs(written(document))[0]
