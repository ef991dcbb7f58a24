"""benchmarks/accelerator_paper.py says when its models are not the paper's."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "accelerator_paper.py"


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location("accelerator_paper", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "accelerator_paper", module)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("source", ["synthetic", "official"])
def test_synthetic_models_are_named(
    script: ModuleType, source: str, capsys: pytest.CaptureFixture[str]
) -> None:
    paper = script.PAPER["kws"]
    script.show([script.Row("kws", source, "qconv2d", 10, 1, 0.9, 1.0, 0.1, 0.1, True, paper)])
    printed = capsys.readouterr().out
    assert ("SYNTHETIC" in printed and "kws;" in printed) == (source == "synthetic")


@pytest.mark.costly
def test_a_row_knows_where_its_model_comes_from(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COVP_MODEL_DIR", raising=False)
    monkeypatch.setattr("covp.graph.zoo.cache_dir", lambda name: Path("no downloads"))
    monkeypatch.setattr(script, "PAPER", {"kws": script.PAPER["kws"]})
    monkeypatch.setattr(script, "SPLITS", ("qconv2d",))
    monkeypatch.setattr(script, "RUNS", 1)
    assert [row.source for row in script.rows()] == ["synthetic"]
