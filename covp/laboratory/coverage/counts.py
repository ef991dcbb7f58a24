"""Counts of executed instructions and of the ways of conditions, from a trace."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from covp.device.timing.trace import Trace
from covp.laboratory.coverage.files import add_known
from covp.laboratory.coverage.instructions import Step

Outcomes = tuple[int | None, int | None]
"""How often a branch was taken, or an IT block's first instruction executed, and how often not;
None: not known."""


@dataclass(frozen=True)
class Counts:
    """The counts of instructions and conditions that ran.

    Attributes:
        executed: how often, by address of the instruction.
        sites: outcomes by address, see `Step.is_site`, of those that were reached.
    """

    executed: Mapping[int, int]
    sites: Mapping[int, Outcomes]

    def __add__(self, other: Counts) -> Counts:
        sites = dict(self.sites)
        for at, (taken, untaken) in other.sites.items():
            known = sites.get(at, (0, 0))
            sites[at] = add_known(known[0], taken), add_known(known[1], untaken)
        return Counts(Counter(self.executed) + Counter(other.executed), sites)


NO_COUNTS = Counts({}, {})


def count(trace: Trace, steps: Mapping[int, Step], conditional: Mapping[int, int]) -> Counts:
    """Count how often the code of a map ran.

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
            known = sites.get(last, (0, 0))
            gone = sum(runs.taken + runs.away for runs in block.runs)
            sites[last] = add_known(known[0], gone), add_known(known[1], block.count - gone)
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
