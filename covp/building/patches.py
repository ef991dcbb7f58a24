"""`plan_patches`: into how many strips which layers are cut, so that the arena is the smallest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from covp.codegen.aliases import aliases
from covp.codegen.arena import ArenaPlan
from covp.codegen.layer import LayerCode
from covp.codegen.program import Program
from covp.errors import UsageError
from covp.graph.graph import Graph
from covp.graph.passes.patches import Patches, find_patches, patch
from covp.graph.rewrites import demand_same_results

AUTO = "auto"
_GENERATED = 8
"""So many of the candidates with the smallest tensors are generated, with their scratch memory."""
_CLOSE = 1.03
"""Arenas that differ by less count as equal; of them the one of the fewest layers is taken."""


@dataclass(frozen=True)
class PatchedProgram:
    """A program in strips.

    Attributes:
        patches: the strips.
        program: what was generated.
    """

    patches: Patches
    program: Program


def count_of(text: str) -> int | None:
    """Return the requested strips; None: as many as need the least memory.

    Raises:
        UsageError: it is neither a number from 2 on nor "auto".
    """
    if text == AUTO:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 6 and int(text) > 1):
        raise UsageError(f"patches: {text!r:.40} is neither {AUTO} nor a number from 2 on")
    return int(text)


def plan_patches(
    plain: Program, graph: Graph, count: int | None, make: Callable[[Patches], Program]
) -> PatchedProgram | None:
    """Return the program of the smallest arena; None where none is smaller than the plain one's.

    Args:
        plain: the program without strips.
        graph: after all passes.
        count: of strips, at most; a depth whose rows do not give as many has fewer. None: any.
        make: generates the program.

    Raises:
        ModelError: strips changed what the model computes.
    """
    each = [p for p in find_patches(graph) if count is None or p.strips <= count]
    if count is not None:  # of each depth those of the most strips
        most = {p.depth: max(o.strips for o in each if o.depth == p.depth) for p in each}
        each = [p for p in each if p.strips == most[p.depth]]
    by_tensors = sorted(each, key=lambda patches: tensor_bytes(patch(graph, patches)))
    made = [PatchedProgram(patches, make(patches)) for patches in by_tensors[:_GENERATED]]
    smaller = [one for one in made if one.program.arena_bytes < plain.arena_bytes]
    if not smaller:
        return None
    least = min(one.program.arena_bytes for one in smaller)
    close = [one for one in smaller if one.program.arena_bytes <= _CLOSE * least]
    found = min(close, key=lambda one: (len(one.program.layers), one.program.arena_bytes))
    demand_same_results(graph, patch(graph, found.patches), f"model {graph.name}: patches")
    return found


def tensor_bytes(graph: Graph) -> int:
    """Return the bytes of an arena for the tensors of a graph, without scratch memory."""
    free, layers = aliases(graph), []
    for op in graph.ops:
        if op not in free:
            given = [t for t in (*op.inputs, *op.outputs) if t is not None and not t.constant]
            arguments = {f"argument{number}": tensor for number, tensor in enumerate(given)}
            layers.append(LayerCode(op, op.name, "", {**arguments}))
    return ArenaPlan(graph, layers).nbytes


def describe_patches(plain: Program, graph: Graph, found: PatchedProgram | None) -> str:
    """Return a line on what was chosen.

    Args:
        plain, graph: as for `plan_patches`.
        found: its result.
    """
    if found is None:
        return f"patches: none, no strips need less than the {plain.arena_bytes:,} B of the arena"
    patches, first = found.patches, graph.ops[0].index
    return (
        f"patches: {patches.strips} strips of layers {first} to "
        f"{graph.ops[patches.depth - 1].index}, arena {found.program.arena_bytes:,} instead of "
        f"{plain.arena_bytes:,} B, nothing is computed twice"
    )
