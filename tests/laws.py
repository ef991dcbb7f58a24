"""`pytest -m law`: what holds of graph, passes, maps, arithmetic, planner, partition, documents ...

The inner loop while covp is changed: no compiler and no other process, which a fixture holds, and
under a minute. All tests of the files below are laws, but for those that are marked ``process``.
"""

from __future__ import annotations

import functools
import subprocess
from pathlib import Path
from typing import Any

import pytest

LAWS = (
    "accelerator/test_choice.py",
    "accelerator/test_cover.py",
    "accelerator/test_partition.py",
    "accelerator/test_pattern.py",
    "accelerator/test_registry.py",
    "base/test_pareto.py",
    "building/overlap/test_random_schedules.py",
    "chip/test_cores.py",
    "chip/test_instruction_sets.py",
    "chip/test_joined_regions.py",
    "chip/test_regions.py",
    "cli/test_check.py",
    "codegen/test_planner.py",
    "device/timing/test_models.py",
    "evaluation/test_documents.py",
    "evaluation/test_domains.py",
    "evaluation/test_lifetimes.py",
    "evaluation/test_request.py",
    "evaluation/test_varied.py",
    "evaluation/test_views.py",
    "exploration/sweep/test_keys.py",
    "exploration/sweep/test_result.py",
    "exploration/sweep/test_spec.py",
    "graph/*.py",
    "graph/passes/*.py",
    "graph/tflite/*.py",
    "graph/zoo/test_zoo.py",
    "hardware/test_[!s]*.py",
    "report/test_columns.py",
    "runtime/test_allocator.py",
    "test_arguments.py",
    "test_registry.py",
    "testing/test_*.py",
)
"""Files of tests/."""
_FOLDER = Path(__file__).parent


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark what is a law, before tests are chosen by their marks."""
    others = any(item.get_closest_marker(name) for name in ("process", "slow"))
    if not others and is_in_laws(item.path):
        item.add_marker(pytest.mark.law)


@functools.cache
def is_in_laws(path: Path) -> bool:
    """Return whether the tests of a file are laws."""
    inside = path.relative_to(_FOLDER) if path.is_relative_to(_FOLDER) else None
    return inside is not None and any(
        inside.match(law) and len(inside.parts) == law.count("/") + 1 for law in LAWS
    )


@pytest.fixture(autouse=True)
def laws_start_no_process(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail a law that starts a compiler or another process, where laws alone were asked for."""
    if request.config.getoption("markexpr") == "law" and request.node.get_closest_marker("law"):

        def refuse(*arguments: Any, **_: Any) -> None:
            pytest.fail(f"a law starts no process, but this one did: {arguments[1:]}")

        monkeypatch.setattr(subprocess.Popen, "__init__", refuse)
