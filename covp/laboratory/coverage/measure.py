"""Counts of instructions from a trace, and from those of lines, functions and branches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from covp.base.cache import content_key
from covp.device.timing.trace import Trace
from covp.laboratory.coverage.code_map import CodeMap
from covp.laboratory.coverage.conditions import judge
from covp.laboratory.coverage.data import CoverageData
from covp.laboratory.coverage.debug_lines import Instance
from covp.laboratory.coverage.decisions import find_decisions
from covp.laboratory.coverage.files import (
    Branch,
    Condition,
    Decision,
    FileCoverage,
    Part,
    Routine,
    add_known,
)
from covp.laboratory.coverage.instructions import DecodedInstruction

Outcomes = tuple[int | None, int | None]
"""How often a branch was taken, or an IT block's first instruction executed, and how often not;
None: not known."""


@dataclass(frozen=True)
class Counts:
    """The counts of instructions and conditions that ran.

    Attributes:
        executed: how often, by address of the instruction.
        sites: outcomes by address, see `DecodedInstruction.is_site`, of those that were reached.
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


def count(
    trace: Trace, steps: Mapping[int, DecodedInstruction], conditional: Mapping[int, int]
) -> Counts:
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
            gone = block.taken + sum(runs.away for runs in block.runs)
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


_UNKNOWN = ("", 0, 0)


Lines = dict[tuple[str, int], tuple[int, ...]]
"""(file, line) to the counts of its blocks of code, by address."""


def measure(code: CodeMap, counts: Counts) -> CoverageData:
    """Return the coverage of the source files of an ELF file.

    All lines, functions and branches of the file are in it, those that never ran with 0.

    Args:
        code: of the ELF file.
        counts: of its code.
    """
    data = CoverageData()
    lines = _lines(code, counts)
    for number, steps in _by_instance(code).items():
        own, instance = lines.get(number, {}), code.instances[number]
        routine = _routine(code, counts, instance, steps, own)
        if instance.file:
            data.files.setdefault(instance.file, FileCoverage()).add_routine(routine)
        for (file, line), runs in own.items():
            part = Part(line, f"{routine.name}:{routine.variant}")
            data.files.setdefault(file, FileCoverage()).add_part(part, runs)
    return data


def _lines(code: CodeMap, counts: Counts) -> dict[int, Lines]:
    """Return the lines of each copy of a function, by its position in the map."""
    found: dict[int, dict[tuple[str, int], dict[int, int]]] = {}
    places = [(at, file, line) for at, (file, line, _) in code.places.items() if line]
    for at, file, line in sorted((*places, *code.statements)):
        blocks = found.setdefault(code.owners[at], {}).setdefault((file, line), {})
        blocks.setdefault(code.blocks[at], counts.executed.get(at, 0))
    return {
        number: {place: tuple(blocks.values()) for place, blocks in lines.items()}
        for number, lines in found.items()
    }


def _by_instance(code: CodeMap) -> dict[int, list[DecodedInstruction]]:
    """Return the instructions of each copy of a function, by address; it may have none."""
    found: dict[int, list[DecodedInstruction]] = {
        number: [] for number in range(len(code.instances))
    }
    for at, number in sorted(code.owners.items()):
        found[number].append(code.steps[at])
    return found


def _routine(
    code: CodeMap,
    counts: Counts,
    instance: Instance,
    steps: Sequence[DecodedInstruction],
    lines: Lines,
) -> Routine:
    sites = [step for step in steps if step.is_site]
    branches = tuple(_branch(code, counts, step) for step in sites)
    decisions = find_decisions(code, sites)
    pairs = zip(branches, sites, strict=True)
    shape = [f"{b.line}:{b.column}:{b.name}:{_aim(code, site)}" for b, site in pairs]
    shape += [f"{line} {len(runs)}" for (_, line), runs in sorted(lines.items())]
    return Routine(
        instance.name,
        instance.line,
        content_key(*shape, repr(decisions))[:8],
        _entries(code, counts, instance),
        branches,
        tuple(Decision(one, _shown(one, branches)) for one in decisions),
    )


def _shown(conditions: Sequence[Condition], branches: Sequence[Branch]) -> tuple[bool, ...]:
    return tuple(status == "shown" for status in judge(conditions, branches))


def _branch(code: CodeMap, counts: Counts, step: DecodedInstruction) -> Branch:
    _, line, column = code.places.get(step.address, _UNKNOWN)
    return Branch(line, column, step.name, *counts.sites.get(step.address, (0, 0)))


def _aim(code: CodeMap, step: DecodedInstruction) -> int:
    """Return the line that a branch leads to."""
    return code.places.get(-1 if step.target is None else step.target, _UNKNOWN)[1]


def _entries(code: CodeMap, counts: Counts, instance: Instance) -> int:
    """Count how often a copy of a function was entered at its start, without its own loops."""
    runs = counts.executed.get(instance.entry, 0)
    for start, end in instance.ranges:
        for at in range(start, end, 2):
            step = code.steps.get(at)
            if step is None or step.target != instance.entry:
                continue
            if step.kind == "branch":
                runs -= counts.sites.get(at, (0, 0))[0] or 0
            elif step.kind == "jump":
                runs -= counts.executed.get(at, 0)
    return max(0, runs)
