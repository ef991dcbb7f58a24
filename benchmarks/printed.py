"""What benchmarks printed last, in the pages of docs/ that quote it.

    python benchmarks/printed.py int16 streaming    run them and write what they print
    python benchmarks/printed.py --check            compare the pages with what is written

A page quotes a benchmark between two comments, of which the first has its command:

    <!-- printed by: python benchmarks/int16.py -->
    <!-- end -->

What the command prints is kept in benchmarks/results/printed, one file for each benchmark, or for
each subcommand (papers_codai23 for `python benchmarks/papers.py codai23`); the text between the
comments is made of it. Exit status 1 where a benchmark fails, or a page differs.
"""

from __future__ import annotations

import argparse
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PRINTED = ROOT / "benchmarks" / "results" / "printed"
QUOTED = re.compile(
    r"<!-- printed by: (python benchmarks/(\w+)\.py(?: ([a-z][\w-]*))?.*?) -->\n(.*?)<!-- end -->",
    re.S,
)


def name_of(found: re.Match[str]) -> str:
    """Return the benchmark's name, such as int16, with its subcommand: papers_cmsis_nn."""
    return "_".join(filter(None, found.groups()[1:3])).replace("-", "_")


def pages() -> list[Path]:
    """Return the pages, and the templates that others are made of."""
    return [*sorted(ROOT.glob("docs/*.md")), *sorted(ROOT.glob("benchmarks/results/*.md.in"))]


def as_markdown(text: str) -> str:
    """Return a table as it is, anything else as a block of text."""
    lines = [line.rstrip() for line in text.strip("\n").splitlines()]
    body = "\n".join(lines)
    return f"\n{body}\n\n" if lines[0].startswith("|") else f"\n```text\n{body}\n```\n\n"


def quotes() -> Iterator[tuple[Path, str, str, str]]:
    """Yield page, command, name of the benchmark and the text of each quotation."""
    for page in pages():
        for found in QUOTED.finditer(page.read_text(encoding="utf-8")):
            yield page, found[1], name_of(found), found[4]


def differing() -> list[str]:
    """Return a line for each quotation that is not what the benchmark printed last."""
    found = []
    for page, command, name, text in quotes():
        file = PRINTED / f"{name}.txt"
        if not file.exists():
            found.append(
                f"{page.name}: {command} was never run: python {Path(__file__).name} {name}"
            )
        elif as_markdown(file.read_text(encoding="utf-8")) != text:
            found.append(f"{page.name} is not what {command} printed last")
    return found


def run(name: str) -> int:
    """Run a benchmark as the pages say, keep what it prints, and return its exit status."""
    commands = {command for _, command, other, _ in quotes() if other == name}
    if len(commands) != 1:
        sys.exit(f"{name}: {len(commands)} commands in the pages, needed is one")
    words = shlex.split(commands.pop())
    done = subprocess.run([sys.executable, *words[1:]], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    if done.stdout:
        PRINTED.mkdir(exist_ok=True)
        (PRINTED / f"{name}.txt").write_text(done.stdout, encoding="utf-8")
    return done.returncode


def write() -> None:
    """Make each quotation of what was printed last."""

    def renewed(found: re.Match[str]) -> str:
        file = PRINTED / f"{name_of(found)}.txt"
        if not file.exists():
            return found[0]
        text = as_markdown(file.read_text(encoding="utf-8"))
        return f"<!-- printed by: {found[1]} -->\n{text}<!-- end -->"

    for page in pages():
        text = page.read_text(encoding="utf-8")
        page.write_text(QUOTED.sub(renewed, text), encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="BENCHMARK", help="to run, such as int16")
    parser.add_argument("--check", action="store_true", help="only compare")
    given = parser.parse_args()
    if given.check:
        found = differing()
        print("\n".join(found) or "all pages are what was printed")
        return 1 if found else 0
    status = {name: run(name) for name in given.names}
    write()
    for name in filter(status.get, status):
        print(f"{name}: exit status {status[name]}")
    return int(any(status.values()))


if __name__ == "__main__":
    sys.exit(main())
