"""docs/accuracy.md: made from the JSON files, and the known errors of models are those it shows."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from covp.cores import CORES
from covp.timing.model import load_timing

ROOT = Path(__file__).parents[2]


@pytest.fixture
def generator() -> ModuleType:
    """benchmarks/accuracy.py."""
    path = ROOT / "benchmarks" / "accuracy.py"
    if not path.is_file():
        pytest.skip("not in a checkout")
    spec = importlib.util.spec_from_file_location("accuracy", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_what_the_files_give(
    generator: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["accuracy.py", "--check"])
    assert generator.main() == 0, capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", ["accuracy.py", "loops"])
    assert generator.main() == 0
    assert generator.loops_differ() in capsys.readouterr().out


def test_the_known_error_of_a_model_is_its_largest(generator: ModuleType) -> None:
    for section in ("rtl", "coremark"):
        for row in generator.rows_of(section):
            error = load_timing(CORES[row["core"]].timing or "").error
            assert error is not None and abs(row["error"]) <= error, row
