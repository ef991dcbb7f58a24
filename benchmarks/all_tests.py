"""Every case of every test, folder by folder; docs/all-tests.md says when, and with what result.

    python benchmarks/all_tests.py                   # hours on two cores
    python benchmarks/all_tests.py graph codegen     # these folders of tests/
    python benchmarks/all_tests.py --jobs 1 ...      # processes of pytest

CI runs a sample of the tests, always the same. Results of the folders are kept in
benchmarks/results/all_tests.json, so they can be run one after the other.
"""

from __future__ import annotations

import argparse
import datetime
import json
import platform
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "all_tests.json"
PAGE = ROOT / "docs" / "all-tests.md"
TOP = "(top)"
"""The files in tests/ itself."""
HEAD = """# All tests

Of tests with many cases CI runs a sample, always the same, and a tenth of the slow tests.
This page says when every case of every test last ran, and with what result:
`python benchmarks/all_tests.py`, which is `pytest -m "slow or not slow" --all-cases` folder by
folder, writes it. What is skipped lacks a tool or a file, and says which.

| tests | passed | failed | skipped | commit | day |
|---|---:|---:|---:|---|---|
"""


def main() -> int:
    """Run the requested folders; 1 where something failed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folders", nargs="*", help="of tests/; default: all")
    parser.add_argument("--jobs", default="auto", help="processes of pytest (default: a core each)")
    given = parser.parse_args()
    known: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    there = [path.name for path in sorted((ROOT / "tests").iterdir()) if any(path.glob("test_*"))]
    folders = given.folders or [*there, TOP]
    for folder in folders:
        known[folder] = tested(folder, given.jobs)
        kept = {name: known[name] for name in sorted(known) if name in (*there, TOP)}
        RESULTS.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
        PAGE.write_text(page(kept), encoding="utf-8")
        print(f"{folder}: {known[folder]}", flush=True)
    return int(any(known[folder]["failed"] for folder in folders))


def tested(folder: str, jobs: str) -> dict[str, Any]:
    """Run the tests of a folder: how many cases passed and so on, and which failed."""
    place = ROOT / "tests"
    paths = sorted(place.glob("test_*.py")) if folder == TOP else [place / folder]
    with tempfile.TemporaryDirectory() as work:
        file = Path(work) / "cases.xml"
        command = [sys.executable, "-m", "pytest", "-q", "-n", jobs, "--all-cases"]
        command += ["-m", "slow or not slow", f"--junitxml={file}", *map(str, paths)]
        subprocess.run(command, cwd=ROOT, check=False)
        cases = list(ElementTree.parse(file).iter("testcase"))
    bad = [case for case in cases if case.find("failure") is not None or _error(case)]
    skipped = [case for case in cases if case.find("skipped") is not None]
    return {
        "passed": len(cases) - len(bad) - len(skipped),
        "failed": sorted(f"{case.get('classname')}::{case.get('name')}" for case in bad),
        "skipped": len(skipped),
        "commit": _output("git", "rev-parse", "--short", "HEAD"),
        "day": datetime.date.today().isoformat(),
        "python": platform.python_version(),
    }


def _error(case: ElementTree.Element) -> bool:
    return case.find("error") is not None


def page(results: dict[str, Any]) -> str:
    """The documentation's page."""
    rows = [
        f"| `{name}` | {one['passed']:,} | {len(one['failed'])} | {one['skipped']:,} "
        f"| {one['commit']} | {one['day']} |"
        for name, one in results.items()
    ]
    passed, skipped = (sum(one[key] for one in results.values()) for key in ("passed", "skipped"))
    failed = [name for one in results.values() for name in one["failed"]]
    rows.append(f"| **all** | {passed:,} | {len(failed)} | {skipped:,} | | |")
    listed = "".join(f"- `{name}`\n" for name in failed)
    return HEAD + "\n".join(rows) + "\n" + (f"\nFailed:\n\n{listed}" if listed else "")


def _output(*command: str) -> str:
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
