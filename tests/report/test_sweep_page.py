"""The report of a sweep in a browser: its figures, filters and table show the same points."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from covp.base.pareto import front
from covp.report import designs
from covp.report.objectives import OBJECTIVES, Row, costs
from covp.report.save import figures_of
from covp.report.sweep_page import Sweep, sweep_sections, write_sweep_page
from tests.report import sweep_rows
from tests.report.browser import needs_browser, open_page

PAIR = [OBJECTIVES["seconds"], OBJECTIVES["area_um2"]]


def answers(tmp_path: Path, rows: list[Row], script: str, width: int = 1280) -> dict[str, Any]:
    """What a script in the drawn page says: ``say(name, value)``. The page is as it should be."""
    page = tmp_path / "sweep.html"
    write_sweep_page(page, [Sweep("sweep", rows)])
    helpers = """
      const said = {};
      const say = (name, value) => {
        said[name] = value;
        document.body.dataset.said = JSON.stringify(said);
      };
      const figure = (name) => document.getElementById(`figure-${name}`);
      const box = (text) => [...document.querySelectorAll("fieldset label")].find(
        (label) => label.textContent === text).querySelector("input");
      const pause = () => new Promise((done) => setTimeout(done, 400));
      const data = (name, from = "points") => figure(name).drawn.view.data(from);
      const front = (name) => data(name, "data_0").filter((p) => p.on_front).map((p) => p.i);
      const drawn = async () => { while (!document.documentElement.dataset.ready) await pause(); };
      const count = () => document.getElementById("points-count").textContent;
    """
    opened = open_page(
        page, tmp_path, f"{helpers} (async () => {{ await drawn(); {script} }})();", width
    )
    assert opened.console == [] and opened.requests == []
    match = re.search('data-said="([^"]*)"', opened.dom)
    assert match, "the script came to an end"
    return dict(json.loads(unescape(match[1])))


def fronts_of(rows: list[Row]) -> list[int]:
    """Of each model the front, by number."""
    ordered = designs.sort_rows(rows)
    all_costs, found = costs(ordered, PAIR), list[int]()
    for model in {row["model"] for row in ordered}:
        mine = [i for i, row in enumerate(ordered) if row["model"] == model]
        found += [i for i, is_best in zip(mine, front(all_costs[mine]), strict=True) if is_best]
    return sorted(found)


@pytest.mark.costly
@needs_browser
def test_the_figure_has_the_front_of_what_is_shown(tmp_path: Path) -> None:
    """By ``covp.base.pareto``, of all points and of those that a filter leaves."""
    rows: list[Row] = [*sweep_rows.grid(models=tuple(sweep_rows.MODELS))]
    said = answers(
        tmp_path,
        rows,
        """
        say("all", front("seconds-area_um2"));
        box("cv32e40p").click();
        box("kws").click();
        await pause();
        say("left", front("seconds-area_um2"));
        say("count", count());
        say("rows", document.querySelector("#points-table tbody").rows[0].cells[0].textContent);
        """,
    )
    assert sorted(said["all"]) == fronts_of(rows)
    kept = [
        r for r in designs.sort_rows(rows) if r["platform"] != "cv32e40p" and r["model"] != "kws"
    ]
    expected = {r["key"] for i, r in enumerate(kept) if i in fronts_of(kept)}
    shown = {designs.sort_rows(rows)[i]["key"] for i in said["left"]}
    assert shown == expected and len(expected) > 4
    assert said["count"] == f"{len(kept)} of {len(rows)} points"
    assert said["rows"] == "resnet"


@pytest.mark.costly
@needs_browser
def test_a_brush_chooses_in_the_other_figures(tmp_path: Path) -> None:
    rows: list[Row] = [*sweep_rows.grid(models=("kws",))]
    said = answers(
        tmp_path,
        rows,
        """
        const view = figure("seconds-area_um2").drawn.view;
        view.signal("brush_x", [0, view.width() / 3]).signal("brush_y", [0, view.height()]).run();
        await pause();
        say("ends", view.signal("brush").seconds);
        say("own", data("seconds-area_um2").length);
        say("other", data("seconds-energy_j").map((p) => p.seconds));
        say("count", count());
        document.querySelector("#points-filters button").click();
        await pause();
        say("again", data("seconds-energy_j").length);
        """,
    )
    low, high = said["ends"][0] * (1 - 1e-6), said["ends"][1]  # the page has six digits
    chosen = [r["seconds"] for r in rows if r["seconds"] and low <= r["seconds"] <= high]
    assert sorted(said["other"]) == pytest.approx(sorted(chosen), rel=1e-5)
    assert 0 < len(chosen) < len(rows)
    assert said["own"] == said["again"] == len(rows)
    assert said["count"] == f"{len(chosen)} of {len(rows)} points"


@pytest.mark.costly
@needs_browser
def test_the_table_copies_all_that_is_shown(tmp_path: Path) -> None:
    rows: list[Row] = [*sweep_rows.searched(90)]
    rows[3] = {**rows[3], **sweep_rows.failure("ToolchainError: a, b and <c>")}
    said = answers(
        tmp_path,
        rows,
        """
        let copied = "";
        const clipboard = { writeText: async (text) => (copied = text) };
        Object.defineProperty(navigator, "clipboard", { value: clipboard });
        const button = (name) => [...document.querySelectorAll("#points-table button")].find(
          (one) => one.textContent === name);
        button("Cycles").click();
        button("Copy").click();
        await pause();
        say("copied", copied);
        button("›").click();
        say("place", document.querySelector("#points-table output").textContent);
        """,
    )
    head, *lines = [line.split("\t") for line in said["copied"].split("\n")]
    assert len(lines) == 90 and {len(line) for line in lines} == {len(head)}
    cycles = [line[head.index("Cycles")] for line in lines]
    assert cycles == [*sorted((str(r["cycles"]) for r in rows if r["cycles"]), key=int), ""]
    assert lines[-1][head.index("Reason")] == "ToolchainError: a, b and <c>"
    by_key = {r["key"][:12]: r for r in rows}
    for line in lines[:-1]:
        energy = by_key[line[head.index("Key")]]["energy_j"]
        assert float(line[head.index("Energy (J)")]) == pytest.approx(energy, rel=1e-5)
    assert said["place"] == "26–50 of 90"


@pytest.mark.costly
@needs_browser
def test_ten_thousand_points(tmp_path: Path) -> None:
    """Under 5 MB, and no wider than a telephone."""
    rows: list[Row] = [*sweep_rows.searched(10_000)]
    said = answers(
        tmp_path, rows, 'say("over", document.documentElement.scrollWidth - innerWidth);', 500
    )
    assert (tmp_path / "sweep.html").stat().st_size < 5_000_000
    assert said["over"] <= 0


@pytest.mark.costly
def test_what_hardly_varies_has_no_figure(tmp_path: Path) -> None:
    """Of each model; it is named with its values, and stays in the tables."""
    rows = [one | {"accuracy": 0.9} for one in sweep_rows.searched(60)]
    for i, one in enumerate(rows):
        one |= {"flash_bytes": 80_000 if one["model"] == "kws" else 900_000}
        one |= {"ram_bytes": 20_000 + i}
    rows[0]["flash_bytes"] += 1_599 if rows[0]["model"] == "kws" else 17_999
    sections = sweep_sections([Sweep("sweep", rows)])
    names = {figure.name for figure in figures_of(sections)}
    assert any("energy_j" in name for name in names)
    assert not any("flash_bytes" in name or "ram_bytes" in name for name in names)
    designs_html = sections[1].html()
    assert "Hardly vary (less than 2 %" in designs_html
    assert (
        "RAM (bytes) 20,000 to 20,059" in designs_html and "Flash (bytes) 80,000 to" in designs_html
    )
    assert "Flash" in sections[2].html(), "the best designs"
    rows[0]["ram_bytes"] = 25_000
    names = {figure.name for figure in figures_of(sweep_sections([Sweep("sweep", rows)]))}
    assert any("ram_bytes" in name for name in names)


@pytest.mark.costly
def test_two_sweeps(tmp_path: Path) -> None:
    """What changed is told in figures: one point is better, one has failed, one is new."""
    before = sweep_rows.grid("0.1.0", ("kws",))
    after = sweep_rows.grid("0.2.0", ("kws",))
    worked = [i for i, row in enumerate(after) if row["status"] == "ok"]
    after[worked[0]] |= {"seconds": after[worked[0]]["seconds"] / 2}
    after[worked[1]] |= sweep_rows.failure("KernelError: planted")
    gone = before.pop(worked[2])
    page = tmp_path / "sweep.html"
    write_sweep_page(page, [Sweep("old", before), Sweep("new", after[::-1])])
    text = re.sub("<[^>]*>", " ", page.read_text(encoding="utf-8"))
    assert (
        f"{len(before)} points are in both, 2 of them differ; 0 are only in old, 1 only in" in text
    )
    assert "-50.00%" in text and "ok → failed" in text and "KernelError: planted" in text
    assert gone["key"] not in {row["key"] for row in after}, "versions differ, the designs do not"
