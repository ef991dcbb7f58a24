"""Packages of the extra ``report``, imported when used; a missing one is one line."""

from __future__ import annotations

from typing import Any

from covp.base.dependencies import load_extra


def altair() -> Any:
    """Altair: charts as Vega-Lite.

    Raises:
        UsageError: it is not installed.
    """
    return load_extra("altair", "report")


def vl_convert() -> Any:
    """vl-convert: Vega's JavaScript, and charts as PNG and SVG without a browser.

    Raises:
        UsageError: it is not installed.
    """
    return load_extra("vl_convert", "report")
