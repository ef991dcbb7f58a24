"""The built site in a browser: no table is cut or empty, no picture missing, no page too wide."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.report.browser import CHROMIUM, needs_browser

ROOT = Path(__file__).parents[2]
if not (ROOT / "mkdocs.yml").is_file():
    pytest.skip("not in a checkout", allow_module_level=True)
SAMPLE = (
    "index",
    "getting-started",
    "tutorial-accelerator",
    "guide-estimate",
    "boards",
    "firmware",
    "sweep",
    "report",
    "results",
    "accuracy",
    "energy",
    "architecture",
    "real-boards",
)
UNCUT = {"index": 1}
"""Pages of which so many tables are shown whole, without a scroll box."""
WIDTHS = (1280, 400)
SCHEMES = ("default", "slate")
LOOK = """
<script>addEventListener("load", () => { setTimeout(() => {
  const found = [];
  for (const frame of document.querySelectorAll("iframe")) {
    const view = frame.contentDocument, page = view.documentElement;
    const say = what => found.push(frame.title + ": " + what);
    view.body.setAttribute("data-md-color-scheme", frame.dataset.scheme);
    if (page.scrollWidth > page.clientWidth + 1)
      say("scrolls aside, " + page.scrollWidth + " of " + page.clientWidth);
    const text = view.querySelector("article").getBoundingClientRect();
    view.querySelectorAll("article table:not(.highlighttable)").forEach((table, number) => {
      const box = table.closest(".md-typeset__scrollwrap");
      const name = "table " + number + " ";
      if (!table.querySelector("tbody tr td")) say(name + "has no rows");
      if (!box) { say(name + "has no box"); return; }
      const cut = table.scrollWidth > box.clientWidth + 1;
      if (cut && number < frame.dataset.uncut)
        say(name + "is cut: " + table.scrollWidth + " of " + box.clientWidth);
      if (cut && view.defaultView.getComputedStyle(box).overflowX != "auto")
        say(name + "is wider than its box, which does not scroll");
      if (box.getBoundingClientRect().right > page.clientWidth + 1) say(name + "leaves the page");
    });
    const colour = view.defaultView.getComputedStyle(view.body);
    if (colour.color == colour.backgroundColor) say("text has the colour of the page");
    for (const image of view.querySelectorAll("article img")) {
      const source = image.getAttribute("src");
      if (!image.complete || !image.naturalWidth) say("no picture " + source);
      if (image.getBoundingClientRect().right > page.clientWidth + 1) say("cuts " + source);
    }
    if (!text.width) say("is empty");
  }
  document.title = "done";
  document.getElementById("found").textContent = JSON.stringify(found);
}, 3000); });</script>
"""


def look(folder: Path, pages: dict[str, int], tmp_path: Path) -> list[str]:
    """What is wrong with pages of a site, at each width and in both schemes of colour.

    Args:
        folder: of the site.
        pages: names to how many of their tables have to be whole.
        tmp_path: where the browser keeps its files.
    """
    assert CHROMIUM
    frames = "".join(
        f'<iframe title="{name} at {width}, {scheme}" data-scheme="{scheme}"'
        f' data-uncut="{whole}" width="{width}" height="900" src="{file}"></iframe>'
        for name, whole in pages.items()
        for file in ["index.html" if name == "index" else f"{name}/index.html"]
        for width in WIDTHS
        for scheme in SCHEMES
    )
    (folder / "look.html").write_text(f'{frames}<pre id="found"></pre>{LOOK}', encoding="utf-8")
    command = [
        *(CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"),
        *("--window-size=1400,1000", "--virtual-time-budget=60000"),
        *("--allow-file-access-from-files", f"--user-data-dir={tmp_path / 'profile'}"),
        *("--host-resolver-rules=MAP * ~NOTFOUND", (folder / "look.html").as_uri()),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    said = re.search(r'<pre id="found">(.+?)</pre>', done.stdout)
    assert said is not None, done.stderr[-2000:]
    found: list[str] = json.loads(said[1].replace("&gt;", ">").replace("&lt;", "<"))
    return found


@needs_browser
@pytest.mark.slow
def test_nothing_is_cut(tmp_path: Path) -> None:
    if importlib.util.find_spec("mkdocs") is None or importlib.util.find_spec("material") is None:
        pytest.skip("pip install '.[docs]'")
    folder = tmp_path / "site"
    call = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(call, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    pages = {name: UNCUT.get(name, 0) for name in SAMPLE}
    assert look(folder, pages, tmp_path) == []


@needs_browser
@pytest.mark.costly
def test_cut_and_empty_tables_are_found(tmp_path: Path) -> None:
    wide = "<td>" + "</td><td>".join(["x" * 30] * 9) + "</td>"
    box = (
        '<div class="md-typeset__scrollwrap" style="overflow-x:{}">'
        "<table><tbody>{}</tbody></table></div>"
    )
    page = "<!doctype html><body><article><p>text</p>{}</article></body>"
    for name, parts in {
        "good": box.format("auto", "<tr><td>a</td></tr>"),
        "cut": box.format("hidden", f"<tr>{wide}</tr>"),
        "empty": box.format("auto", ""),
        "bare": f"<table><tbody><tr>{wide}</tr></tbody></table>",
        "picture": '<img src="nowhere.png">',
    }.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "index.html").write_text(page.format(parts), encoding="utf-8")
    names = ("good", "cut", "empty", "bare", "picture")
    found = "\n".join(look(tmp_path, dict.fromkeys(names, 1), tmp_path))
    assert "good" not in found
    for scheme in SCHEMES:
        assert f"cut at 400, {scheme}: table 0 is wider than its box" in found
        assert f"cut at 1280, {scheme}: table 0 is cut" in found
        assert f"empty at 1280, {scheme}: table 0 has no rows" in found
        assert f"bare at 400, {scheme}: scrolls aside" in found
        assert f"picture at 400, {scheme}: no picture nowhere.png" in found


def test_the_picture_of_the_first_page_is_of_its_command() -> None:
    file = ROOT / "benchmarks" / "site_pictures.py"
    spec = importlib.util.spec_from_file_location("site_pictures", file)
    assert spec is not None and spec.loader is not None
    pictures = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(pictures)
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"covp run {pictures.RUNS['first-page']} --json > run.json" in text
    assert (ROOT / "docs" / "assets" / "report.png").stat().st_size < 150_000
    made = [
        f"{name}-{figure}.svg" for name in pictures.FIGURES for figure in pictures.FIGURES[name]
    ]
    for name in [*made, *(f"{name}.svg" for name in pictures.DIAGRAMS)]:
        assert (ROOT / "docs" / "assets" / name).is_file(), name
