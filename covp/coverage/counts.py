"""How often instructions ran, and which way conditions went, out of a trace."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from covp.coverage.instructions import Step
from covp.timing.trace import Trace

Outcomes = tuple[int | None, int | None]
"""How often a branch was taken, or an IT block's first instruction executed, and how often not;
None: not known."""


@dataclass(frozen=True)
class Counts:
    """What ran.

    Attributes:
        executed: how often, by address of the instruction.
        sites: outcomes by address, see `Step.is_site`, of those that were reached.
    """

    executed: Mapping[int, int]
    sites: Mapping[int, Outcomes]


def count(trace: Trace, steps: Mapping[int, Step], conditional: Mapping[int, int]) -> Counts:
    """The counts of the code of a map.

    Args:
        trace: of what is counted alone, see `Trace.since`.
        steps: the code that was in memory then; what ran elsewhere is left out.
        conditional: how often instructions of IT blocks were executed; those that are not in it
            count as executed, their outcomes as not known.
    """
    executed: Counter[int] = Counter()
    sites: dict[int, Outcomes] = {}
    for block in trace.blocks:
        if not block.count or block.address not in steps:
            continue
        last = address = block.address
        for item in block.items:
            executed[address] += block.count
            last, address = address, address + item.bytes
        step = steps.get(last)
        if step is not None and step.kind == "branch":
            taken, untaken = sites.get(last, (0, 0))
            ended = sum(runs.ended for runs in block.runs)
            left = block.count - block.taken - ended
            sites[last] = (taken or 0) + block.taken, (untaken or 0) + left
    for at in [at for at in executed if at not in steps]:
        del executed[at]
    for at, reached in executed.items():
        if steps[at].guards:
            sites[at] = _of_block(reached, conditional.get(at))
        if steps[at].conditional:
            executed[at] = min(reached, conditional.get(at, reached))
    return Counts(executed, sites)


def _of_block(reached: int, executed: int | None) -> Outcomes:
    if executed is None:
        return None, None
    executed = min(executed, reached)
    return executed, reached - executed
