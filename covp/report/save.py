"""`save_figures`: the figures of a page as PNG or SVG files, without a browser."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from covp.errors import UsageError
from covp.report import extra
from covp.report.figures.pareto import POINTS
from covp.report.page import Figure, Section
from covp.report.point_columns import Grid, PointColumn, Points, records
from covp.report.theme import PALETTE, vega_config

FORMATS = ("png", "svg")
_WIDTH = 820
_INK = "#1c2026"


def figures_of(sections: Sequence[Section]) -> list[Figure]:
    """Return the figures of a page, in order.

    Args:
        sections: of the page. Figures that share the points of a sweep get them, coloured by model.
    """
    return [figure for section in sections for figure in _figures(section)]


def _figures(section: Section) -> Iterator[Figure]:
    columns = [part.columns for part in section.parts if isinstance(part, Points)]
    for part in section.parts:
        if isinstance(part, Figure):
            yield part
        elif isinstance(part, Grid):
            data = {"datasets": {POINTS: [row for one in columns for row in _add_colour(one)]}}
            yield from (replace(one, spec={**one.spec, **data}) for one in part.figures)


def _add_colour(columns: Sequence[PointColumn]) -> Iterator[dict[str, Any]]:
    """Yield the points with the field ``colour``."""
    rows = records(columns)
    models = list(dict.fromkeys(row.get("model") for row in rows))
    for row in rows:
        yield row | {"colour": PALETTE[models.index(row.get("model")) % len(PALETTE)]}


def save_figures(figures: Sequence[Figure], folder: Path, form: str = "png") -> list[Path]:
    """Write each figure to a file of its name, on white.

    Args:
        figures: of a page.
        folder: made where it is not there.
        form: "png" (twice as many pixels as points) or "svg".

    Returns:
        The files.

    Raises:
        UsageError: the folder cannot be written to, or the extra ``report`` is not installed.
    """
    written = []
    for figure in figures:
        path = folder / f"{figure.name}.{form}"
        content = _picture(figure, form)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        except OSError as error:
            raise UsageError(f"cannot be written: {error.strerror}", where=path) from None
        written.append(path)
    return written


def _picture(figure: Figure, form: str) -> bytes:
    spec = json.dumps(_standing_alone(figure))
    if form == "svg":
        return str(extra.vl_convert().vegalite_to_svg(spec)).encode()
    return bytes(extra.vl_convert().vegalite_to_png(spec, scale=2))


def _standing_alone(figure: Figure) -> dict[str, Any]:
    """Return the chart with a title, a width and a background of its own."""
    config = {**vega_config(_INK), "background": "white", "padding": 14}
    wide = {"width": _WIDTH} if figure.spec.get("width") == "container" else {}
    return {**figure.spec, **wide, "title": figure.title, "config": config}
