"""The JSON document of a benchmark: its rows, and what has to be known to repeat them."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

SCHEMA = "covp.benchmark/1"


def write_document(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write ``rows`` to ``path``, one to a line, so that a changed figure is a changed line.

    Each row names its platform and compiler; the document names covp's version and the call. There
    is no date in it: the same figures give the same file.
    """
    head = {
        "schema": SCHEMA,
        "benchmark": Path(sys.argv[0]).stem,
        "arguments": _arguments(),
        "covp": version("covp"),
    }
    lines = ",\n".join("  " + json.dumps(row) for row in rows)
    path.write_text(f'{json.dumps(head)[:-1]}, "rows": [\n{lines}\n]}}\n', encoding="utf-8")


def _arguments() -> list[str]:
    """The call's arguments without ``--json FILE``."""
    given = sys.argv[1:]
    if "--json" in given:
        at = given.index("--json")
        del given[at : at + 2]
    return given
