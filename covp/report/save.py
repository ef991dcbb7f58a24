"""`save_figures`: the figures of a page as PNG or SVG files, without a browser."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from covp.errors import UsageError
from covp.report import extra
from covp.report.page import Figure
from covp.report.theme import vega_config

FORMATS = ("png", "svg")
_WIDTH = 820
_INK = "#1c2026"


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
            raise UsageError(f"{path}: cannot be written: {error.strerror}") from None
        written.append(path)
    return written


def _picture(figure: Figure, form: str) -> bytes:
    spec = json.dumps(_standing_alone(figure))
    if form == "svg":
        return str(extra.vl_convert().vegalite_to_svg(spec)).encode()
    return bytes(extra.vl_convert().vegalite_to_png(spec, scale=2))


def _standing_alone(figure: Figure) -> dict[str, Any]:
    """The chart with a title, a width and a background of its own."""
    config = {**vega_config(_INK), "background": "white", "padding": 14}
    wide = {"width": _WIDTH} if figure.spec.get("width") == "container" else {}
    return {**figure.spec, **wide, "title": figure.title, "config": config}
