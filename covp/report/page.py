"""The page: sections of figures, tables and text as one HTML file that needs no network.

    write_page(Path("report.html"), "kws on riscv32", [
        Section("Layers", [Note("where the cycles go"), figure, table]),
    ])

A figure is an Altair chart; Vega's JavaScript is in the file. A content security policy in the page
forbids every request, and all text is escaped.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from string import Template
from typing import Any, Protocol

from covp.errors import UsageError
from covp.report.table import Cell, Column, Table
from covp.report.theme import vega_config

__all__ = [
    "Cell",
    "Column",
    "Facts",
    "Figure",
    "FigureTile",
    "Note",
    "PagePart",
    "Section",
    "Table",
    "Tiles",
    "write_page",
]

_FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Figure:
    """A chart with its title.

    Attributes:
        name: a word: of its file when it is saved, and in the page.
        title: above it, with the unit.
        spec: Vega-Lite, from ``chart.to_dict()``, without a title and a theme. A ``width`` of
            "container" fills the page at any width, a wider chart is scrolled. Give the height as
            a number: of one that follows from a discrete axis Vega-Lite warns on the console.
        caption: plain text below: what it shows, and how sure that is.
        canvas: drawn as pixels, for thousands of marks; else as SVG, which prints better.
    """

    name: str
    title: str
    spec: dict[str, Any]
    caption: str = ""
    canvas: bool = False

    def html(self) -> str:
        """Return the place in which the page's script puts the chart."""
        renderer = "canvas" if self.canvas else "svg"
        caption = f"<figcaption>{escape(self.caption)}</figcaption>" if self.caption else ""
        return (
            f'<figure id="figure-{escape(self.name)}" data-renderer={renderer}>'
            f"<h3>{escape(self.title)}</h3>"
            "<div class=scroll tabindex=0><div class=chart></div></div>"
            f"<script type=application/json>{script_json(self.spec)}</script>{caption}</figure>"
        )


@dataclass(frozen=True)
class FigureTile:
    """A figure in large type.

    Attributes:
        title: what it is.
        value: with its unit.
        detail: below: how sure it is, and where it comes from.
    """

    title: str
    value: str
    detail: str = ""


@dataclass(frozen=True)
class Tiles:
    """Some `FigureTile` side by side."""

    tiles: Sequence[FigureTile]

    def html(self) -> str:
        """Return the tiles as a list that wraps."""
        items = "".join(
            f"<li><span>{escape(tile.title)}</span><strong>{escape(tile.value)}</strong>"
            f"<small>{escape(tile.detail)}</small></li>"
            for tile in self.tiles
        )
        return f"<ul class=tiles>{items}</ul>"


@dataclass(frozen=True)
class Facts:
    """Names and values, in order."""

    facts: Sequence[tuple[str, str]]

    def html(self) -> str:
        """Return the facts as a definition list."""
        items = (
            f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>"
            for name, value in self.facts
        )
        return f"<dl>{''.join(items)}</dl>"


@dataclass(frozen=True)
class Note:
    """A paragraph of plain text.

    Attributes:
        text: what it says.
        kind: "text", "missing" (what the input does not have, and how to get it) or "warning".
    """

    text: str
    kind: str = "text"

    def html(self) -> str:
        """Return the note as a paragraph."""
        return f"<p class={escape(self.kind)}>{escape(self.text)}</p>"


class PagePart(Protocol):
    """Anything that a section shows: `Figure`, `Table`, `Tiles`, `Facts`, `Note` and others."""

    def html(self) -> str:
        """Return the part as HTML, with text escaped."""


@dataclass(frozen=True)
class Section:
    """Parts under a title, which the page's navigation shows.

    Attributes:
        title: short.
        parts: from top to bottom.
    """

    title: str
    parts: Sequence[PagePart] = field(default_factory=tuple)

    @property
    def anchor(self) -> str:
        """Anchor of the links to it."""
        return re.sub(r"[^a-z0-9]+", "-", self.title.lower()).strip("-") or "section"

    def html(self) -> str:
        """Return the section as HTML."""
        parts = "".join(part.html() for part in self.parts)
        return f'<section id="{self.anchor}"><h2>{escape(self.title)}</h2>{parts}</section>'


def write_page(
    path: Path,
    title: str,
    sections: Sequence[Section],
    subtitle: str = "",
    style: str = "",
    script: str = "",
) -> None:
    """Write the sections as one HTML file.

    Args:
        path: of the file, which is replaced.
        title: of the page.
        sections: from top to bottom.
        subtitle: plain text below the title.
        style: CSS after the page's own.
        script: JavaScript before the page's own, which draws the figures: each gets an event
            ``draw`` with its specification and vegaEmbed's options before, and ``drawn`` after;
            its property of that name is what vegaEmbed returned.

    Raises:
        UsageError: the file cannot be written, or the extra ``report`` is not installed.
    """
    links = "".join(f'<a href="#{s.anchor}">{escape(s.title)}</a>' for s in sections)
    content = "".join(section.html() for section in sections)
    page = Template(_text("page.html.in")).substitute(
        title=escape(title),
        subtitle=f"<p>{escape(subtitle)}</p>" if subtitle else "",
        links=links if len(sections) > 1 else "",
        style=_text("page.css") + style,
        sections=content,
        config=script_json(vega_config()),
        vega=_vega() if "data-renderer=" in content else "",
        more=f"<script>{script}</script>" if script else "",
        script=_text("page.js"),
    )
    try:
        path.write_text(page, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot be written: {error.strerror}", where=path) from None


def script_json(value: Any) -> str:
    """Return JSON that no text in it can end the script element of."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c")


def _text(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf-8")


@functools.cache
def _vega() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script (BSD-3-Clause)."""
    from covp.report.extra import vl_convert

    return str(vl_convert().javascript_bundle()).replace("</script", "<\\/script")
