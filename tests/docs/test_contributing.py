"""CONTRIBUTING.md: each walk names files that exist, and in them what it says is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "CONTRIBUTING.md"
if not PAGE.is_file():
    pytest.skip("not in a checkout", allow_module_level=True)
WALKS = (
    "Add an operator",
    "Add a figure",
    "Add a build option",
    "Add an export layout",
    "Add a core",
    "Add an observer of the bus",
)
PLACE = re.compile(r"[\w.-]+(/[\w.-]+)*(/|\.(py|md|yaml))")
"""A file or folder of the checkout."""
OF_USERS = {"KIND", "Kind", "NAME"}
"""What the reader puts a name in the place of."""
CALL = re.compile(r"(python|covp) (\S+)")


def walk(title: str) -> list[str]:
    """The numbered steps under a heading, each on a line."""
    section = PAGE.read_text(encoding="utf-8").split(f"\n## {title}\n")[1].split("\n## ")[0]
    return [" ".join(step.split()) for step in re.split(r"^\d+\. ", section, flags=re.M)[1:]]


def quoted(step: str) -> list[str]:
    return re.findall(r"`([^`]+)`", step)


def places(step: str) -> list[str]:
    """The files and folders of a step: with a folder in their name, or folders at the top."""
    found = [text for text in quoted(step) if PLACE.fullmatch(text) and "/" in text]
    return found + [call[2] for text in quoted(step) if (call := CALL.match(text)) and "/" in text]


def names(step: str) -> list[str]:
    """What a step says of its files' content: identifiers, and files beside others."""
    found = []
    for text in quoted(step):
        if text not in places(step) and not CALL.match(text):
            found += re.findall(r"[A-Za-z_]\w*(?:\.\w+)*", text)
    return [name for name in found if name not in OF_USERS]


def content(place: str) -> str:
    """The text of a file, or of all in a folder, with their names."""
    path = ROOT / place
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    texts = (file for file in files if file.suffix in (".py", ".yaml", ".md", ".sv"))
    return "\n".join(f"{file.name}\n{file.read_text(encoding='utf-8')}" for file in texts)


def missing(steps: list[str]) -> list[str]:
    """What is named and is not there: places, and names in the places of their step."""
    found = []
    for step in steps:
        absent = [place for place in places(step) if not (ROOT / place).exists()]
        text = "\n".join(content(place) for place in places(step) if place not in absent)
        found += absent
        found += [
            name for name in names(step) if not re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text)
        ]
    return found


@pytest.mark.parametrize("title", WALKS)
def test_what_a_walk_names_is_there(title: str) -> None:
    steps = walk(title)
    assert len(steps) >= 4
    assert all(places(step) for step in steps), "each step names a file or folder"
    assert any(place.startswith("tests/") for place in places(steps[-1])), "a walk ends in a test"
    assert missing(steps) == []


def test_what_is_not_there_is_noticed() -> None:
    step = "`covp/errors.py`: a `CovpError`, as `ModelError`; `python benchmarks/accuracy.py`"
    assert missing([step]) == []
    assert missing([step.replace("ModelError", "NoSuchError")]) == ["NoSuchError"]
    assert missing([step.replace("errors.py", "error.py")])[0] == "covp/error.py"
    assert missing([step.replace("accuracy", "acuracy")]) == ["benchmarks/acuracy.py"]
