"""Samples of the tests: ten numbers in a row have every case; each has a case of every test."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import core, given
from hypothesis import strategies as st

from tests import sampling
from tests.sampling import EXAMPLES, FEWEST_EXAMPLES, LONG_SAMPLES, SAMPLES, sample

NAMES = st.lists(st.text(min_size=1), min_size=1, max_size=40, unique=True)


@pytest.mark.costly
@given(NAMES, st.integers(1, SAMPLES), st.integers(0, 10**6))
def test_numbers_in_a_row_have_all(names: list[str], one_in: int, first: int) -> None:
    samples = [sample(names, one_in, first + i) for i in range(one_in)]
    assert set().union(*samples) == set(names)
    assert all(samples), "a sample has no case of that test"
    assert max(map(len, samples)) <= -(-len(names) // min(one_in, len(names)))


@pytest.fixture
def project(tmp_path: Path) -> Callable[..., set[str]]:
    """A function: what pytest selects of a project with a test of 20 cases and one of 20 slow."""
    codegen = tmp_path / "tests" / "codegen"
    codegen.mkdir(parents=True)
    source = Path(sampling.__file__).read_text(encoding="utf-8")
    (tmp_path / "tests" / "sampling.py").write_text(source, encoding="utf-8")
    (tmp_path / "tests" / "conftest.py").write_text(
        "from tests.sampling import pytest_addoption, pytest_collection_modifyitems\n"
        "from tests.sampling import pytest_terminal_summary\n"
    )
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\npythonpath = .\ntestpaths = tests\nmarkers =\n slow\n costly\n"
        "addopts = -m 'not slow'\n"
    )
    (codegen / "test_it.py").write_text(
        "import pytest\n"
        "@pytest.mark.parametrize('n', range(20))\ndef test_a(n): pass\n"
        "@pytest.mark.slow\n@pytest.mark.parametrize('n', range(20))\ndef test_b(n): pass\n"
        + "".join(f"@pytest.mark.costly\ndef test_c{n}(): pass\n" for n in range(20))
    )

    def printed(*options: str, run: bool = True) -> str:
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist"]
        command += [] if run else ["--collect-only"]
        environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        done = subprocess.run(
            [*command, *options], cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def selected(*options: str, run: bool = False) -> set[str]:
        lines = printed(*options, run=run).splitlines()
        return {line.rpartition("::")[2] for line in lines if "::" in line}

    selected.text = printed  # type: ignore[attr-defined]
    return selected


@pytest.mark.costly
def test_options(project: Callable[..., set[str]]) -> None:
    quick = {f"test_a[{n}]" for n in range(20)}
    slow = {f"test_b[{n}]" for n in range(20)}
    costly = {f"test_c{n}" for n in range(20)}
    assert project("--all-cases") == quick | costly
    assert project("-m", "slow or not slow", "--all-cases") == quick | slow | costly
    assert project("-m", "slow") == slow
    usual, fourth = project(), project("--sample", "4")
    for those, cases in ((quick, 20 // SAMPLES), (costly, max(1, 20 // LONG_SAMPLES))):
        assert len(usual & those) == len(fourth & those) == cases
    assert not usual & fourth
    again = str(SAMPLES * LONG_SAMPLES)
    assert project("--sample", again) == project("--sample", "0") == usual
    some = project("-m", "slow", "--slow-sample")
    assert len(some) == max(1, 20 // LONG_SAMPLES) and some < slow


@pytest.mark.costly
@pytest.mark.parametrize(
    "named",
    [
        ["tests/codegen/test_it.py"],
        ["-k", "test_a or test_c"],
        ["tests/codegen/test_it.py::test_a"],
    ],
)
def test_all_cases_of_what_is_named_run(project: Callable[..., set[str]], named: list[str]) -> None:
    """A bug in one of them would pass unseen otherwise."""
    all_of_a = {f"test_a[{n}]" for n in range(20)}
    assert all_of_a <= project(*named)
    assert len(project(*named, "--sample", "4") & all_of_a) == 20 / SAMPLES


def test_a_sample_says_that_it_is_one(project: Callable[..., set[str]]) -> None:
    line = "sample: 3 of 40 cases ran"
    assert line in project.text("tests")  # type: ignore[attr-defined]
    assert "sample:" not in project.text("tests", "--all-cases")  # type: ignore[attr-defined]


def test_a_sample_draws_its_own_examples(pytestconfig: pytest.Config) -> None:
    expected = pytestconfig.getoption("--sample") or 0
    given_seed = [text for text in pytestconfig.invocation_params.args if "hypothesis-seed" in text]
    assert given_seed or core.global_force_seed == expected


@pytest.mark.costly
@pytest.mark.parametrize("stated", [2, 100])
def test_examples(project: Callable[..., set[str]], stated: int, tmp_path: Path) -> None:
    log = tmp_path / "log"
    (tmp_path / "tests" / "codegen" / "test_examples.py").write_text(
        "from hypothesis import given, settings, strategies as st\n"
        f"@settings(max_examples={stated}, database=None)\n@given(st.integers())\n"
        f"def test_c(n): open({str(log)!r}, 'a').write('.')\n"
    )
    project("tests/codegen", run=True)
    few = len(log.read_text())
    log.unlink()
    project("tests/codegen", "--all-cases", run=True)
    assert len(log.read_text()) == stated
    assert few == (stated if stated < FEWEST_EXAMPLES else stated // EXAMPLES)
