"""`write_csv`: one row per layer with the columns that other tools' reports have made known.

Vela's ``--verbose-performance`` comes first, with its 15 columns in its order; then those of
X-CUBE-AI's and SCALE-Sim's reports, and what none of them has: causes of cycles, intensity, live
memory, energy with its source, the error. What has no meaning here is empty; docs/report.md says
which column is what.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

from covp.base.table_text import csv_cell
from covp.errors import UsageError
from covp.evaluation.documents import Costed, Fetched, LayerRecord, Run
from covp.report.quantities import (
    BETWEEN,
    PARTS,
    bound,
    by_memory,
    certainty,
    error,
    intensity,
    layer_joules,
    parts,
    peak_of,
    rows,
    utilization,
)
from covp.runtime.profile import Offload

Cells = list[tuple[str, object]]
"""Titles and values; two of Vela's titles are the same."""
CAUSES = (
    *("issue", "operand", "branch", "multiply", "access", "custom"),
    *("fetch", "data", "cache", "waited", "exceptions"),
)


def write_csv(path: Path, runs: Sequence[tuple[str, Run]]) -> None:
    """Write the layers of all runs, and a row for what lies between them.

    Args:
        path: of the file, which is replaced.
        runs: each with its name.

    Raises:
        UsageError: the file cannot be written.
    """
    found = [_row(name, run, row, cost, i) for name, run in runs for i, (row, cost) in _all(run)]
    memories = list(dict.fromkeys(title for row in found for title, _ in row[1]))
    head = [title for title, _ in found[0][0]] if found else []
    try:
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(map(csv_cell, [*head, *memories]))
            for cells, moved in found:
                there = dict(moved)
                values = [value for _, value in cells]
                values += [there.get(name) for name in memories]
                writer.writerow(map(_text, map(csv_cell, values)))
    except OSError as problem:
        raise UsageError(f"cannot be written: {problem.strerror}", where=path) from None


def _all(run: Run) -> enumerate[tuple[str, Costed]]:
    return enumerate(rows(run))


