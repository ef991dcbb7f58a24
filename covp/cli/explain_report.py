"""``--explain``: where each layer runs, what else it could run on, and why it does not."""

from __future__ import annotations

from collections.abc import Iterator

from covp.accelerator.placement import Alternative, join_names
from covp.cli.output import echo
from covp.codegen.program import ProgramLayer
from covp.evaluation import Evaluation, RejectedLayer, rejected_layers
from covp.runtime.profile import LayerProfile


def print_explanation(result: Evaluation) -> None:
    """Print each layer's place, the alternatives with their cycles, and the rejections."""
    rejected: dict[str, list[RejectedLayer]] = {}
    for entry in rejected_layers(result):
        rejected.setdefault(entry.refusal.layer, []).append(entry)
    spent = {entry.layer.name: entry for entry in result.profile.layers}
    echo("\nwhere each layer runs, and why not elsewhere")
    for layer in result.program.layers:
        place = f"{layer.name}: {layer.target}"
        if len(layer.operators) > 1:
            place = f"{join_names(layer.operators)}: {layer.target}"
        echo(f"  {place}{_cycles(layer, spent.get(layer.name))}")
        for line in _alternatives(result, layer.operators):
            echo(f"      or {line}")
        for entry in rejected.get(layer.name, []):
            echo(f"      not {_rejection(entry, result.profile.cycles)}")


def _cycles(layer: ProgramLayer, entry: LayerProfile | None) -> str:
    counted = "simulated before" if layer.target == "cpu" else "estimated"
    cost = layer.estimated_cycles
    known = [] if cost is None else [f"{counted} {cost:,} cycles"]
    if entry is not None and entry.cycles is not None:
        known.append(f"took {entry.cycles:,}")
    return f" ({', '.join(known)})" if known else ""


def _alternatives(result: Evaluation, operators: tuple[str, ...]) -> Iterator[str]:
    """Yield the other ways to compute a layer's operators, and others besides."""
    own = set(operators)
    for other in result.program.alternatives:
        if not other.chosen and not own.isdisjoint(other.operators):
            yield f"{_place(other, operators)}: {_about(other)}"


def _place(other: Alternative, operators: tuple[str, ...]) -> str:
    place = "the core" if other.target == "cpu" else other.target
    if other.operators == operators:
        return place
    pattern = f", pattern {other.pattern}" if other.pattern else ""
    return f"{place} for {join_names(other.operators)}{pattern}"


def _about(other: Alternative) -> str:
    if other.cycles is None:
        return "cycles unknown"
    return f"{'' if other.target == 'cpu' else 'about '}{other.cycles:,} cycles"


def _rejection(entry: RejectedLayer, total: int | None) -> str:
    text = f"{entry.refusal.accelerator}: {entry.refusal.reason}"
    if not entry.potential_saving or not total:
        return text
    return f"{text} (accepting it would save about {entry.potential_saving:,} of {total:,} cycles)"
