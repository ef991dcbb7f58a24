"""Quantities that follow from a run's figures: parts of cycles, intensity, energy, errors."""

from __future__ import annotations

import re

from covp.evaluation.documents import CoreRecord, Costed, Fetched, LayerRecord, Run, UnitRecord

PARTS = ("core", "set-up", "compute", "memory", "waiting")
"""Of a layer's cycles, in the order of the bars.

core: instructions run on it; set-up: the driver before the jobs; compute: the unit computes;
memory: its port to memory takes longer than that; waiting: start-up, and until the core goes on.
"""
BETWEEN = "between layers"


def parts(cost: Costed) -> dict[str, int]:
    """Return the cycles of a layer by `PARTS`, which add up to them; empty where not known."""
    if cost.cycles is None:
        return {}
    offload = cost.offload if isinstance(cost, LayerRecord) else None
    if offload is None:
        return {"core": cost.cycles}
    setup = min(offload.setup, cost.cycles)
    rest = min(offload.rest, cost.cycles - setup)
    jobs = cost.cycles - setup - rest
    compute = min(offload.compute, jobs)
    memory = min(max(0, offload.memory - offload.compute), jobs - compute)
    waiting = jobs - compute - memory
    return dict(zip(PARTS, (rest, setup, compute, memory, waiting), strict=True))


def rows(run: Run) -> list[tuple[str, Costed]]:
    """Return the layers by their labels, and what lies between them where it took something."""
    found: list[tuple[str, Costed]] = [(label(layer), layer) for layer in run.layers]
    if run.between.instructions or run.between.cycles:
        found.append((BETWEEN, run.between))
    return found


def label(layer: LayerRecord) -> str:
    """Return the operator's number in the model file, and its kind: as Netron shows them."""
    return f"{layer.index} {layer.op}"


def operator_label(kind: str, name: str) -> str:
    """Return an operator's kind, with its name in the model if any: "CONV_2D /layer1/Conv"."""
    own = re.fullmatch(rf"{re.escape(kind.lower())}(_\d+)+", name)
    return kind if own else f"{kind} {name}"


def short(tensor: str | None) -> str:
    """Return a tensor's name without the names that a converter joined to it and their folders."""
    name = (tensor or "").split(";")[-1]
    return "/".join(name.split("/")[-2:])


def cut(tensor: str | None) -> str:
    """Return the end of a tensor's name."""
    name = short(tensor)
    return name if len(name) <= 28 else f"…{name[-27:]}"


def count_bytes(cost: Costed) -> int | None:
    """Return bytes loaded and stored, without fetches of instructions; None where not counted."""
    if cost.bytes is None:
        return None
    return sum(one.read + one.write for one in cost.bytes.values())


def intensity(layer: LayerRecord) -> float | None:
    """Return MACs for each byte that is loaded or stored; None without MACs or bytes."""
    nbytes = count_bytes(layer)
    return layer.macs / nbytes if nbytes and layer.macs else None


def peak_of(run: Run, target: str) -> CoreRecord | UnitRecord | None:
    """Return the roofs of the core ("cpu") or of a unit, where they are known."""
    if target == "cpu":
        return run.core
    return next((unit for unit in run.units if unit.name == target), None)


_MEMORY_STALLS = ("fetch", "data", "cache")
"""Causes of cycles in which the core waits for a memory."""


def bound(run: Run, layer: LayerRecord) -> str | None:
    """Return what limits a layer, "memory" or "compute"; None where it is not known.

    As the cycles say, where their causes were counted: "memory" where half of them and more are
    stalls on memory, or where a unit's transfers take longer than its computing. Else by the side
    of the roofline's ridge, which is what would limit it at its peak.
    """
    if layer.offload is not None:
        return "memory" if layer.offload.memory > layer.offload.compute else "compute"
    if layer.cycles and layer.cycles_by_cause:
        stalled = sum(layer.cycles_by_cause.get(cause, 0) for cause in _MEMORY_STALLS)
        return "memory" if 2 * stalled >= layer.cycles else "compute"
    peak, at = peak_of(run, layer.target), intensity(layer)
    if peak is None or at is None or not peak.macs_per_cycle or not peak.bytes_per_cycle:
        return None
    return "memory" if at * peak.bytes_per_cycle < peak.macs_per_cycle else "compute"


def utilization(run: Run, layer: LayerRecord) -> float | None:
    """Return a layer's share of the MACs possible in its cycles, 0 to 1, or None."""
    peak = peak_of(run, layer.target)
    if peak is None or not peak.macs_per_cycle or not layer.cycles or not layer.macs:
        return None
    return layer.macs / (layer.cycles * peak.macs_per_cycle)


def certainty(run: Run) -> str:
    """Return how sure the cycles are: a percentage, "unchecked", or their kind."""
    source = run.cycles_source
    if source is None:
        return ""
    if source.kind != "estimated":
        return source.kind
    return "unchecked" if source.error is None else f"±\u00a0{100 * source.error:.3g}\u00a0%"


def error(run: Run) -> float | None:
    """Return the cycles' largest known relative error; 0: no estimate, None: unchecked."""
    source = run.cycles_source
    if source is None:
        return None
    return source.error if source.kind == "estimated" else 0.0


def layer_joules(run: Run, cost: Costed) -> float | None:
    """Return the energy of a layer from the parts of the run's; None where that is not known.

    Its cycles cost what a cycle of the run costs on average, awake and asleep; of a unit's MACs
    and bytes it has its own.
    """
    source = run.energy_source
    if source is None or cost.cycles is None or not run.cycles:
        return None
    core = sum(part.joules for part in source.parts if part.what in ("core", "core asleep"))
    joules = core * cost.cycles / run.cycles
    if isinstance(cost, LayerRecord):
        joules += sum(
            part.joules * _share(run, cost, part.unit)
            for part in source.parts
            if part.what == cost.target
        )
    return joules


def _share(run: Run, layer: LayerRecord, unit: str) -> float:
    """Return one layer's part of what a unit did in all of them."""
    own = [one for one in run.layers if one.target == layer.target]
    total = sum(_done(one, unit) for one in own)
    return _done(layer, unit) / total if total else 1 / len(own)


def _done(layer: LayerRecord, unit: str) -> int:
    work = layer.work
    if work is None or work.jobs is None:  # a unit in the core reports all of its layers together
        return layer.macs
    return (work.macs or 0) if unit == "MAC" else (work.bytes_read or 0) + (work.bytes_written or 0)


def by_memory(cost: Costed) -> dict[str, Fetched]:
    """Return bytes by memory, of all bus masters together and with the instructions fetched."""
    found: dict[str, Fetched] = {}
    for memories in (cost.bytes_by_master or {}).values():
        for name, one in memories.items():
            old = found.get(name, Fetched())
            found[name] = Fetched(
                read=old.read + one.read, write=old.write + one.write, fetch=old.fetch + one.fetch
            )
    return found
