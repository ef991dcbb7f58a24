"""What a release states in several places: version, systems, forms of the repository."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml


@pytest.fixture
def project(checkout: Path) -> dict[str, Any]:
    text = (checkout / "pyproject.toml").read_text(encoding="utf-8")
    found: dict[str, Any] = tomllib.loads(text)["project"]
    return found


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def test_the_version_is_one(checkout: Path, project: dict[str, Any]) -> None:
    changes = (checkout / "CHANGELOG.md").read_text(encoding="utf-8")
    versions = re.findall(r"^## \[([\d.]+)\]", changes, re.M)
    assert versions[0] == project["version"]
    assert versions == sorted(versions, reverse=True)
    kinds = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    assert set(re.findall(r"^### (.*)$", changes, re.M)) <= kinds
    cited = read(checkout / "CITATION.cff")
    assert {"cff-version", "message", "title", "authors"} <= set(cited)
    assert (cited["version"], cited["license"]) == (project["version"], project["license"])
    assert cited["title"] == project["name"] and cited["abstract"] == project["description"]


def test_versions_of_python_are_tested_before_a_release(
    checkout: Path, project: dict[str, Any]
) -> None:
    jobs = read(checkout / ".github" / "workflows" / "release.yml")["jobs"]
    tested = jobs["test"]["strategy"]["matrix"]["python-version"]
    prefix = "Programming Language :: Python :: 3."
    stated = [c.rpartition(" ")[2] for c in project["classifiers"] if c.startswith(prefix)]
    assert len(stated) >= 3
    assert set(stated) <= set(tested)
    assert f">={tested[0]}" == project["requires-python"]
    page = (checkout / "docs" / "licence.md").read_text(encoding="utf-8")
    assert all(version in page for version in stated)


def test_nothing_is_published_unless_it_is_wanted(checkout: Path) -> None:
    jobs = read(checkout / ".github" / "workflows" / "release.yml")["jobs"]
    assert jobs["publish"]["if"] == "vars.PUBLISH == 'true'"
    assert jobs["publish"]["needs"] == "test" and jobs["test"]["needs"] == "build"
    writers = [name for name, job in jobs.items() if "permissions" in job]
    assert writers == ["publish"]


def test_workflows_and_forms_can_be_read(checkout: Path) -> None:
    folder = checkout / ".github"
    for path in (folder / "workflows").glob("*.yml"):
        content = read(path)
        steps = [step for job in content["jobs"].values() for step in job["steps"]]
        used = [step["uses"] for step in steps if "uses" in step]
        assert used and all(re.search(r"@(release/)?v\d+$", name) for name in used), path
    for path in (folder / "ISSUE_TEMPLATE").glob("*.yml"):
        if path.stem == "config":
            continue
        form = read(path)
        assert form["name"] and form["description"]
        fields = [entry for entry in form["body"] if entry["type"] != "markdown"]
        names = [field["id"] for field in fields]
        assert names and len(set(names)) == len(names)
        assert all(field["attributes"]["label"] for field in fields)
