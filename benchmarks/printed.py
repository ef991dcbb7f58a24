"""What benchmarks and commands printed last, in the pages of docs/ that quote it.

    python benchmarks/printed.py int16 streaming    run them and write what they print
    python benchmarks/printed.py sweep.md           run the commands that this page quotes
    python benchmarks/printed.py --check            compare the pages with what is written

A page quotes a benchmark, or a command, between two comments, of which the first has its command:

    <!-- printed by: python benchmarks/int16.py -->
    <!-- end -->

What the command prints is kept in benchmarks/results/printed, one file for each, or for each
subcommand; the text between the comments is made of it. Commands other than benchmarks are lines
for a shell, executed in the order of the page in a folder with the files of FILES; `covp` in them
is this checkout's. Exit status 1 where one fails, or a page differs.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PRINTED = ROOT / "benchmarks" / "results" / "printed"
QUOTED = re.compile(r"<!-- printed by: ([^\n]*?) -->\n(.*?)<!-- end -->", re.S)
FILES = {
    "data.md": {"samples.py": "python"},
    "onnx-quantized.md": {"net_int8.py": "python"},
    "onnx.md": {"net.py": "python"},
    "own-core.md": {
        "board.yaml": "yaml",
        "fast-ibex/core.yaml": "yaml",
        "fast-ibex/rtl.yaml": "yaml",
    },
    "retiming.md": {"designs.py": "python"},
    "sweep.md": {"sweep.yaml": "yaml"},
    "tutorial-accelerator.md": {"depthwise.py": "python"},
}
"""Pages whose commands use files: each is the page's block of that language that begins with a
comment of the file's name, or else the first one."""
TIMES = re.compile(
    r"[\d,]+ a minute|[\d.]+ m?s\b with|\bin [\d.]+ m?s\b|(?<=\s)\d\.\d\d s(?=\s)|[\d.]+ MB\b"
)
"""Times of the machine, and rounded sizes of files."""
TOOLS = re.compile(r".*(?:LiteRT|onnxruntime|tuned schedules|schedules tuned).*\n?|, zig [\d.]+")
"""What depends on the tools that are installed."""
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")


def name_of(command: str) -> str:
    """Return the name of a benchmark (int16) and its subcommand (papers_cmsis_nn), if any.

    Of a line for a shell it is made of the last command.
    """
    if found := re.match(r"python benchmarks/(\w+)\.py(?: ([a-z][\w-]*))?", command):
        return "_".join(filter(None, found.groups())).replace("-", "_")
    return re.sub(r"[^a-z0-9]+", "-", command.split("&& ")[-1].lower())[:80].strip("-")


def same(one: str, other: str) -> bool:
    """Whether two runs agree: words to the letter, figures within 2 % (versions of compilers)."""
    texts = [TOOLS.sub("", TIMES.sub("", text)) for text in (one, other)]
    words = [NUMBER.sub("0", re.sub("─+", "", text)).split() for text in texts]
    if words[0] != words[1]:
        return False
    numbers = [[float(n.replace(",", "")) for n in NUMBER.findall(text)] for text in texts]
    return all(abs(a - b) <= 0.02 * max(a, b) + 0.01 for a, b in zip(*numbers, strict=True))


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
            yield page, found[1], name_of(found[1]), found[2]


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


def printed_by_page(page: Path) -> Iterator[tuple[str, str]]:
    """Run the commands that a page quotes; yield the name and the output of each."""
    from covp.graph import zoo

    text = page.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "examples").symlink_to(ROOT / "examples")
        kws = zoo.find("kws").path
        if kws is not None:
            (folder / "net.tflite").symlink_to(kws)
        for file, language in FILES.get(page.name, {}).items():
            blocks = re.findall(rf"^```{language}\n(.*?)^```", text, re.M | re.S)
            assert blocks, f"{page.name}: no block of {language}"
            named = [block for block in blocks if block.startswith(f"# {file}\n")]
            (folder / file).parent.mkdir(exist_ok=True)
            (folder / file).write_text((named or blocks)[0], encoding="utf-8")
        tools = folder / ".bin"
        tools.mkdir()
        covp = tools / "covp"
        covp.write_text(f"#!{sys.executable}\nfrom covp.cli.main import main\nmain()\n")
        covp.chmod(0o755)
        path = f"{tools}:{Path(sys.executable).parent}:{os.environ['PATH']}"
        environment = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)}
        for command in [found[1] for found in QUOTED.finditer(text)]:
            if not command.startswith("python benchmarks/"):
                done = subprocess.run(
                    ["bash", "-eo", "pipefail", "-c", command],
                    cwd=folder, env=environment, capture_output=True, text=True,
                )  # fmt: skip
                if done.returncode:
                    sys.exit(f"{page.name}: {command}: {done.stderr[-2000:]}")
                yield name_of(command), done.stdout


def run_page(name: str) -> int:
    """Keep what the commands of a page print."""
    for file, output in printed_by_page(ROOT / "docs" / name):
        (PRINTED / f"{file}.txt").write_text(output, encoding="utf-8")
    return 0


def write() -> None:
    """Make each quotation of what was printed last."""

    def renewed(found: re.Match[str]) -> str:
        file = PRINTED / f"{name_of(found[1])}.txt"
        if not file.exists():
            return found[0]
        text = as_markdown(file.read_text(encoding="utf-8"))
        return f"<!-- printed by: {found[1]} -->\n{text}<!-- end -->"

    for page in pages():
        text = page.read_text(encoding="utf-8")
        page.write_text(QUOTED.sub(renewed, text), encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "names", nargs="*", metavar="BENCHMARK", help="to run, such as int16, or a page"
    )
    parser.add_argument("--check", action="store_true", help="only compare")
    given = parser.parse_args()
    if given.check:
        found = differing()
        print("\n".join(found) or "all pages are what was printed")
        return 1 if found else 0
    status = {name: run_page(name) if name.endswith(".md") else run(name) for name in given.names}
    write()
    for name in filter(status.get, status):
        print(f"{name}: exit status {status[name]}")
    return int(any(status.values()))


if __name__ == "__main__":
    sys.exit(main())
