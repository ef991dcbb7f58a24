"""How exact cycles are: every check of the timing models, from files in benchmarks/results.

    python benchmarks/accuracy.py [SECTION ...] [--measure] [--write | --check]

Prints the tables of all sections, or of some: rtl, coremark, loops, assembly, boards. --measure
runs their benchmarks first, which write the JSON files (rtl takes minutes, and ``pip install
'.[rtl]'``); boards has none: it is of programs that are not part of this repository.
--write writes docs/accuracy.md and the errors that runs print (accuracy.yaml);
--check compares both: exit status 1 where the files give others.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import shlex
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from covp.chip.cores import find_core, timing_files
from covp.chip.platform_file.model import ZERO_WAITS
from covp.graph.rounding_rules import ANY, Oracle, RoundingRule, rules_of

ROOT = Path(__file__).parents[1]
DATA = Path(__file__).with_name("results")
PAGE = ROOT / "docs" / "accuracy.md"
Rows = list[dict[str, Any]]

COMMANDS = {
    "rtl": "python benchmarks/rtl_cores.py --models toycar kws resnet"
    " --cores cv32e40p ibex ibex-small picorv32 vexriscv-cfu vexriscv-full"
    " --json benchmarks/results/rtl_cores.json",
    "coremark": "python benchmarks/coremark.py --json benchmarks/results/coremark.json",
    "loops": "python benchmarks/documented_loops.py"
    " --json benchmarks/results/documented_loops.json",
    "assembly": "python benchmarks/published_cycles.py"
    " --json benchmarks/results/published_cycles.json",
}
"""Section to the command that measures it; the last word is its file."""
FILES = {name: Path(command.split()[-1]).name for name, command in COMMANDS.items()}
FILES["boards"] = "boards.json"


def content_of(section: str) -> dict[str, Any]:
    """What the file of a section holds."""
    content: dict[str, Any] = json.loads((DATA / FILES[section]).read_text(encoding="utf-8"))
    return content


def rows_of(section: str) -> Rows:
    """The rows of a section."""
    rows: Rows = content_of(section)["rows"]
    return rows


def table(head: Sequence[str], rows: Iterable[Sequence[str]], aligned: str) -> str:
    """A Markdown table; ``aligned`` has an l or an r for each column."""
    marks = "".join("---:|" if one == "r" else "---|" for one in aligned)
    lines = [f"| {' | '.join(head)} |", f"|{marks}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def rtl() -> str:
    """Models beside the RTL of their cores."""
    cells = [
        (f"`{row['core']}`", row["model"], f"{row['rtl']:,}", f"{row['estimate']:,}",
         f"{row['error']:+.2%}", f"{row['layer'][1]:+.2%}", row["assumes"])
        for row in rows_of("rtl")
    ]  # fmt: skip
    head = ("core", "model", "RTL cycles", "estimate", "error",
            "worst layer of 1,000 cycles and more", "memory")  # fmt: skip
    return table(head, cells, "llrrrrl")


def verdict(row: dict[str, Any]) -> str:
    """The error of a row, and whether it is wanted."""
    missed = abs(row["error"]) > row["allowed"]
    return f"{row['error']:+.1%}{' **miss**' if missed else ''}"


def coremark() -> str:
    """CoreMark/MHz beside published scores and RTL."""
    cells = [
        (f"`{row['core']}`", f"{row['compiler']} {short(row['flags'])}",
         f"{1e6 / row['cycles']:.3f}", f"{1e6 / row['reference']:.3f}", verdict(row),
         f"{row['allowed']:.0%}", "RTL" if row["kind"] == "rtl" else row["kind"],
         "" if row["kind"] == "rtl" else row["source"])
        for row in rows_of("coremark")
    ]  # fmt: skip
    head = ("core", "compiled by", "covp", "reference", "error", "wanted", "of", "source")
    return table(head, cells, "llrrrrll")


def short(flags: str) -> str:
    """The options of a row: a name in place of those that are said above the table."""
    if "-enable" in flags:
        return "as -Omax"
    return "SiFive's options" if "-finline-functions" in flags else flags


def loops() -> str:
    """How many documented loops there are of each core and source."""
    found = Counter((row["core"], row["source"].partition(":")[0] if "measured" not in
                     row["source"] else ":".join(row["source"].split(":")[:2]))
                    for row in rows_of("loops"))  # fmt: skip
    cells = [(f"`{core}`", source, str(count)) for (core, source), count in found.items()]
    return table(("core", "source", "programs"), cells, "llr")


def loops_differ() -> str:
    """The documented loops that a model does not take the stated cycles for."""
    cells = [
        (f"`{row['core']}`", f"`{row['body']}`", f"{row['cycles']:g}", row["documented"],
         row["source"], row["differs"])
        for row in rows_of("loops")
        if not row["right"]
    ]  # fmt: skip
    head = ("core", "program", "covp", "documented", "source", "why")
    return table(head, cells, "llrrll")


def assembly() -> str:
    """Assembly beside the cycles that its authors measured."""
    cells = [
        (f"`{row['core']}`", row["board"], f"`{row['function']}`", str(row["published"]),
         str(row["cycles"]), f"{row['error']:+.1%}")
        for row in rows_of("assembly")
    ]  # fmt: skip
    return table(("core", "board", "function", "published", "covp", "error"), cells, "lllrrr")


def boards() -> str:
    """Kernels and whole models beside published times of boards."""
    rows = rows_of("boards")
    builds = list(rows[0]["cycles"])
    cells = []
    for row in rows:
        errors = [
            verdict({"error": row["cycles"][build] / row["published"] - 1, "allowed": limit})
            for build in builds
            for limit in (row["allowed"] if build.endswith("memory") else 9.0,)
        ]
        published = f"{row['published'] / 1e6:.3g}"
        cells.append((row["board"], row["program"], published, *errors, f"{row['allowed']:.0%}",
                      row["kernels"], row["source"]))  # fmt: skip
    head = ("board", "program", "published Mcycles", *builds, "wanted", "kernels", "source")
    return table(head, cells, f"llr{'r' * len(builds)}rll")


def programs() -> str:
    """Whole programs beside published cycles of boards."""
    cells = [
        (row["board"], row["program"], f"{row['published']:,}", f"{row['cycles']:,}",
         f"{row['cycles'] / row['published'] - 1:+.1%}", row["memory"], row["build"], row["source"])
        for row in content_of("boards")["programs"]
    ]  # fmt: skip
    head = ("board", "program", "published cycles", "covp", "error", "memory", "built as", "source")
    return table(head, cells, "llrrrlll")


def summary() -> str:
    """The largest error of each core, by section."""
    worst: dict[str, dict[str, float]] = {}
    for section in ("rtl", "coremark"):
        for row in rows_of(section):
            by_core = worst.setdefault(row["core"], {})
            by_core[section] = max(by_core.get(section, 0.0), abs(row["error"]))
    right = Counter(row["core"] for row in rows_of("loops") if row["right"])
    total = Counter(row["core"] for row in rows_of("loops"))
    cells = [
        (f"`{core}`",
         *(f"{errors[one]:.1%}" if one in errors else "" for one in ("rtl", "coremark")),
         f"{right[core]} of {total[core]}" if total[core] else "")
        for core, errors in worst.items()
    ]  # fmt: skip
    head = ("core", "largest error of models on RTL", "of CoreMark", "documented loops")
    return table(head, cells, "lrrr")


def known_errors() -> Iterator[tuple[str, str, float]]:
    """Core, memory and error of each row: the memory as `Platform.wait_states` describes it."""
    for row in rows_of("rtl"):
        yield row["core"], row["assumes"], row["error"]
    memory = {row["core"]: row["assumes"] for row in rows_of("rtl")}
    for row in rows_of("coremark"):
        yield row["core"], memory.get(row["core"], ZERO_WAITS), row["error"]
    boards = content_of("boards")["memory"]
    for row in rows_of("boards"):
        for build, cycles in row["cycles"].items():
            if row["board"] in boards and build.endswith("memory"):
                yield row["core"], boards[row["board"]], cycles / row["published"] - 1
    for row in content_of("boards")["programs"]:
        yield row["core"], row["memory"], row["cycles"] / row["published"] - 1


def errors() -> dict[Path, str]:
    """The files accuracy.yaml: the largest error of each timing model with each memory."""
    worst: dict[str, dict[str, float]] = {}
    for core, memory, error in known_errors():
        model = worst.setdefault(find_core(core).timing or "", {})
        model[memory] = max(model.get(memory, 0.0), abs(error))
    return {
        timing_files()[name].with_name("accuracy.yaml"): "\n".join(
            [
                "# largest known errors by memory: benchmarks/accuracy.py --write",
                *(f'"{memory}": {rounded(error)}' for memory, error in by_memory.items()),
                "",
            ]
        )
        for name, by_memory in worst.items()
    }


def rounded(error: float) -> float:
    """To the next tenth of a percent."""
    return max(math.ceil(error * 1000) / 1000, 0.001)


SECTIONS: dict[str, Callable[[], str]] = {
    "rtl": rtl,
    "coremark": coremark,
    "loops": lambda: f"{loops()}\n\n{loops_differ()}",
    "assembly": assembly,
    "boards": lambda: f"{boards()}\n\n{programs()}",
}


def compilers(start: str) -> str:
    """Versions of a compiler in the rows of CoreMark on Cortex-M."""
    names = {row["compiler"] for row in rows_of("coremark") if row["core"].startswith("cortex")}
    return ", ".join(sorted(name for name in names if name.startswith(start)))


def page() -> str:
    """docs/accuracy.md."""
    options, sifive = (
        next(row["flags"] for row in rows_of("coremark") if name in row["flags"])
        for name in ("-enable", "-finline-functions")
    )
    values = {
        "commands": "\n".join(COMMANDS.values()),
        "summary": summary(),
        "rtl": rtl(),
        "coremark": coremark(),
        "gcc": compilers("gcc"),
        "zig": compilers("zig"),
        "omax": options,
        "sifive": sifive,
        "loops_count": str(len(rows_of("loops"))),
        "loops_differ": loops_differ(),
        "loops": loops(),
        "assembly": assembly(),
        "boards": boards(),
        "programs": programs(),
        "litert_rules": rules("LiteRT"),
        "onnxruntime_rules": rules("onnxruntime"),
    }
    text = (DATA / "accuracy.md.in").read_text(encoding="utf-8")
    return re.sub(r"@(\w+)@", lambda found: values[found[1]], text)


def rules(oracle: Oracle) -> str:
    """What results of another library may differ by."""
    head = "| rule | operators | of | allowed | why |\n|---|---|---|---|---|"
    return "\n".join([head, *map(_rule_row, rules_of(oracle))])


def _rule_row(rule: RoundingRule) -> str:
    allowed = "any number of steps" if rule.steps == ANY else f"{rule.steps:.0f} step"
    if rule.theirs is not None:
        allowed = f"{allowed} from " if rule.steps else ""
        allowed += f"what {rule.oracle} is known to compute"
    if rule.nearby:
        allowed = "the other one of two elements that are equally near in float32"
    if rule.at_zero:
        allowed += "; any number where covp's result is zero"
    if rule.tie is not None:
        allowed += f" within {0.5 + rule.tie:.6g} of the exact value"
    if rule.share:
        floats = f"{rule.share:.2g} of the tensor's largest magnitude"
        allowed = f"{allowed}, or {floats}" if rule.steps else floats
    allowed = "NaN" if rule.nan else "an infinity" if rule.infinite else allowed
    kinds = ", ".join(rule.kinds.split())
    return f"| {rule.name} | {kinds} | {rule.dtypes or 'any'} | {allowed} | {rule.reason} |"


def made() -> dict[Path, str]:
    """The files that are made of the results."""
    return {PAGE: page(), **errors()}


def measure(sections: Sequence[str]) -> None:
    """Run the benchmarks of some sections; their exit status says what the tables say."""
    for section in filter(COMMANDS.__contains__, sections):
        command = shlex.split(COMMANDS[section])
        subprocess.run([sys.executable, *command[1:]], cwd=ROOT)


def main() -> int:
    """Print, write or check."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=", ".join(SECTIONS))
    parser.add_argument("--measure", action="store_true", help="run the benchmarks first")
    parser.add_argument("--write", action="store_true", help="write the files made of them")
    parser.add_argument("--check", action="store_true", help="compare those files")
    options = parser.parse_args()
    unknown = set(options.sections) - set(SECTIONS)
    if unknown:
        parser.error(f"no such section: {', '.join(sorted(unknown))}")
    sections = options.sections or list(SECTIONS)
    if options.measure:
        measure(sections)
    if options.write:
        for path, text in made().items():
            path.write_text(text, encoding="utf-8")
    elif options.check:
        return report([path for path, text in made().items() if path.read_text("utf-8") != text])
    else:
        print("\n\n".join(f"## {name}\n\n{SECTIONS[name]()}" for name in sections))
    return 0


def report(other: Sequence[Path]) -> int:
    """Name the files that the results give other contents for."""
    for path in other:
        print(f"{path.relative_to(ROOT)} is not what benchmarks/results gives: run "
              "`python benchmarks/accuracy.py --write`")  # fmt: skip
    return int(bool(other))


if __name__ == "__main__":
    sys.exit(main())
