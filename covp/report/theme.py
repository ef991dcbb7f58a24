"""Colours of all figures, and Vega-Lite's configuration that makes them of one piece.

The palette is Paul Tol's "vibrant" with some of his "muted" (SRON/EPS/TN/09-002, issue 3.2): people
with any colour blindness tell the colours apart, on white and on dark paper.
"""

from __future__ import annotations

from typing import Any

BLUE, CYAN, TEAL = "#0077bb", "#33bbee", "#009988"
ORANGE, RED, MAGENTA, GREY = "#ee7733", "#cc3311", "#ee3377", "#a0a4aa"
OLIVE, PURPLE, SAND, GREEN = "#999933", "#aa4499", "#bbaa55", "#117733"
PALETTE = (BLUE, ORANGE, TEAL, MAGENTA, CYAN, RED, OLIVE, PURPLE, GREY)
"""Of categories without colours of their own, in this order."""

INK = "@ink"
"""Stands for the text's colour, which the page, its print and a saved picture set each."""
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"


def vega_config(ink: str = INK) -> dict[str, Any]:
    """Vega-Lite's top-level ``config``: no background, quiet axes, titles in plain weight.

    Args:
        ink: the colour of text, axes and unstyled marks.
    """
    title = {"titleColor": ink, "titleFontWeight": "normal", "titleFontSize": 12}
    label = {"labelColor": ink, "labelFontSize": 11}
    return {
        "background": "transparent",
        "font": FONT,
        "view": {"stroke": None},
        "axis": {
            **title,
            **label,
            "gridColor": ink,
            "gridOpacity": 0.12,
            "domainColor": ink,
            "domainOpacity": 0.35,
            "tickColor": ink,
            "tickOpacity": 0.35,
            "labelLimit": 210,
            "titlePadding": 8,
        },
        "legend": {
            **title,
            **label,
            "orient": "top",
            "titleAnchor": "start",
            "symbolType": "square",
        },
        "header": {**title, **label},
        "title": {"color": ink, "fontSize": 13, "anchor": "start", "fontWeight": 600},
        "text": {"color": ink, "fontSize": 11},
        "rule": {"color": ink},
        "range": {"category": list(PALETTE)},
        "bar": {"color": BLUE},
        "line": {"color": BLUE, "strokeWidth": 2},
        "point": {"color": BLUE, "filled": True, "size": 60, "opacity": 0.9},
    }
