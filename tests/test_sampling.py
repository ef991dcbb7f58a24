"""Samples of the tests: ten commits in a row run every case; each has a case of every test."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import sampling
from tests.sampling import COMMITS, ONE_IN, sample

NAMES = st.lists(st.text(min_size=1), min_size=1, max_size=40, unique=True)


@given(NAMES, st.integers(1, COMMITS), st.integers(0, 10**6))
def test_commits_in_a_row_run_all(names: list[str], one_in: int, first: int) -> None:
    samples = [sample(names, one_in, first + i) for i in range(one_in)]
    assert set().union(*samples) == set(names)
    assert all(samples), "a commit would run no case of that test"
    assert max(map(len, samples)) <= -(-len(names) // min(one_in, len(names)))


def test_no_folder_needs_more_commits() -> None:
    assert max(ONE_IN.values()) <= COMMITS
    here = Path(__file__).parent
    assert all((here / name).is_dir() or (here / "evaluation" / name).is_dir() for name in ONE_IN)


@pytest.fixture
def project(tmp_path: Path) -> Callable[..., set[str]]:
    """A function: what pytest selects of a project with a test of 20 cases and one of 20 slow."""
    codegen = tmp_path / "tests" / "codegen"
    codegen.mkdir(parents=True)
    source = Path(sampling.__file__).read_text(encoding="utf-8")
    (tmp_path / "tests" / "sampling.py").write_text(source, encoding="utf-8")
    (tmp_path / "tests" / "conftest.py").write_text(
        "from tests.sampling import pytest_addoption, pytest_collection_modifyitems\n"
    )
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\npythonpath = .\ntestpaths = tests\nmarkers = slow\naddopts = -m 'not slow'\n"
    )
    (codegen / "test_it.py").write_text(
        "import pytest\n"
        "@pytest.mark.parametrize('n', range(20))\ndef test_a(n): pass\n"
        "@pytest.mark.slow\n@pytest.mark.parametrize('n', range(20))\ndef test_b(n): pass\n"
    )

    def selected(*options: str) -> set[str]:
        command = [sys.executable, "-m", "pytest", "-q", "--collect-only", "-p", "no:xdist"]
        environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", sampling.NUMBER: "3"}
        run = subprocess.run(
            [*command, *options], cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        assert run.returncode == 0, run.stdout + run.stderr
        return {line.rpartition("::")[2] for line in run.stdout.splitlines() if "::" in line}

    return selected


def test_options(project: Callable[..., set[str]]) -> None:
    quick = {f"test_a[{n}]" for n in range(20)}
    slow = {f"test_b[{n}]" for n in range(20)}
    assert project("--all-cases") == quick
    assert project("-m", "slow or not slow", "--all-cases") == quick | slow
    assert project("-m", "slow") == slow
    third, fourth = project(), project("--sample", "4")
    assert len(third) == len(fourth) == 20 / COMMITS and not third & fourth
    assert project("--sample", str(3 + COMMITS)) == third
    tenth = project("-m", "slow", "--slow-sample")
    assert len(tenth) == 20 / COMMITS and tenth < slow


def test_a_case_that_is_named_runs(project: Callable[..., set[str]]) -> None:
    for case in ("test_a[7]", "test_a[8]"):
        assert case in project(f"tests/codegen/test_it.py::{case}")
