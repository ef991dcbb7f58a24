"""Output of ``covp run --traffic``: bytes that each layer moves, by memory and bus master."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from covp.cli.output import print_table
from covp.device.phase_count import Traffic
from covp.evaluation import Evaluation
from covp.report.quantities import operator_label
from covp.report.table import Table, numbers, texts

_WAYS = ("read", "written", "fetched")


def print_traffic(result: Evaluation) -> None:
    """Print a row for each layer and master, and their totals."""
    total = result.profile.traffic or {}
    memories = dict.fromkeys(chain.from_iterable(total.values()))
    columns = [
        (memory, way)
        for memory in memories
        for way in _WAYS
        if any(getattr(moved.get(memory), way, 0) for moved in total.values())
    ]
    rows = [
        [layer, operator, master, *(getattr(moved.get(m), way, 0) for m, way in columns)]
        for layer, operator, traffic in _parts(result)
        for master, moved in traffic.items()
    ]
    title = "bytes moved: loads and stores, and instructions that were fetched"
    headings = numbers(*(f"{memory} {way}" for memory, way in columns))
    print_table(Table(title, [*texts("layer", "operator", "by"), *headings], rows))


def _parts(result: Evaluation) -> Iterator[tuple[str, str, Traffic]]:
    """Yield number, operator and traffic of each layer, of the rest, and of the total."""
    profile = result.profile
    for entry in profile.layers:
        yield f"{entry.index}", operator_label(entry.op, entry.name), entry.traffic or {}
    yield "", "between layers", profile.between.traffic or {}
    yield "", "total", profile.traffic or {}
