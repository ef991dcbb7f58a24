"""How often instructions ran, and which way branches went, out of a trace."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from covp.coverage.instructions import Step
from covp.timing.trace import BlockRuns, Trace

Outcomes = tuple[int | None, int | None]
"""How often a branch was taken, and not; None: not known."""


@dataclass(frozen=True)
class Counts:
    """What ran.

    Attributes:
        executed: how often, by address of the instruction.
        branches: outcomes by address of the branch, of those that ran.
    """

    executed: Mapping[int, int]
    branches: Mapping[int, Outcomes]


def count(trace: Trace, steps: Mapping[int, Step]) -> Counts:
    """The counts of the code of a map.

    Args:
        trace: of what is counted alone, see `Trace.since`.
        steps: the code that was in memory then; what ran elsewhere is left out.
    """
    executed: Counter[int] = Counter()
    taken: Counter[int] = Counter()
    untaken: Counter[int] = Counter()
    unknown: set[int] = set()
    left = _left(trace)
    for position, block in enumerate(trace.blocks):
        if not block.count or block.address not in steps:
            continue
        last = block.address
        address = block.address
        for item in block.items:
            executed[address] += block.count
            last, address = address, address + item.bytes
        step = steps.get(last)
        if step is None or step.kind != "branch":
            continue
        gone = _outcomes(block, step, left[position])
        if gone is None:
            unknown.add(last)
            continue
        taken[last] += gone[0]
        untaken[last] += gone[1]
    known: dict[int, Outcomes] = {at: (taken[at], untaken[at]) for at in taken | untaken}
    for at in unknown:
        known[at] = (None, None)
    return Counts({at: n for at, n in executed.items() if at in steps}, known)


def _left(trace: Trace) -> dict[int, dict[int, int]]:
    """How often each block was left to each address, as far as that was counted."""
    left: dict[int, dict[int, int]] = defaultdict(dict)
    for edge in trace.edges:
        left[edge.source][edge.target] = edge.count
    return left


def _outcomes(block: BlockRuns, step: Step, left: Mapping[int, int]) -> tuple[int, int] | None:
    ended = sum(runs.ended for runs in block.runs)
    if step.target is not None:
        return block.taken, block.count - block.taken - ended
    if sum(left.values()) + ended < block.count:
        return None  # a conditional return, whose targets were not counted
    past = left.get(step.end, 0)
    return sum(left.values()) - past, past
