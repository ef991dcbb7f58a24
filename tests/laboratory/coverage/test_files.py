"""Coverage as files: lcov and genhtml read the tracefile, Cobertura's rules hold for the XML."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as xml

import pytest

import covp
from covp.laboratory.coverage import Coverage, CoverageData
from tests.laboratory.coverage.gcov import run

SOURCE = """\
static int clamp(int x)
{
  if (x > 10)
    return 10;
  return x;
}
int f(int a, int b)
{
  int s = 0;
  for (int i = 0; i < a; i++) {
    if (i > 2 && b)
      s += clamp(i * b);
  }
  return s;
}
int never(int a)
{
  return a ? 3 : 4;
}
"""
TEXT = "int g(int x) {\n  if (x)\n    return 7;\n  return 2;\n}\n"
# coverage-04.dtd: element -> (children in order: one, or any number of one; required attributes)
RATES = ("line-rate", "branch-rate", "complexity")
TOTALS = ("lines-covered", "lines-valid", "branches-covered", "branches-valid")
RULES: dict[str, tuple[str, tuple[str, ...]]] = {
    "coverage": ("sources packages", (*RATES, *TOTALS, "version", "timestamp")),
    "sources": ("source*", ()),
    "source": ("", ()),
    "packages": ("package*", ()),
    "package": ("classes", ("name", *RATES)),
    "classes": ("class*", ()),
    "class": ("methods lines", ("name", "filename", *RATES)),
    "methods": ("method*", ()),
    "method": ("lines", ("name", "signature", *RATES)),
    "lines": ("line*", ()),
    "line": ("conditions*", ("number", "hits")),
    "conditions": ("condition*", ()),
    "condition": ("", ("number", "type", "coverage")),
}
OPTIONAL = {"line": {"branch", "condition-coverage"}}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, list[CoverageData]]]:
    """A source file and two runs of it, on different cores."""
    source = tmp_path_factory.mktemp("code") / "unit.c"
    source.write_text(SOURCE)
    data = []
    for platform, calls in (("riscv32", [(5, 2)]), ("cortex-m4", [(9, 9), (0, 1)])):
        with covp.Session(platform) as session:
            f = session.load_c(source, flags=("-O0",))["f"]
            g = session.load_c(TEXT, flags=("-O0",))["g"]
            with Coverage(session) as c:
                for call in calls:
                    f(*call).result()
                    g(call[1]).result()
            data.append(c.data)
    yield source, data


def lines_of(info: str, source: str) -> dict[int, int]:
    """The DA records of a source file."""
    (part,) = (p for p in info.split("end_of_record") if f"SF:{source}\n" in p)
    return {int(n): int(count) for n, count in re.findall(r"^DA:(\d+),(\d+)", part, re.M)}


def test_tracefile(runs: tuple[Path, list[CoverageData]], tmp_path: Path) -> None:
    source, (one, other) = runs
    total = one + other
    total.write(tmp_path / "total.info")
    info = (tmp_path / "total.info").read_text()
    assert lines_of(info, str(source)) == total.lines(source)
    assert total.lines(source)[12] == 2 + 6 and total.lines(source)[18] == 0
    (text,) = (name for name in total.files if name != str(source))
    kept = tmp_path / "total.info-sources" / text
    assert kept.read_text() == TEXT and lines_of(info, str(kept)) == total.lines(text)
    part = info.split("end_of_record")[info.split("end_of_record")[0].find(str(source)) < 0]
    outcomes = re.findall(r"^BRDA:\d+,\d+,\d+,(\S+)", part, re.M)
    assert f"BRF:{len(outcomes)}\n" in part and len(outcomes) == 2 * len(total.branches(source))
    assert f"BRH:{sum(count not in '-0' for count in outcomes)}\n" in part
    assert "FNDA:0,never" in part and "FNDA:3,f" in part and "FNF:3\nFNH:2" in part


@pytest.mark.skipif(not shutil.which("genhtml"), reason="lcov is not installed")
def test_lcov_reads_it(runs: tuple[Path, list[CoverageData]], tmp_path: Path) -> None:
    """lcov adds up two runs as `+` does; genhtml shows the totals and finds all sources."""
    source, (one, other) = runs
    one.write(tmp_path / "one.info")
    other.write(tmp_path / "other.info")
    (one + other).write(tmp_path / "total.info")
    branches = ("--rc", "lcov_branch_coverage=1")
    run(tmp_path, "lcov", *branches, "-a", "one.info", "-a", "other.info", "-o", "sum.info")
    added = (tmp_path / "sum.info").read_text()
    assert lines_of(added, str(source)) == (one + other).lines(source)
    said = run(tmp_path, "genhtml", "--branch-coverage", "total.info", "-o", "html")
    files = (one + other).files.values()
    lines = [count > 0 for file in files for count in file.lines.values()]
    assert f"({sum(lines)} of {len(lines)} lines)" in said
    outcomes = [branch.outcomes for file in files for branch in file.branches]
    assert f"({sum(outcomes)} of {2 * len(outcomes)} branches)" in said
    pages = list((tmp_path / "html").rglob("*.c.gcov.html"))
    assert len(pages) == 2 and all("return" in page.read_text() for page in pages)


def test_cobertura(runs: tuple[Path, list[CoverageData]], tmp_path: Path) -> None:
    source, (one, other) = runs
    total = one + other
    total.write(tmp_path / "coverage.xml")
    text = (tmp_path / "coverage.xml").read_text()
    assert "coverage-04.dtd" in text.splitlines()[1]
    root = xml.fromstring(text)
    assert root.tag == "coverage"
    for element in root.iter():
        children, required = RULES[element.tag]
        found = [child.tag for child in element]
        if children.endswith("*"):
            assert set(found) <= {children[:-1]}, element.tag
        else:
            assert found == children.split(), element.tag
        optional = OPTIONAL.get(element.tag, set())
        assert set(required) <= set(element.keys()) <= set(required) | optional, element.tag
    where = root.findtext("sources/source") or ""
    one_class = {where + (c.get("filename") or ""): c for c in root.iter("class")}[str(source)]
    lines = one_class.findall("lines/line")
    hits = {int(line.get("number") or 0): int(line.get("hits") or 0) for line in lines}
    assert hits == total.lines(source)
    shares = [line.get("condition-coverage", "").rstrip(")") for line in lines]
    outcomes = sum(int(share.split("/")[1]) for share in shares if share)
    assert outcomes == 2 * len(total.branches(source))


def test_what_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(covp.UsageError, match=r"cannot be written to .*file/cov\.info"):
        CoverageData().write(tmp_path / "file" / "cov.info")
    CoverageData().write(tmp_path / "new" / "cov.json")
    assert CoverageData.from_json((tmp_path / "new" / "cov.json").read_text()) == CoverageData()
