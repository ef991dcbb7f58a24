"""The lower bounds of the dependencies are what CI tests with: .ci/lowest.txt."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def bounds() -> dict[str, str]:
    """The lower bound of each dependency in pyproject.toml, as it is written there."""
    if not (ROOT / "pyproject.toml").is_file():
        pytest.skip("not in a checkout")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    entries = [*project["dependencies"], *extras["sweep"], *extras["report"], *extras["docs"]]
    entries = [entry for entry in entries if not entry.startswith("covp[")]
    plain = [re.sub(r"\[\w+\]|,<2$", "", entry) for entry in entries]
    found = [re.fullmatch(r"([\w-]+)>=([\d.]+)", entry) for entry in plain]
    assert all(found), "each dependency is NAME>=VERSION: an upper bound only where it is known"
    return {entry[1]: entry[2] for entry in found if entry}


def numbers(version: str) -> list[int]:
    """Without zeros at the end: 6.0 is 6.0.0."""
    text = re.sub(r"(\.0)+$", "", version)
    return [int(part) for part in text.split(".")]


def test_every_bound_is_the_version_that_is_tested(bounds: dict[str, str]) -> None:
    lines = (ROOT / ".ci" / "lowest.txt").read_text(encoding="utf-8").splitlines()
    pinned = dict(line.split("==") for line in lines if not line.startswith("#"))
    assert {name: numbers(version) for name, version in pinned.items()} == {
        name: numbers(version) for name, version in bounds.items()
    }


def test_versions_that_are_known_to_be_wrong_are_left_out(bounds: dict[str, str]) -> None:
    assert numbers(bounds["unicorn"]) > [2, 1, 3]
    assert numbers(bounds["click"]) > [8, 1]


def test_ci_runs_with_the_lowest_versions() -> None:
    script = ROOT / ".ci" / "run"
    if not script.is_file():
        pytest.skip("not in a checkout")
    assert "--constraint .ci/lowest.txt" in script.read_text(encoding="utf-8")
