"""Coverage as lcov's tracefile."""

from __future__ import annotations

from collections.abc import Mapping

from covp.laboratory.coverage.files import FileCoverage


def lcov(files: Mapping[str, FileCoverage]) -> str:
    """Return the tracefile that lcov and genhtml read; geninfo(1), section FILES.

    Args:
        files: what ran, by absolute path.
    """
    records = []
    for path, file in sorted(files.items()):
        body = [*_functions(file), *_branches(file), *_lines(file)]
        records += ["TN:", f"SF:{path}", *body, "end_of_record"]
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


def _lines(file: FileCoverage) -> list[str]:
    lines = sorted(file.lines.items())
    return [
        *(f"DA:{line},{runs}" for line, runs in lines),
        f"LF:{len(lines)}",
        f"LH:{sum(runs > 0 for _, runs in lines)}",
    ]
