"""docs/papers.md: its tables are what the stored results give, and each says where it is from."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
STORED = ("codai23", "microtvm", "cmsis-nn")
"""Those that run nothing; the others are run again among the slow tests of test_printed.py."""


@pytest.fixture
def papers(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """benchmarks/papers.py."""
    if not (ROOT / "benchmarks").is_dir():
        pytest.skip("not in a checkout")
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module("papers")


def printed(name: str) -> str:
    file = ROOT / "benchmarks" / "results" / "printed" / f"papers_{name.replace('-', '_')}.txt"
    return file.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", STORED)
def test_a_table_is_what_the_stored_results_give(papers: ModuleType, name: str) -> None:
    assert "\n\n".join(papers.PAPERS[name]()) + "\n" == printed(name)


def test_every_paper_has_its_section_and_its_source(papers: ModuleType) -> None:
    page = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
    sections = page.split("\n## ")[1:]
    assert len(sections) == len(papers.PAPERS)
    for name, section in zip(papers.PAPERS, sections, strict=True):
        assert f"<!-- printed by: python benchmarks/papers.py {name} -->" in section
        assert section.count("\n- Theirs: ") == 1 and "simulated" in section


def test_ratios_are_ours_by_theirs() -> None:
    """Of the whole CIFAR-10 network, in plain arithmetic from the row itself."""
    row = re.search(
        r"^\| all \| ([\d.]+) ms \| ([\d.]+) ms \| ([\d.]+) \|", printed("cmsis-nn"), re.M
    )
    assert row is not None
    assert float(row[3]) == pytest.approx(float(row[2]) / float(row[1]), abs=0.006)


def test_what_the_page_says_of_the_fastest_software() -> None:
    (row,) = (line for line in printed("mlperf-tiny").splitlines() if "X-CUBE-AI 9.0.0" in line)
    resnet, kws, vww, toycar = (float(cell) for cell in re.findall(r"\(([\d.]+)\) \|", row))
    assert kws > 1.05 and 0.95 < toycar < 1.05
    assert max(resnet, vww) < 0.95
