"""More tests than CI's, folder by folder; docs/all-tests.md says when which ran, with what result.

    python benchmarks/all_tests.py                    # every case of every test: hours on two cores
    python benchmarks/all_tests.py graph codegen      # of these folders of tests/
    python benchmarks/all_tests.py --sample 7         # the default tests with sample 7: minutes
    python benchmarks/all_tests.py --jobs 1 ...       # processes of pytest

CI runs a sample of the tests, always the same. At the beginning of work run another one on the
state that you start from, and mend what falls before anything else. Results of the folders are
kept in benchmarks/results/all_tests.json, so they can be run one after the other.
"""

from __future__ import annotations

import argparse
import datetime
import json
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "all_tests.json"
PAGE = ROOT / "docs" / "all-tests.md"
TOP = "(top)"
"""The files in tests/ itself."""
HEAD = """# All tests

Of tests with many cases CI runs a sample, always the same, with one in forty costly and slow tests.
This page says which other sample of the default tests ran last, and when every case of every test
did, slow ones too: `python benchmarks/all_tests.py --sample N`, or without `--sample`, folder by
folder, writes it. What is skipped lacks a tool or a file, and says which.

| tests | sample | passed | failed | skipped | commit | day | all | failed | skipped | commit | on |
|---|---:|---:|---:|---:|---|---|---:|---:|---:|---|---|
"""
_COLUMNS = ("passed", "failed", "skipped", "commit", "day")


def main() -> int:
    """Run the requested folders; 1 where something failed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folders", nargs="*", help="of tests/; default: all")
    parser.add_argument("--sample", type=int, help="of the default tests; default: all cases")
    parser.add_argument("--jobs", default="auto", help="processes of pytest (default: a core each)")
    given = parser.parse_args()
    known: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    there = [path.name for path in sorted((ROOT / "tests").iterdir()) if any(path.rglob("test_*"))]
    folders = given.folders or [*there, TOP]
    if given.sample is None:  # each may take an hour: what is done is kept
        groups, options = (
            [[folder] for folder in folders],
            ["--all-cases", "-m", "slow or not slow"],
        )
    else:
        groups, options = [folders], ["--sample", str(given.sample)]
    failed = False
    for group in groups:
        for folder, result in run(group, ["-n", given.jobs, *options]).items():
            if given.sample is not None:
                result["sample"] = given.sample
            known.setdefault(folder, {})["all" if given.sample is None else "sample"] = result
            failed |= bool(result["failed"])
            print(f"{folder}: {result}", flush=True)
        kept = {name: known[name] for name in sorted(known) if name in (*there, TOP)}
        RESULTS.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
        PAGE.write_text(page(kept), encoding="utf-8")
    return int(failed)


def run(folders: list[str], options: list[str]) -> dict[str, dict[str, Any]]:
    """Run the tests of folders: for each how many cases passed and so on, and which failed."""
    place = ROOT / "tests"
    paths = [
        path
        for folder in folders
        for path in (sorted(place.glob("test_*.py")) if folder == TOP else [place / folder])
    ]
    with tempfile.TemporaryDirectory() as work:
        file = Path(work) / "cases.xml"
        command = [sys.executable, "-m", "pytest", "-q", *options, f"--junitxml={file}"]
        subprocess.run([*command, *map(str, paths)], cwd=ROOT, check=False)
        cases = list(ElementTree.parse(file).iter("testcase"))
    of: dict[str, list[ElementTree.Element]] = defaultdict(list)
    for case in cases:
        parts = str(case.get("classname")).split(".")  # tests.FOLDER.test_it, or tests.test_it
        of[parts[1] if parts[1] in folders else TOP].append(case)
    now = {
        "commit": _output("git", "rev-parse", "--short", "HEAD"),
        "day": datetime.date.today().isoformat(),
    }
    return {folder: {**_count(of[folder]), **now} for folder in folders}


def _count(cases: list[ElementTree.Element]) -> dict[str, Any]:
    """Return how many cases passed and were skipped, and the names of those that failed."""
    bad = [c for c in cases if c.find("failure") is not None or c.find("error") is not None]
    skipped = [case for case in cases if case.find("skipped") is not None]
    return {
        "passed": len(cases) - len(bad) - len(skipped),
        "failed": sorted(f"{case.get('classname')}::{case.get('name')}" for case in bad),
        "skipped": len(skipped),
    }


def page(results: dict[str, Any]) -> str:
    """Return the documentation's page."""
    rows = []
    for name, one in results.items():
        sample = one.get("sample", {})
        cells = [str(sample.get("sample", "")), *_cells(sample), *_cells(one.get("all", {}))]
        rows.append(f"| `{name}` | {' | '.join(cells)} |")
    failed = sorted(
        {name for one in results.values() for kind in one.values() for name in kind["failed"]}
    )
    listed = "".join(f"- `{name}`\n" for name in failed)
    return HEAD + "\n".join(rows) + "\n" + (f"\nFailed:\n\n{listed}" if listed else "")


def _cells(result: dict[str, Any]) -> list[str]:
    """Return the cells of `_COLUMNS`, empty where nothing ran."""
    values = [result.get(name, "") for name in _COLUMNS]
    return [
        str(len(value))
        if isinstance(value, list)
        else f"{value:,}"
        if value and isinstance(value, int)
        else str(value)
        for value in values
    ]


def _output(*command: str) -> str:
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
