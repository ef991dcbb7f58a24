"""Code with a count before each instruction, for functions without source too."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath

from covp.laboratory.coverage.code_map import CodeMap
from covp.laboratory.coverage.counts import Counts, Outcomes
from covp.laboratory.coverage.debug_lines import Instance
from covp.laboratory.coverage.instructions import Step


def listing(code: CodeMap, counts: Counts, function: Instance) -> str:
    """List the instructions of a function with how often each ran, and which way branches went.

    Args:
        code: of the ELF file.
        counts: of its code.
        function: of the ELF file.
    """
    steps = [
        code.steps[at] for start, end in function.ranges for at in range(start, end, 2)
        if at in code.steps
    ]  # fmt: skip
    ran = sum(counts.executed.get(step.address, 0) > 0 for step in steps)
    head = f"{function.name}: {ran} of {len(steps)} instructions ran"
    return "\n".join([head, *_lines(code, counts, steps)])


def _lines(code: CodeMap, counts: Counts, steps: list[Step]) -> Iterator[str]:
    was = ""
    for step in steps:
        file, line, _ = code.places.get(step.address, ("", 0, 0))
        source = f"{PurePath(file).name}:{line}" if line else ""
        runs = counts.executed.get(step.address, 0)
        bits = f"{step.bits:0{2 * step.size}x}"
        note = _note(step, counts.sites.get(step.address, (0, 0)))
        text = f"{runs:>10}  0x{step.address:08x}  {bits:8}  {note:44}"
        yield f"{text}  {source if source != was else ''}".rstrip()
        was = source or was


def _note(step: Step, outcomes: Outcomes) -> str:
    where = "" if step.target is None else f" 0x{step.target:08x}"
    if step.kind != "branch" and not step.guards:
        return f"{step.kind}{where}" if step.kind in ("jump", "call") else ""
    taken, untaken = outcomes
    if taken is None or untaken is None:
        return step.name
    words = ("executed", "skipped") if step.guards else ("taken", "not taken")
    return f"{step.name}{where}: {taken} {words[0]}, {untaken} {words[1]}"
