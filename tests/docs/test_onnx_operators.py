"""docs/onnx-operators.md: made from its JSON file, which still holds."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def generator(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """benchmarks/onnx_nodes.py."""
    path = ROOT / "benchmarks" / "onnx_nodes.py"
    if not path.is_file():
        pytest.skip("not in a checkout")
    spec = importlib.util.spec_from_file_location("onnx_nodes", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(sys, "argv", ["onnx_nodes.py", "--check"])
    return module


def test_the_page_is_what_the_file_gives(generator: ModuleType) -> None:
    assert generator.main() == 0


def test_more_pass_than_with_other_tools(generator: ModuleType) -> None:
    rows = json.loads(generator.DATA.read_text())["rows"]
    for platform in generator.PLATFORMS:
        passed = sum(row["passed"] for row in rows if row["platform"] == platform)
        assert passed >= 475 and passed > max(generator.OTHERS.values())


def hold(generator: ModuleType, every: int) -> None:
    """One row of ``every`` that pass is what running it again gives."""
    rows = [row for row in json.loads(generator.DATA.read_text())["rows"] if row["passed"]]
    assert len(rows) > 900
    for row in rows[::every]:
        found = generator.run_test(row["test"], row["platform"])
        if found.get("compiler") != row["compiler"]:
            pytest.skip(f"the figures are of {row['compiler']}")
        assert found == row


@pytest.mark.costly
def test_tests_still_need_as_many_instructions(generator: ModuleType) -> None:
    hold(generator, every=151)


@pytest.mark.slow
def test_many_tests_still_need_as_many_instructions(generator: ModuleType) -> None:
    hold(generator, every=7)
