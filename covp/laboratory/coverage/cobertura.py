"""Coverage as Cobertura's XML."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree as xml

from covp.laboratory.coverage.files import Branch, FileCoverage


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
