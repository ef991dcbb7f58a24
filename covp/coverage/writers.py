"""Coverage as files: lcov's tracefile, Cobertura's XML, JSON."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from xml.etree import ElementTree as xml

from covp.coverage.data import Branch, CoverageData, FileCoverage
from covp.errors import UsageError


def write(data: CoverageData, path: Path) -> None:
    """Write a file in the format of its suffix; code given as text goes into a folder beside it."""
    folder = path.with_name(f"{path.name}-sources")
    forms = {".xml": cobertura, ".json": _json}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if data.texts:
            folder.mkdir(exist_ok=True)
            for name, text in data.texts.items():
                (folder / name).write_text(text, encoding="utf-8")
        path.write_text(forms.get(path.suffix, lcov)(data, folder.resolve()), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"coverage cannot be written to {path}: {error.strerror}") from None


def _json(data: CoverageData, texts: Path) -> str:
    return data.to_json()


def _by_line(file: FileCoverage) -> dict[int, list[Branch]]:
    """The branches that belong to a line."""
    found: dict[int, list[Branch]] = defaultdict(list)
    for branch in file.branches:
        if branch.line:
            found[branch.line].append(branch)
    return dict(sorted(found.items()))


# -- lcov ------------------------------------------------------------------------------------------


def lcov(data: CoverageData, texts: Path) -> str:
    """The tracefile that lcov and genhtml read; geninfo(1), section FILES.

    Args:
        data: what ran.
        texts: the folder of code that was given as text.
    """
    records = []
    for path, file in sorted(data.files.items()):
        where = texts / path if path in data.texts else path
        body = [*_functions(file), *_branches(file), *_lines(file)]
        records += ["TN:", f"SF:{where}", *body, "end_of_record"]
    return "".join(f"{record}\n" for record in records)


def _functions(file: FileCoverage) -> list[str]:
    functions = file.functions
    hit = sum(runs > 0 for _, runs in functions.values())
    return [
        *(f"FN:{max(line, 1)},{name}" for name, (line, _) in functions.items()),
        *(f"FNDA:{runs},{name}" for name, (_, runs) in functions.items()),
        f"FNF:{len(functions)}",
        f"FNH:{hit}",
    ]


def _branches(file: FileCoverage) -> list[str]:
    """A branch of the machine code is a block with two branches: taken, and not."""
    records, hit, found = [], 0, 0
    for line, branches in _by_line(file).items():
        for block, branch in enumerate(branches):
            if branch.taken is None or branch.untaken is None:
                continue
            for number, runs in enumerate((branch.taken, branch.untaken)):
                records.append(f"BRDA:{line},{block},{number},{runs if branch.ran else '-'}")
            hit, found = hit + branch.outcomes, found + 2
    return [*records, f"BRF:{found}", f"BRH:{hit}"]


def _lines(file: FileCoverage) -> list[str]:
    lines = sorted(file.lines.items())
    return [
        *(f"DA:{line},{runs}" for line, runs in lines),
        f"LF:{len(lines)}",
        f"LH:{sum(runs > 0 for _, runs in lines)}",
    ]


# -- Cobertura -------------------------------------------------------------------------------------


def cobertura(data: CoverageData, texts: Path) -> str:
    """The XML of Cobertura's coverage-04.dtd.

    Args:
        data: what ran.
        texts: the folder of code that was given as text.
    """
    files = sorted(data.files.items())
    root = xml.Element("coverage", _figures([file for _, file in files], totals=True))
    root.set("complexity", "0")
    root.set("version", "covp")
    root.set("timestamp", "0")
    sources = xml.SubElement(root, "sources")
    xml.SubElement(sources, "source").text = "/"
    packages = xml.SubElement(root, "packages")
    folders = defaultdict(list)
    for path, file in files:
        where = texts / path if path in data.texts else Path(path)
        folders[where.parent].append((where, file))
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
    lines, branches = xml.SubElement(one, "lines"), _by_line(file)
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
    """The rates of files as attributes."""
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
