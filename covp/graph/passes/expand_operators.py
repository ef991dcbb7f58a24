"""Users' operators that are composed of known ones are replaced by them."""

from __future__ import annotations

from covp.graph.graph import Graph
from covp.graph.user_operators import composition


def expand_operators(graph: Graph) -> None:
    """Put each composition in its operator's place, under its name and index."""
    position = 0
    while position < len(graph.ops):
        op = graph.ops[position]
        parts = composition(op)
        if parts is None:
            position += 1
            continue
        for number, part in enumerate(parts):
            part.name, part.index = f"{op.name}_{number}", op.index
        graph.ops[position : position + 1] = parts
