"""The tables of a run: how sure each figure is, layers, causes, memory, traffic, energy."""

from __future__ import annotations

from collections.abc import Iterator

from covp.base.figure import significant
from covp.evaluation.documents import Moved, Run
from covp.report.page import Cell, Column, Table
from covp.report.quantities import (
    certainty,
    count_bytes,
    cut,
    label,
    rows,
)
from covp.report.table import Value

Row = list[Value | Cell]


def certainty_table(run: Run) -> Table:
    """Return every headline figure with its kind, its source and its error."""
    source = run.cycles_source
    kind = source.kind if source else "unknown"
    model = f"{source.model}; {source.assumes}" if source and source.assumes else ""
    model = model or (source.model if source else "")
    cycles = certainty(run) or None
    exact: Row = ["exact", "none", "counted on the device"]
    found: list[Row] = []
    if run.instructions is not None:
        found.append(["instructions", f"{run.instructions:,}", *exact])
    if run.cycles is not None:
        found.append(["cycles", f"{run.cycles:,}", kind, cycles, model])
    if run.seconds is not None:
        how: Row | None = None
        if run.cycles is None:
            how = ["measured", "it varies", "clock of this machine"]
        clock = f" at {run.core.clock_hz / 1e6:,.6g} MHz" if run.core and run.core.clock_hz else ""
        time: Row = how or [kind, cycles, f"cycles{clock}"]
        found.append(["time", time_text(run.seconds), *time])
    found += _unit_rows(run)
    if run.bytes is not None:
        total = sum(one.read + one.write for one in run.bytes.values())
        found.append(["bytes moved", f"{total:,}", *exact])
    if run.energy_j is not None and run.energy_source is not None:
        found.append(["energy", energy_text(run.energy_j), *_energy_row(run)])
    found += [
        [f"area of {area.name}", f"{area.um2:,.0f} µm²", "estimated", "unchecked", area.source]
        for area in run.accelerator_area
    ]
    linked: Row = ["exact", "none", "as linked and loaded"]
    found.append(["flash", f"{run.memory.flash_bytes:,} bytes", *linked])
    found.append(["RAM", f"{run.memory.ram_bytes:,} bytes", *linked])
    columns = [Column(name) for name in ("figure", "value", "kind", "error", "source")]
    return Table("How sure each figure is", columns, found)


def _unit_rows(run: Run) -> Iterator[Row]:
    """Yield the cycles of each unit that received jobs."""
    for unit in run.units:
        if unit.busy_cycles:
            error = None if unit.cycles_error is None else f"{unit.cycles_error:.1%} at most"
            source = unit.cycles_checked or f"the time that {unit.name} states"
            yield [
                f"cycles of {unit.name}",
                f"{unit.busy_cycles:,}",
                "estimated",
                error or "unchecked",
                source,
            ]


def _energy_row(run: Run) -> Row:
    source = run.energy_source
    assert source is not None
    span = "unchecked"
    if source.low_j is not None and source.high_j is not None:
        span = f"{energy_text(source.low_j)} to {energy_text(source.high_j)} published"
    return ["estimated", span, f"{source.model}; {source.assumes}"]


def time_text(seconds: float) -> str:
    """Return a time in ms."""
    return f"{significant(seconds * 1e3, 4)} ms"


def energy_text(joules: float) -> str:
    """Return an energy in µJ."""
    return f"{significant(joules * 1e6, 4)} µJ"


def causes_table(run: Run) -> Table:
    """Return cycles by cause; the residual is what the causes do not explain."""
    total = run.cycles_by_cause or {}
    used = [cause for cause in total if total[cause]]
    columns = [
        Column("layer"),
        Column("cycles", format=","),
        Column("error", "of the cycles"),
        *(Column(cause, "cycles", ",") for cause in used),
        Column("residual", "cycles", ",", "cycles without a cause"),
    ]

    def row(name: str, cycles: int | None, causes: dict[str, int]) -> Row:
        parts = [causes.get(cause, 0) for cause in used]
        return [name, cycles, certainty(run), *parts, (cycles or 0) - sum(causes.values())]

    found = [row(name, cost.cycles, cost.cycles_by_cause or {}) for name, cost in rows(run)]
    left_out = [cause for cause in total if not total[cause]]
    caption = f"No cycle passed with: {', '.join(left_out)}." if left_out else ""
    return Table("Causes", columns, found, row("total", run.cycles, total), caption)