def _text(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _row(name: str, run: Run, row: str, cost: Costed, number: int) -> tuple[Cells, Cells]:
    """Return the columns that every run has, and those of its memories."""
    before = [one.cycles or 0 for _, one in rows(run)[: number + 1]]
    so_far = sum(before) if cost.cycles is not None else None
    cells = [
        *_vela(run, cost),
        *_cube(run, cost, number, _percent(so_far, run.cycles)),
        *_scale_sim(run, cost, number),
        *_own(name, run, cost),
    ]
    return cells, _traffic_cells(cost)


def _percent(part: float | None, whole: float | None) -> float | None:
    return 100 * part / whole if part is not None and whole else None


def _layer(cost: Costed) -> LayerRecord | None:
    return cost if isinstance(cost, LayerRecord) else None


def _offload(cost: Costed) -> Offload | None:
    layer = _layer(cost)
    return layer.offload if layer else None


def _vela(run: Run, cost: Costed) -> Cells:
    """nxp-imx/ethos-u-vela, ethosu/vela/npu_performance.py; no DRAM, no flash outside."""
    layer, offload = _layer(cost), _offload(cost)
    all_macs = sum(one.macs for one in run.layers)
    used = utilization(run, layer) if layer else None
    live = layer.live_bytes if layer else None
    access = _access_cycles(run, cost)
    return [
        ("TFLite_operator", layer.op if layer else BETWEEN),
        ("NNG Operator", layer.op if layer else None),
        ("SRAM Usage", live),
        ("Peak%", _percent(live, run.memory.arena_bytes)),
        ("Op Cycles", cost.cycles),
        ("Network%", _percent(cost.cycles, run.cycles)),
        ("NPU", offload.busy if offload else None),
        ("SRAM AC", access.get("ram")),
        ("DRAM AC", None),
        ("OnFlash AC", access.get("flash")),
        ("OffFlash AC", None),
        ("MAC Count", layer.macs if layer else None),
        ("Network%", _percent(layer.macs, all_macs) if layer else None),
        ("Util%", None if used is None else 100 * used),
        ("Name", (layer.tensor or layer.name) if layer else None),
    ]


def _access_cycles(run: Run, cost: Costed) -> dict[str, float]:
    """Return the cycles of a unit's port by kind of memory, shared out by its bytes."""
    layer, offload = _layer(cost), _offload(cost)
    if layer is None or offload is None:
        return {}
    kinds = {region.name: region.kind for region in run.memory_map}
    own = (cost.bytes_by_master or {}).get(layer.target, {})
    total = sum(one.read + one.write for one in own.values())
    found: dict[str, float] = {}
    for memory, one in own.items():
        kind = kinds.get(memory, "")
        share = (one.read + one.write) / total if total else 0.0
        found[kind] = found.get(kind, 0.0) + offload.memory * share
    return found


def _cube(run: Run, cost: Costed, number: int, cumulative: float | None) -> Cells:
    """X-CUBE-AI's analyze and validate: c_id counts what runs, m_id is the model's operator."""
    layer = _layer(cost)
    ms = None
    if cost.cycles is not None and run.cycles and run.seconds is not None:
        ms = 1e3 * run.seconds * cost.cycles / run.cycles
    shape = "x".join(map(str, layer.shape)) if layer and layer.shape else None
    per_mac = cost.cycles / layer.macs if layer and layer.macs and cost.cycles else None
    return [
        ("c_id", number if layer else None),
        ("m_id", layer.index if layer else None),
        ("type", layer.op if layer else None),
        ("oshape", shape),
        ("dtype", layer.dtype if layer else None),
        ("param/size", layer.parameter_bytes if layer else None),
        ("macc", layer.macs if layer else None),
        ("dur (ms)", ms),
        ("%", _percent(cost.cycles, run.cycles)),
        ("cumul", cumulative),
        ("CPU cycles", cost.cycles),
        ("cycles/MACC", per_mac),
        ("name", layer.name if layer else None),
    ]


def _scale_sim(run: Run, cost: Costed, number: int) -> Cells:
    """SCALE-Sim's COMPUTE_REPORT and BANDWIDTH_REPORT, of layers on a unit."""
    layer, offload = _layer(cost), _offload(cost)
    on_unit = layer is not None and layer.target != "cpu"
    used = utilization(run, layer) if layer and on_unit else None
    peak = peak_of(run, layer.target) if layer and on_unit else None
    busy = None
    if layer and offload and offload.compute and peak and peak.macs_per_cycle:
        busy = layer.macs / (offload.compute * peak.macs_per_cycle)
    bandwidth: dict[str, float] = {}
    if cost.cycles and on_unit:
        kinds = {region.name: region.kind for region in run.memory_map}
        for memory, one in (cost.bytes or {}).items():
            kind = kinds.get(memory, "")
            bandwidth[kind] = bandwidth.get(kind, 0) + (one.read + one.write) / cost.cycles
    return [
        ("LayerID", number if on_unit else None),
        ("Total Cycles (incl. prefetch)", cost.cycles if on_unit else None),
        ("Total Cycles", cost.cycles if on_unit else None),
        ("Stall Cycles", parts(cost).get("memory") if on_unit else None),
        ("Overall Util %", None if used is None else 100 * used),
        ("Mapping Efficiency %", None),
        ("Compute Util %", None if busy is None else 100 * busy),
        ("Avg SRAM BW", bandwidth.get("ram")),
        ("Avg DRAM BW", None),
        ("Avg Flash BW", bandwidth.get("flash")),
    ]


def _own(name: str, run: Run, cost: Costed) -> Cells:
    layer = _layer(cost)
    causes = cost.cycles_by_cause
    joules = layer_joules(run, cost)
    split = parts(cost)
    off, source = error(run), run.cycles_source
    return [
        ("run", name),
        ("model", run.model),
        ("platform", run.platform),
        ("unit", layer.target if layer else "cpu"),
        ("schedule", layer.schedule if layer else None),
        ("instructions", cost.instructions),
        *((f"{part} cycles", split.get(part, 0) if split else None) for part in PARTS),
        *(
            (f"{cause} (cause)", None if causes is None else causes.get(cause, 0))
            for cause in CAUSES
        ),
        ("intensity (MACs/byte)", intensity(layer) if layer else None),
        ("bound", bound(run, layer) if layer else None),
        ("code bytes", layer.code_bytes if layer else None),
        ("energy (pJ)", None if joules is None else joules * 1e12),
        ("energy source", run.energy_source.model if run.energy_source else None),
        ("cycles kind", source.kind if source else None),
        ("cycles model", source.model if source else None),
        ("error", certainty(run) or None),
        ("error (+- cycles)", None if off is None or cost.cycles is None else off * cost.cycles),
    ]


def _traffic_cells(cost: Costed) -> Cells:
    found: Cells = []
    for memory, one in by_memory(cost).items():
        found += _bytes(memory, one)
    return found


def _bytes(memory: str, one: Fetched) -> Cells:
    return [
        (f"{memory} read bytes", one.read),
        (f"{memory} written bytes", one.write),
        (f"{memory} fetched bytes", one.fetch),
    ]
