"""What the extra ``report`` installs, imported when it is used; a missing one is one line."""

from __future__ import annotations

import importlib
from typing import Any

from covp.errors import UsageError


def altair() -> Any:
    """Altair: charts as Vega-Lite.

    Raises:
        UsageError: it is not installed.
    """
    return _load("altair")


def vl_convert() -> Any:
    """vl-convert: Vega's JavaScript, and charts as PNG and SVG without a browser.

    Raises:
        UsageError: it is not installed.
    """
    return _load("vl_convert")


def _load(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise UsageError(
            f"covp report needs {name}, which is not installed: pip install 'covp[report]'"
        ) from None
