"""Timing models of cores, traces of what they executed, and what these cost by any model.

`retime` and `RunTrace` stand on the whole pipeline and are imported when they are first used.
"""

from __future__ import annotations

import importlib
from typing import Any

_RETIMING = ("RunTrace", "Retimed", "record", "retime")


def __getattr__(name: str) -> Any:
    if name not in _RETIMING:
        raise AttributeError(f"module 'covp.timing' has no attribute {name!r}")
    return getattr(importlib.import_module("covp.retiming"), name)
