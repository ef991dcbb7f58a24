"""The documents that commands print, read back as strictly as they are described."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from covp.evaluation.documents import Run
from tests.plain import plain

D = TypeVar("D", bound=msgspec.Struct)


def read(document: Any, kind: type[D]) -> D:
    """Return a document as its structure: with each of its keys, and no others."""
    found = msgspec.convert(document, kind)
    assert plain(found) == document
    return found


def run_of(document: Any) -> Run:
    """Return a run whose layers, and what lies between them, add up to all of it."""
    return add_up(read(document, Run))


def add_up(run: Run) -> Run:
    """Return a run of which the sums are right that docs/json.md promises."""
    inside = sum(layer.instructions or 0 for layer in run.layers)
    assert run.instructions is not None and run.between.instructions is not None
    assert inside + run.between.instructions == run.instructions
    if run.cycles is not None:
        cycles = sum(layer.cycles or 0 for layer in run.layers)
        assert cycles + (run.between.cycles or 0) == run.cycles
    return run
