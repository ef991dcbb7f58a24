"""`labels`: a name for each of several runs, and the runs of the files of a report."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

from covp.errors import UsageError
from covp.evaluation import run_files
from covp.evaluation.documents import Run


def read_runs(path: Path) -> list[Run]:
    """Return the runs of a file: ``covp run --json``, ``covp compare --json``, or a list of these.

    Args:
        path: of the file.

    Raises:
        UsageError: the file cannot be read, is no such document, or no model ran in it.
    """
    found = run_files.read_runs(path)
    if not found:
        raise UsageError("no model ran there", where=path)
    return found


def _differences(runs: Sequence[Run]) -> list[str]:
    """Return what differs between the runs' titles; the titles where nothing does."""
    facts = [
        (run.model, run.platform, " + ".join(run.accelerators) or "core alone", run.device)
        for run in runs
    ]
    differ = [len({*column}) > 1 for column in zip(*facts, strict=True)]
    if not any(differ):
        return [run.title for run in runs]
    return [", ".join(itertools.compress(each, differ)) for each in facts]


def labels(runs: Sequence[Run], files: Sequence[Path], given: Sequence[str]) -> list[str]:
    """Return a name for each run: given, or what differs between them.

    Args:
        runs: all of them.
        files: where each comes from.
        given: by the user, in the same order; empty: none.

    Raises:
        UsageError: there are names, but not one for each run.
    """
    if given:
        if len(given) != len(runs):
            raise UsageError(f"--label: {len(given)} names for {len(runs)} runs")
        names = list(given)
    else:
        names = _differences(runs)
        if len({*names}) < len(names):
            names = [f"{file.stem}: {name}" for file, name in zip(files, names, strict=True)]
    return [
        name if names.count(name) == 1 else f"{name} ({names[:i].count(name) + 1})"
        for i, name in enumerate(names)
    ]
