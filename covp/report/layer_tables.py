"""The tables of a run's layers: where their cycles go, what they compute and take."""

from __future__ import annotations

from covp.base.plural import first_of
from covp.evaluation.documents import LayerRecord, Run
from covp.report.page import Cell, Column, Table
from covp.report.quantities import (
    PARTS,
    bound,
    certainty,
    cut,
    intensity,
    label,
    layer_joules,
    parts,
    rows,
    utilization,
)
from covp.report.table import Value

Row = list[Value | Cell]


def layers_table(run: Run) -> Table:
    """Return the cycles of each layer with their error, and the total."""
    known, used = certainty(run), _used_parts(run)
    columns = [
        Column("layer", note="the operator's number in the model file, and its kind"),
        Column("output", note="the tensor's name in the model file"),
        Column("on"),
        Column("instructions", format=","),
        Column("cycles", run.cycles_source.kind if run.cycles_source else "", ",", bar=True),
        Column("error", "of the cycles"),
        Column("share", "%", ".1f"),
        Column("cumulative", "%", ".1f"),
        *(Column(part, "cycles", ",") for part in used),
    ]
    found: list[Row] = []
    so_far = 0
    for name, cost in rows(run):
        so_far += cost.cycles or 0
        counted = run.cycles if cost.cycles is not None else None
        split = parts(cost)
        found.append(
            [
                name,
                *(_made(cost) if isinstance(cost, LayerRecord) else ("", "")),
                *(cost.instructions, cost.cycles, known),
                100 * (cost.cycles or 0) / counted if counted else None,
                100 * so_far / counted if counted else None,
                *(split.get(part, 0) if split else None for part in used),
            ]
        )
    sums = [sum(parts(cost).get(part, 0) for _, cost in rows(run)) for part in used]
    whole = 100.0 if run.cycles else None
    total: Row = ["total", "", "", run.instructions, run.cycles, known, whole, whole, *sums]
    return Table("Layers", columns, found, total)


def _made(layer: LayerRecord) -> Row:
    """Return the layer's output and where it is computed."""
    return [
        Cell(layer.tensor, cut(layer.tensor), layer.tensor or ""),
        first_of(layer.units or [layer.target]),
    ]


def _used_parts(run: Run) -> list[str]:
    """Return the parts that any layer has; on the core alone one, which is its cycles."""
    seen = {part for _, cost in rows(run) for part, cycles in parts(cost).items() if cycles}
    return [part for part in PARTS if part in seen] if len(seen) > 1 else []


def work_table(run: Run) -> Table:
    """Return the table of what each layer computes and takes."""
    columns = [
        Column("layer"),
        Column("shape", "of the output"),
        Column("type"),
        Column("on"),
        Column("MACs", format=","),
        Column("at least", "cycles", ",", "to multiply, load once and wait for memory"),
        Column("cycles/MAC", format="~3"),
        Column("error", "of the cycles"),
        Column("utilization", "% of peak", ".1f"),
        Column("intensity", "MACs/byte", "~3"),
        Column("bound"),
        Column("parameters", "bytes", ","),
        Column("code", "bytes", ","),
        Column("live arena", "bytes", ",", bar=True),
        Column("of it", "%", ".1f"),
        Column("energy", _energy_unit(run), "~3", "its cycles' and its unit's part"),
    ]
    macs = sum(layer.macs for layer in run.layers)
    total: Row = [
        *("total", "", "", "", macs, None),
        run.cycles / macs if run.cycles and macs else None,
        *(certainty(run), None, None, ""),
        sum(layer.parameter_bytes or 0 for layer in run.layers),
        sum(layer.code_bytes or 0 for layer in run.layers),
        *(run.memory.arena_bytes, 100.0),
        None if run.energy_j is None else run.energy_j * 1e6,
    ]
    return Table("Work of the layers", columns, [_work(run, one) for one in run.layers], total)


def _energy_unit(run: Run) -> str:
    """Return the unit with how sure it is: the section on energy has the span."""
    if run.energy_source is None:
        return "µJ"
    return "µJ, unchecked" if run.energy_source.low_j is None else "µJ, see Energy"


def _work(run: Run, layer: LayerRecord) -> Row:
    used, joules = utilization(run, layer), layer_joules(run, layer)
    live, arena = layer.live_bytes, run.memory.arena_bytes
    return [
        label(layer),
        "×".join(map(str, layer.shape or [])),
        layer.dtype or "",
        layer.target,
        layer.macs,
        layer.least.cycles if layer.least else None,
        layer.cycles / layer.macs if layer.cycles is not None and layer.macs else None,
        certainty(run),
        None if used is None else 100 * used,
        intensity(layer),
        bound(run, layer) or "",
        layer.parameter_bytes,
        layer.code_bytes,
        live,
        100 * live / arena if live is not None and arena else None,
        None if joules is None else joules * 1e6,
    ]
