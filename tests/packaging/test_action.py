""".github/actions/covp-check: its steps run here, with commands of GitHub replaced."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.action import PATH, Action

RUN: dict[str, Any] = {
    "schema": "covp.run/1",
    "model": "kws",
    "platform": "riscv32",
    "device": "virtual",
    "toolchain": "zig 0.17.0",
    "accelerators": [],
    "instructions": 1000,
    "cycles": 2000,
    "seconds": 0.002,
    "matches_reference": True,
    "memory": {"flash_bytes": 3000, "ram_bytes": 4000, "arena_bytes": 2000},
    "layers": [],
}
RECORDER = '#!/bin/sh\nprintf "%s\\n" "$@" >> "$0.said"\nexit "${FAKE_STATUS:-0}"\n'


@pytest.fixture
def folder(checkout: Path, tmp_path: Path) -> Path:
    for name, instructions in (("baseline", 1000), ("same", 1000), ("worse", 1200)):
        text = json.dumps(RUN | {"instructions": instructions})
        (tmp_path / f"{name}.json").write_text(text)
    return tmp_path


def used(folder: Path, results: str, **inputs: str) -> Action:
    return Action(folder, {"results": results, "baseline": "baseline.json", **inputs})


def said(folder: Path, command: str) -> list[str]:
    return (folder / "bin" / f"{command}.said").read_text().splitlines()


@pytest.mark.costly
@pytest.mark.parametrize(
    ("results", "thresholds", "status", "title"),
    [
        ("same.json", "", 0, "## covp check: passed"),
        ("worse.json", "", 1, "## covp check: 1 of 1 failed"),
        ("worse.json", "--threshold 25\n--max-flash 4K", 0, "## covp check: passed"),
        ("wors?.json", "--threshold 25", 0, "## covp check: passed"),
        ("same.json", "--max-flash 1K", 1, "## covp check: 1 of 1 failed"),
        ("none.json", "", 2, "## covp check: nothing was checked"),
    ],
)
def test_the_summary_is_written_and_the_status_is_that_of_the_check(
    folder: Path, results: str, thresholds: str, status: int, title: str
) -> None:
    action = used(folder, results, thresholds=thresholds)
    action.summary.write_text("of an earlier step\n")
    done = action.run("Check")
    assert done.returncode == 0, done.stderr  # the comment comes before the verdict
    written = action.summary.read_text().splitlines()
    assert written[:2] == ["of an earlier step", title]
    assert Path(action.values["steps.check.outputs.summary"]).read_text().startswith(title)
    assert ("none.json" in done.stderr) == ("none.json" in action.summary.read_text())
    assert action.run("Verdict").returncode == status


@pytest.mark.costly
def test_without_a_baseline_budgets_are_checked(folder: Path) -> None:
    action = used(folder, "same.json worse.json", baseline="", thresholds="--max-instructions 1100")
    action.run("Check")
    assert action.run("Verdict").returncode == 2  # two results of one run
    action = used(folder, "worse.json", baseline="", thresholds="--max-instructions 1100")
    action.run("Check")
    assert action.run("Verdict").returncode == 1


def test_inputs_are_no_shell(folder: Path) -> None:
    action = used(folder, "$(touch there) ; touch there", thresholds="`touch there`")
    action.run("Check")
    assert action.run("Verdict").returncode == 2
    assert not (folder / "there").exists()


@pytest.mark.parametrize(
    ("covp", "wanted"),
    [
        ("ziglang==0.17.0 ./covp", ["ziglang==0.17.0", "./covp"]),
        ("", [f"{PATH.parent}/../../.."]),
    ],
)
def test_pip_installs_covp(folder: Path, covp: str, wanted: list[str]) -> None:
    action = used(folder, "same.json", covp=covp)
    action.command("python", RECORDER)
    assert action.run("Install covp").returncode == 0
    assert said(folder, "python") == ["-m", "pip", "install", "--quiet", *wanted]
    assert (Path(f"{PATH.parent}/../../..") / "pyproject.toml").is_file()


@pytest.mark.parametrize("refused", [False, True])
def test_the_comment_is_the_summary(
    folder: Path, refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A token that may not comment is a warning: the verdict is the check's."""
    action = used(folder, "worse.json", comment="true")
    action.command("gh", RECORDER)
    monkeypatch.setenv("FAKE_STATUS", str(int(refused)))
    action.values |= {
        "inputs.token": "secret",
        "github.repository": "owner/name",
        "github.event.pull_request.number": "17",
    }
    action.run("Check")
    done = action.run("Comment")
    assert done.returncode == 0
    assert ("::warning::" in done.stdout) == refused
    summary = action.values["steps.check.outputs.summary"]
    assert said(folder, "gh") == [
        *("pr", "comment", "17", "--edit-last", "--create-if-none", "--body-file"),
        summary,
    ]
    assert action.run("Verdict").returncode == 1


def test_a_comment_is_for_pull_requests_that_want_one(checkout: Path) -> None:
    content = yaml.safe_load(PATH.read_text(encoding="utf-8"))
    names = [step.get("name", step.get("uses")) for step in content["runs"]["steps"]]
    assert names == ["actions/setup-python@v5", "Install covp", "Check", "Comment", "Verdict"]
    (condition,) = (step["if"] for step in content["runs"]["steps"] if "if" in step)
    assert condition == "inputs.comment == 'true' && github.event_name == 'pull_request'"
    assert content["inputs"]["comment"]["default"] == "false"
    assert all(entry["description"] for entry in content["inputs"].values())
