"""If and Loop: a branch taken or chosen, a loop unrolled."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import onnx

from covp.errors import ModelError
from covp.graph.attributes import Concatenation
from covp.graph.graph import Tensor
from covp.graph.onnx.importer import Importer
from covp.graph.onnx.node import Node

Run = Callable[[onnx.GraphProto, Sequence[Tensor | None]], list[Tensor]]
"""Converts a subgraph's nodes with these inputs; its outputs."""
MOST_TURNS = 1000
"""Of a loop: a core's flash holds no more."""


def convert_if(node: Node, importer: Importer, run: Run) -> list[Tensor]:
    """The branch that a constant condition takes; else both, and of their results the right ones.

    Branches have no effect but their results, so that computing both costs time alone.
    """
    branches = [node.get("then_branch"), node.get("else_branch")]
    if not all(isinstance(branch, onnx.GraphProto) for branch in branches):
        raise ModelError("has not both branches")
    condition = node.input(0)
    if condition.dtype != np.bool_ or condition.size != 1:
        raise ModelError(f"the condition {condition.name} is not one bool")
    if condition.data is not None:
        return run(branches[0 if condition.data.reshape(-1)[0] else 1], [])
    results = []
    for x, y in zip(run(branches[0], []), run(branches[1], []), strict=True):
        if x.shape != y.shape or x.dtype != y.dtype:
            raise ModelError(
                f"the condition must be constant, as its branches give {x.dtype} {x.shape} and "
                f"{y.dtype} {y.shape}"
            )
        which = importer.reshape(condition, ())
        results.append(importer.add("SELECT_V2", which, x, y, dtype=x.dtype))
    return results


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
