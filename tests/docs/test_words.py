"""Documents and sources use the field's standard terms; see docs/glossary.md."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = (
    "covp",
    "accel_backends",
    "peripherals",
    "device_runtime",
    "platforms",
    "docs",
    "examples",
)
SUFFIXES = {".py", ".c", ".h", ".S", ".md", ".yaml", ".cfg", ".ipynb", ".in"}
STANDARD = {
    "in front of": "before",
    "stands still": "is stalled, halted",
    "stood still": "was stalled, halted",
    "carried out": "executed",
    "asked for": "requested",
    "somebody": "the caller, the backend",
    "nobody": "not ... by anything",
    "mended": "fixed",
    "a row a": "one row per",
    "bits exact": "bit-exact",
}
"""A phrase of ours to what the field says."""
PHRASE = re.compile(rf"\b({'|'.join(STANDARD)})\b", re.I)


def texts() -> list[Path]:
    files = [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    for folder in FOLDERS:
        files += (path for path in (ROOT / folder).rglob("*") if path.suffix in SUFFIXES)
    return [path for path in files if path.is_file()]


def test_standard_terms() -> None:
    if not (ROOT / "README.md").is_file():
        pytest.skip("not in a checkout")
    found = [
        f"{path.relative_to(ROOT)}: {phrase!r}, better {STANDARD[phrase.lower()]!r}"
        for path in texts()
        for phrase in PHRASE.findall(path.read_text(encoding="utf-8"))
    ]
    assert len(texts()) > 200
    assert found == []


LONGEST = 90
"""Words of a paragraph or list item."""
GENERATED = frozenset({"accuracy.md", "energy.md", "json.md", "onnx-operators.md", "results.md"})


def paragraphs(text: str) -> list[str]:
    """Prose outside code, tables, comments and directives."""
    prose = re.sub(r"```.*?```", "", text, flags=re.S)
    blocks = re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )", prose)
    return [each for each in blocks if not each.startswith(("|", "#", "    ", ":::", "<"))]


def test_no_wall_of_text() -> None:
    if not (ROOT / "README.md").is_file():
        pytest.skip("not in a checkout")
    pages = [*(ROOT / "docs").glob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    found = {
        f"{page.name}: {text[:50]}": len(text.split())
        for page in pages
        if page.name not in GENERATED
        for text in paragraphs(page.read_text(encoding="utf-8"))
        if len(text.split()) > LONGEST
    }
    assert found == {}
    assert len(paragraphs("a " * 95 + "\n\n```\nb\n```\n- c\n- d\n")) == 3