def memory_table(run: Run) -> Table:
    """Return every piece in use, and what is free, by region."""
    found: list[Row] = []
    for region in run.memory_map:
        used = sum(place.bytes for place in region.used)
        pieces = [(p.what, f"0x{p.address:08x}", p.bytes) for p in region.used]
        found += [
            [region.name, what, at, size, 100 * size / region.size_bytes]
            for what, at, size in [*pieces, ("free", "", region.size_bytes - used)]
        ]
    columns = [
        Column("region"),
        Column("what"),
        Column("from"),
        Column("size", "bytes", ","),
        Column("of the region", "%", ".1f"),
    ]
    return Table("Memory map", columns, found)


def arena_table(run: Run) -> Table:
    """Return the tensors in the arena."""
    count = len(run.layers)
    found: list[Row] = [
        [
            Cell(tensor.name, cut(tensor.name), tensor.name),
            tensor.kind,
            tensor.offset,
            tensor.bytes,
            label(run.layers[min(tensor.first, count - 1)]),
            label(run.layers[min(tensor.last, count - 1)]),
        ]
        for tensor in run.arena
    ]
    columns = [
        Column("tensor"),
        Column("kind"),
        Column("offset", "bytes", ","),
        Column("size", "bytes", ",", bar=True),
        Column("first used by"),
        Column("last used by"),
    ]
    return Table("Arena", columns, found)


def traffic_table(run: Run) -> Table:
    """Return bytes by bus master and memory, over all layers."""
    found = list(_traffic(run))
    columns = [
        Column("by"),
        Column("memory"),
        *(Column(way, "bytes", ",", bar=True) for way in ("read", "written", "fetched")),
    ]
    sums: list[Value] = [sum(int(str(row[i])) for row in found) for i in (2, 3, 4)]
    caption = "fetched: instructions that ran; not in the arithmetic intensity."
    return Table("Bytes by bus master and memory", columns, found, ["total", "", *sums], caption)


def _traffic(run: Run) -> Iterator[Row]:
    for master, memories in (run.bytes_by_master or {}).items():
        for memory, one in memories.items():
            if one != Moved():
                yield [master, memory, one.read, one.write, one.fetch]


def traffic_by_layer(run: Run) -> Table:
    """Return loads and stores of each layer by memory."""
    memories = list(run.bytes or {})
    ways = [(memory, way) for memory in memories for way in ("read", "write")]
    columns = [
        Column("layer"),
        *(Column(f"{memory} {way}", "bytes", ",") for memory, way in ways),
        Column("all", "bytes", ",", bar=True),
    ]
    found: list[Row] = [
        [
            name,
            *(getattr((cost.bytes or {}).get(memory, Moved()), way) for memory, way in ways),
            count_bytes(cost),
        ]
        for name, cost in rows(run)
    ]
    total = [getattr((run.bytes or {})[memory], way) for memory, way in ways]
    return Table("Bytes by layer", columns, found, ["total", *total, sum(total)])


def energy_table(run: Run) -> Table:
    """Return the products of the sum, each with its source."""
    source = run.energy_source
    assert source is not None
    found: list[Row] = [
        [
            part.what,
            part.count,
            f"{part.unit}s",
            part.pj,
            "unchecked" if part.low is None else f"{part.low:.3g} to {part.high or part.pj:.3g}",
            part.joules * 1e6,
            100 * part.joules / run.energy_j if run.energy_j else None,
            part.source,
        ]
        for part in source.parts
    ]
    columns = [
        Column("part"),
        Column("count", format=","),
        Column("of"),
        Column("each", "pJ", "~4"),
        Column("published", "pJ"),
        Column("energy", "µJ", "~4"),
        Column("share", "%", ".1f"),
        Column("source"),
    ]
    whole = None if run.energy_j is None else run.energy_j * 1e6
    return Table("Energy", columns, found, ["total", None, "", None, "", whole, 100.0, ""])
