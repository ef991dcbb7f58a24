"""The page in a browser: no error, no request, text stays text, tables sort and are copied."""

import re
from pathlib import Path

import pytest

from covp.errors import UsageError
from covp.report.page import (
    Cell,
    Column,
    Facts,
    Figure,
    FigureTile,
    Note,
    Section,
    Table,
    Tiles,
    write_page,
)
from tests.report.browser import needs_browser, open_page

EVIL = "</script><script>document.title='owned'</script><img src=http://covp.invalid/x>\"'&"


def sections(text: str) -> list[Section]:
    spec = {
        "data": {"values": [{"layer": text, "cycles": 3}, {"layer": "b", "cycles": 5}]},
        "mark": "bar",
        "width": "container",
        "height": 60,
        "encoding": {
            "x": {"field": "cycles", "type": "quantitative"},
            "y": {"field": "layer", "type": "nominal"},
        },
    }
    columns = [Column("layer", note=text), Column("cycles", "core cycles", ",", bar=True)]
    rows: list[list[str | int | Cell | None]] = [
        [text, 1234],
        ["b", 99],
        ["c", Cell(100000, "0.1 M", text)],
        ["d", None],
    ]
    return [
        Section(text, [Tiles([FigureTile(text, text, text)]), Facts([(text, text)]), Note(text)]),
        Section(
            "Layers", [Figure("layers", text, spec, text), Figure("dots", "", spec, canvas=True)]
        ),
        Section("Table", [Table(text, columns, rows, ("all", 101333), text)]),
    ]


@pytest.mark.costly
@needs_browser
def test_text_is_text_and_nothing_is_fetched(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    write_page(page, f"of {EVIL}", sections(EVIL), EVIL)
    count = (
        "document.body.id = `${document.images.length} images, ${document.scripts.length} scripts`"
    )
    opened = open_page(page, tmp_path, count)
    assert opened.console == [] and opened.requests == []
    assert '<html lang="en" data-ready="2">' in opened.dom
    assert "<svg" in opened.dom and "<canvas" in opened.dom
    assert re.search("<title>of &lt;/script&gt;", opened.dom)
    assert '<body id="0 images, 6 scripts">' in opened.dom
    assert page.stat().st_size < 1_500_000


@pytest.mark.costly
@needs_browser
def test_the_browser_tells_of_requests_and_errors(tmp_path: Path) -> None:
    page = tmp_path / "planted.html"
    page.write_text("<body><img src=http://covp.invalid/x><script>missing()</script></body>")
    opened = open_page(page, tmp_path)
    assert opened.requests == ["http://covp.invalid/x"]
    assert "missing is not defined" in "".join(opened.console)


@pytest.mark.costly
@needs_browser
def test_tables_sort_and_are_copied(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    write_page(page, "t", sections("a"))
    script = """
      const body = document.querySelector("tbody");
      const names = () => [...body.rows].map((row) => row.cells[0].textContent).join("");
      const click = (i) => document.querySelectorAll("th button")[i].click();
      const seen = [names()];
      click(1); seen.push(names()); click(1); seen.push(names()); click(0); seen.push(names());
      document.title = seen.join(" ") + "|" + tabSeparated(document.querySelector("table"));
    """
    title = re.search("<title>(.*?)</title>", open_page(page, tmp_path, script).dom, re.DOTALL)
    assert title
    orders, copied = title[1].split("|")
    assert orders == "abcd cabd bacd abcd"
    assert copied.split("\n") == [
        "layer\tcycles, core cycles",
        *("a\t1234", "b\t99", "c\t100000", "d\t", "all\t101333"),
    ]


def test_a_file_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"page\.html: cannot be written: "):
        write_page(tmp_path / "no" / "page.html", "t", [])
