"""Cortex-M timing models take the cycles that manuals and measurements state."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

BENCHMARK = Path(__file__).parents[3] / "benchmarks" / "documented_loops.py"


@pytest.fixture(scope="module")
def loops() -> ModuleType:
    if not BENCHMARK.is_file():
        pytest.skip("not in a checkout")
    spec = importlib.util.spec_from_file_location("documented_loops", BENCHMARK)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look there
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("core", ["m0", "m0plus", "m3", "m4f", "m7f", "m33"])
def test_every_documented_loop(loops: ModuleType, core: str) -> None:
    found = loops.measure(f"cortex-{core}")
    assert len(found) >= 10
    wrong = [
        f"{case.body}: {cycles:g}, not {loops.documented(case)} ({case.source})"
        for case, cycles in found.items()
        if loops.is_right(case, cycles) == bool(case.differs)
    ]
    assert not wrong, "\n".join(wrong)
