"""Coverage as text for a terminal."""

from __future__ import annotations

import os
from collections.abc import Mapping

from covp.laboratory.coverage.conditions import ConditionCoverage, conditions
from covp.laboratory.coverage.files import Branch, FileCoverage


def report(files: Mapping[str, FileCoverage]) -> str:
    """Format a table of the files, the lines that did not run, and branches that went one way."""
    if not files:
        return "no code with line information ran"
    folders = [os.path.dirname(path) for path in files if os.path.isabs(path)]
    shared = os.path.commonpath(folders) if folders else ""
    names = {p: os.path.relpath(p, shared) if os.path.isabs(p) else p for p in files}
    width = max(map(len, names.values()))
    text = [
        f"{'file':{width}}  {'lines':>13}  {'branches':>13}  {'conditions':>13}  {'functions':>13}"
    ]
    for path, file in sorted(files.items()):
        text.append(f"{names[path]:{width}}  {_figures(file)}")
    for path, file in sorted(files.items()):
        text += (f"{names[path]}:{rest}" for rest in _missing(file))
    return "\n".join(text)


def _figures(file: FileCoverage) -> str:
    lines = [runs > 0 for runs in file.lines.values()]
    known = [one for one in file.branches if one.taken is not None]
    judged = conditions(file)
    functions = [runs > 0 for _, runs in file.functions.values()]
    parts = (
        (sum(lines), len(lines)),
        (sum(one.outcomes for one in known), 2 * len(known)),
        (sum(one.status == "shown" for one in judged), len(judged)),
        (sum(functions), len(functions)),
    )
    return "  ".join(f"{_share(*part):>13}" for part in parts)


def _share(hit: int, found: int) -> str:
    return f"{hit}/{found} {100 * hit // found}%" if found else "-"


def _missing(file: FileCoverage) -> list[str]:
    """List what did not run or went one way only, by line and column."""
    found = [((first, 0), _did_not_run(first, last)) for first, last in _spans(file.lines)]
    for branch in file.branches:
        if branch.ran and branch.taken is not None and branch.outcomes < 2:
            found.append(((branch.line, branch.column), _one_way(branch)))
    for one in conditions(file):
        if one.both and one.status != "shown":
            found.append(((one.line, one.column), _undecided(one)))
    return [
        f"{line}:{column}: {text}" if column else f"{line}: {text}"
        for (line, column), text in sorted(found)
    ]


def _did_not_run(first: int, last: int) -> str:
    return "did not run" if first == last else f"did not run, up to {last}"


def _one_way(branch: Branch) -> str:
    taken, untaken = branch.taken or 0, branch.untaken or 0
    what = "executed" if branch.name == "it" else "taken"
    return f"{branch.name} was {what} {taken} of {taken + untaken} times"


def _undecided(one: ConditionCoverage) -> str:
    seen = "was not seen to decide" if one.status == "missed" else "may have decided"
    return f"condition {one.number} of {one.of} {seen} alone"


def _spans(runs: Mapping[int, int]) -> list[tuple[int, int]]:
    """Group lines that did not run, with no line that ran in between: first and last of each."""
    spans: list[tuple[int, int]] = []
    was_missing = False
    for line, count in sorted(runs.items()):
        if not count:
            spans.append((spans.pop()[0] if was_missing else line, line))
        was_missing = not count
    return spans
