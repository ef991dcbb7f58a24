"""If and Loop that are settled when the model is read: a branch taken, a loop unrolled."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import onnx

from covp.errors import ModelError
from covp.frontend.onnx.importer import Importer
from covp.frontend.onnx.node import Node
from covp.graph.attributes import Concatenation
from covp.graph.graph import Tensor

Run = Callable[[onnx.GraphProto, Sequence[Tensor | None]], list[Tensor]]
"""Converts a subgraph's nodes with these inputs; its outputs."""
MOST_TURNS = 1000
"""Of a loop: a core's flash holds no more."""


def convert_if(node: Node, importer: Importer, run: Run) -> list[Tensor]:
    """The branch that a constant condition takes."""
    condition = node.constant(0, "the condition")
    branch = node.get("then_branch" if condition.reshape(-1)[:1].any() else "else_branch")
    if not isinstance(branch, onnx.GraphProto):
        raise ModelError("has not both branches")
    return run(branch, [])


def convert_loop(node: Node, importer: Importer, run: Run) -> list[Tensor]:
    """As many copies of the body as the loop has turns.

    The body's inputs are the turn, the condition and the values carried over; its outputs the
    condition, the values carried over, and what is collected over the turns.
    """
    body = node.get("body")
    if not isinstance(body, onnx.GraphProto):
        raise ModelError("has no body")
    turns = MOST_TURNS + 1
    if node.optional(0) is not None:
        turns = int(node.constant(0, "the number of turns").reshape(-1)[0])
    goes_on = True
    if node.optional(1) is not None:
        goes_on = bool(node.constant(1, "the condition").reshape(-1)[0])
    carried = [node.input(position) for position in range(2, len(node.inputs))]
    collected: list[list[Tensor]] = []
    turn = 0
    while goes_on and turn < turns:
        if turn == MOST_TURNS:
            raise ModelError(f"has more than {MOST_TURNS} turns; loops are unrolled")
        counter = importer.constant(np.array(turn, np.int64))
        found = run(body, [counter, importer.constant(np.array(True)), *carried])
        if found[0].data is None:
            raise ModelError("its condition is computed at run time; only constant ones are known")
        goes_on = bool(found[0].data.reshape(-1)[0])
        carried = found[1 : 1 + len(carried)]
        collected.append(found[1 + len(carried) :])
        turn += 1
    if not collected and len(node.outputs) > len(carried):
        raise ModelError("collects values over no turn")
    return [*carried, *(_stacked(importer, parts) for parts in zip(*collected, strict=True))]


def _stacked(importer: Importer, parts: Sequence[Tensor]) -> Tensor:
    rows = [importer.reshape(part, (1, *part.shape)) for part in parts]
    if len(rows) == 1:
        return rows[0]
    return importer.add("CONCATENATION", *rows, attributes=Concatenation(axis=0))
