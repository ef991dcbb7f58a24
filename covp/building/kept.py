"""`kept_costs`: the cycles of parts if a unit reused weights or tensors kept on chip."""

from __future__ import annotations

from typing import Literal

from covp.building.list_schedule import PartCost
from covp.building.part_costs import MeasuredParts, jobs_by_part
from covp.codegen.program import ProgramLayer
from covp.hardware.job_unit import JobRecord


def kept_costs(measured: MeasuredParts, what: Literal["weights", "all"]) -> list[list[PartCost]]:
    """Return the costs with less traffic: a job's memory time shrinks with its bytes.

    Args:
        measured: the parts and their jobs.
        what: "weights": constants are not fetched again; "all": nor are tensors that the same unit
            wrote, and nothing is stored that only it reads.
    """
    graph, layers = measured.program.lowered, measured.program.layers
    ops = {op.name: op for op in graph.ops} if graph is not None else {}
    constants = {
        name: sum(t.nbytes for t in op.inputs if t is not None and t.constant)
        for name, op in ops.items()
    }
    found = []
    for number, layer in enumerate(layers):
        costs, jobs = measured.costs[number], measured.jobs[number]
        if not jobs or not layer.parts[0].is_asynchronous:
            found.append(costs)
            continue
        own, done = [], 0
        counts = jobs_by_part(layer, len(jobs))
        for part, (cost, count) in enumerate(zip(costs, counts, strict=True)):
            done += count
            bytes_kept = sum(constants.get(name, 0) for name in layer.operators)
            if what == "all":
                bytes_kept += _tensor_bytes(layers, layer, part, jobs[done - 1]) // count
            own.append(_with_less(cost, jobs[done - 1], bytes_kept))
        found.append(own)
    return found


def _tensor_bytes(
    layers: tuple[ProgramLayer, ...], layer: ProgramLayer, part: int, job: JobRecord
) -> int:
    """Return the bytes of a part's tensors that its unit could keep between layers."""
    piece = layer.parts[part]
    written = {p.tensor for other in layers if other.target == layer.target
               for each in other.parts for p in each.writes}  # fmt: skip
    kept = sum(read.end - read.start for read in piece.reads if read.tensor in written)
    names = {write.tensor for write in piece.writes}
    readers = [o for o in layers if any(r.tensor in names for e in o.parts for r in e.reads)]
    if readers and all(reader.target == layer.target for reader in readers):
        kept += job.stored
    return kept


def _with_less(cost: PartCost, job: JobRecord, nbytes: int) -> PartCost:
    moved = max(job.traffic.nbytes, 1)
    memory = job.timing.memory * max(0, moved - nbytes) / moved
    busy = job.timing.startup + max(job.timing.compute, memory)
    return PartCost(cost.before, busy, cost.inside, cost.after)
