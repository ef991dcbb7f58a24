"""Coverage as text for a terminal, as lcov's tracefile and as Cobertura's XML."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree as xml

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
        text.append(f"{names[path]:{width}}  {_sums(file)}")
    for path, file in sorted(files.items()):
        text += (f"{names[path]}:{rest}" for rest in _list_gaps(file))
    return "\n".join(text)


def _sums(file: FileCoverage) -> str:
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


def _list_gaps(file: FileCoverage) -> list[str]:
    """List what did not run or went one way only, by line and column."""
    found = [((first, 0), _did_not_run(first, last)) for first, last in _spans(file.lines)]
    for branch in file.branches:
        if branch.ran and branch.taken is not None and branch.outcomes < 2:
            found.append(((branch.line, branch.column), _one_way(branch)))
    for one in conditions(file):
        if one.both and one.status != "shown":
            found.append(((one.line, one.column), _describe_gap(one)))
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


def _describe_gap(one: ConditionCoverage) -> str:
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


def lcov(files: Mapping[str, FileCoverage]) -> str:
    """Return the tracefile that lcov and genhtml read; geninfo(1), section FILES.

    Args:
        files: what ran, by absolute path.
    """
    records = []
    for path, file in sorted(files.items()):
        body = [*_routines(file), *_branches(file), *_counts(file)]
        records += ["TN:", f"SF:{path}", *body, "end_of_record"]
    return "".join(f"{record}\n" for record in records)


def _routines(file: FileCoverage) -> list[str]:
    functions = file.functions
    hit = sum(runs > 0 for _, runs in functions.values())
    return [
        *(f"FN:{max(line, 1)},{name}" for name, (line, _) in functions.items()),
        *(f"FNDA:{runs},{name}" for name, (_, runs) in functions.items()),
        f"FNF:{len(functions)}",
        f"FNH:{hit}",
    ]


def _branches(file: FileCoverage) -> list[str]:
    """Write each branch of the machine code as a block with two branches: taken, and not."""
    records, hit, found = [], 0, 0
    for line, branches in file.branches_by_line.items():
        for block, branch in enumerate(branches):
            if branch.taken is None or branch.untaken is None:
                continue
            for number, runs in enumerate((branch.taken, branch.untaken)):
                records.append(f"BRDA:{line},{block},{number},{runs if branch.ran else '-'}")
            hit, found = hit + branch.outcomes, found + 2
    return [*records, f"BRF:{found}", f"BRH:{hit}"]


def _counts(file: FileCoverage) -> list[str]:
    lines = sorted(file.lines.items())
    return [
        *(f"DA:{line},{runs}" for line, runs in lines),
        f"LF:{len(lines)}",
        f"LH:{sum(runs > 0 for _, runs in lines)}",
    ]


def cobertura(files: Mapping[str, FileCoverage]) -> str:
    """Return the XML of Cobertura's coverage-04.dtd.

    Args:
        files: what ran, by absolute path.
    """
    root = xml.Element("coverage", _figures(list(files.values()), totals=True))
    root.set("complexity", "0")
    root.set("version", "covp")
    root.set("timestamp", "0")
    sources = xml.SubElement(root, "sources")
    xml.SubElement(sources, "source").text = "/"
    packages = xml.SubElement(root, "packages")
    folders = defaultdict(list)
    for path, file in sorted(files.items()):
        folders[Path(path).parent].append((Path(path), file))
    for folder, inside in sorted(folders.items()):
        figures = _figures([file for _, file in inside])
        attributes = {"name": str(folder), **figures, "complexity": "0"}
        package = xml.SubElement(packages, "package", attributes)
        classes = xml.SubElement(package, "classes")
        for where, file in inside:
            _class(classes, where, file)
    xml.indent(root)
    head = '<?xml version="1.0" ?>\n<!DOCTYPE coverage SYSTEM'
    dtd = '"http://cobertura.sourceforge.net/xml/coverage-04.dtd">'
    return f"{head} {dtd}\n{xml.tostring(root, encoding='unicode')}\n"


def _class(classes: xml.Element, where: Path, file: FileCoverage) -> None:
    names = {"name": where.name, "filename": str(where).lstrip("/")}
    one = xml.SubElement(classes, "class", {**names, **_figures([file]), "complexity": "0"})
    methods = xml.SubElement(one, "methods")
    for name, (line, runs) in file.functions.items():
        rate = str(int(runs > 0))
        rates = {"line-rate": rate, "branch-rate": rate, "complexity": "0"}
        method = xml.SubElement(methods, "method", {"name": name, "signature": "", **rates})
        lines = xml.SubElement(method, "lines")
        xml.SubElement(lines, "line", number=str(line), hits=str(runs), branch="false")
    lines, branches = xml.SubElement(one, "lines"), file.branches_by_line
    for line, runs in sorted(file.lines.items()):
        _line(lines, line, runs, branches.get(line, []))


def _line(lines: xml.Element, number: int, runs: int, branches: list[Branch]) -> None:
    known = [one for one in branches if one.taken is not None]
    kind = "true" if known else "false"
    line = xml.SubElement(lines, "line", number=str(number), hits=str(runs), branch=kind)
    if not known:
        return
    hit, found = sum(one.outcomes for one in known), 2 * len(known)
    line.set("condition-coverage", f"{100 * hit // found}% ({hit}/{found})")
    conditions = xml.SubElement(line, "conditions")
    for position, one in enumerate(known):
        share = f"{50 * one.outcomes}%"
        xml.SubElement(conditions, "condition", number=str(position), type="jump", coverage=share)


def _figures(files: list[FileCoverage], totals: bool = False) -> dict[str, str]:
    """Return the rates of files as attributes."""
    lines = [runs > 0 for file in files for runs in file.lines.values()]
    known = [one for file in files for one in file.branches if one.line and one.taken is not None]
    hit, found = sum(one.outcomes for one in known), 2 * len(known)
    rates = {"line-rate": _rate(sum(lines), len(lines)), "branch-rate": _rate(hit, found)}
    if not totals:
        return rates
    return {
        **rates,
        "lines-covered": str(sum(lines)),
        "lines-valid": str(len(lines)),
        "branches-covered": str(hit),
        "branches-valid": str(found),
    }


def _rate(hit: int, found: int) -> str:
    return f"{hit / found:.4f}" if found else "1"
