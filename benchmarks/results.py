"""Write docs/results.md, and the figures in README.md, from the JSON files in benchmarks/results.

    python benchmarks/results.py [--check]

With --check nothing is written: exit status 1 where a file is not what the JSON gives. The page
itself says how each JSON file is made.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
DATA = Path(__file__).with_name("results")
Rows = list[dict[str, Any]]

FILES = {
    "accelerators": "python benchmarks/accelerators.py",
    "mlperf_tiny": "python benchmarks/mlperf_tiny.py",
    "mlperf_tiny_balanced": "python benchmarks/mlperf_tiny.py --optimize balanced",
    "kernels": "python benchmarks/kernels.py",
    "emulation_speed": "python benchmarks/emulation_speed.py --rounds 5",
    "laboratory": "python benchmarks/laboratory.py --rounds 5",
}
"""Each JSON file of benchmarks/results and the command whose ``--json`` writes it."""
CORES = {
    "rv32imc": "RV32IMC",
    "cortex-m4f": "Cortex-M4",
    "cortex-m7f": "Cortex-M7",
    "cortex-m0plus": "Cortex-M0+",
}


def rows_of(name: str) -> Rows:
    """The rows of one JSON file."""
    rows: Rows = json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))["rows"]
    return rows


def table(head: Sequence[str], rows: Iterable[Sequence[str]], text_columns: int = 1) -> str:
    """A Markdown table; columns after the first ``text_columns`` are aligned right."""
    numbers = len(head) - text_columns
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * text_columns}{'---:|' * numbers}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def compilers(rows: Rows) -> str:
    """The compilers of the rows, such as "gcc 12.2.0, zig 0.17.0"."""
    return ", ".join(sorted({row["compiler"] for row in rows}))


def yes(held: bool) -> str:
    """A cell of the column "bit-exact"."""
    return "yes" if held else "NO"


def compare_table() -> str:
    """The four rows of `covp compare resnet kws vww toycar -p riscv32 -a qconv2d`."""
    rows = rows_of("accelerators")
    found = {(row["model"], row["accelerator"]): row for row in rows}
    cells = []
    for model in ("resnet", "kws", "vww", "toycar"):
        alone = found[model, "core alone"]
        # a model of which the accelerator gets no layer has no row: it runs as on the core alone
        beside = found.get((model, "qconv2d"), alone)
        saved = 1 - beside["instructions"] / alone["instructions"]
        cells.append(
            (
                model,
                f"{alone['instructions']:,}",
                f"{beside['instructions']:,}",
                f"{saved:.1%}",
                f"{alone['cycles'] / beside['cycles']:.1f}x",
                f"{beside['coverage']:.0%}",
                yes(alone["exact"] and beside["exact"]),
            )
        )
    head = ("model", "instructions alone", "with qconv2d", "reduction", "speedup (est. cycles)",
            "MACs offloaded", "bit-exact")  # fmt: skip
    return table(head, cells)


def _ratio_range(rows: Rows) -> str:
    ratios = [row["instructions"] / row["anchor_instructions"] for row in rows]
    return f"{min(ratios):.2f} to {max(ratios):.2f}"


def searched_with() -> str:
    """The compiler of the shipped schedules, such as "zig 0.17.0"."""
    files = (ROOT / "covp" / "building" / "tune" / "shipped").glob("rv32imc-zig-*.jsonl")
    named = filter(None, (re.fullmatch(r"rv32imc-zig-([\d.]+)", file.stem) for file in files))
    return (
        f"zig {max((match[1] for match in named), key=lambda text: [*map(int, text.split('.'))])}"
    )


def readme_figures() -> str:
    """The README's table and the two sentences under it."""
    zig = [row for row in rows_of("mlperf_tiny") if row["compiler"].startswith("zig")]
    (compiler,) = {row["compiler"] for row in rows_of("accelerators")}
    models, cores = {row["model"] for row in zig}, {row["core"] for row in zig}
    return (
        f"{compare_table()}\n\nCompiled by {compiler}; schedules were searched with "
        f"{searched_with()}; other versions of the compiler take the same\nschedules, and a test "
        "holds them to within 2 %. "
        f"On the core alone the generated kernels need {_ratio_range(zig)}\ntimes the instructions "
        f"of TensorFlow Lite Micro with the vendors' kernels, over {len(models)} models "
        f"on {len(cores)} cores (`--optimize instructions`)."
    )


def accelerators() -> str:
    """All accelerators of the repository beside the core."""
    rows = rows_of("accelerators")
    alone = {row["model"]: row for row in rows if row["accelerator"] == "core alone"}
    cells = []
    for row in rows:
        core = alone[row["model"]]
        cells.append(
            (
                row["model"],
                row["accelerator"],
                f"{row['instructions']:,}",
                f"{row['cycles']:,}",
                f"{core['cycles'] / row['cycles']:.1f}x",
                f"{row['coverage']:.0%}",
                yes(row["exact"]),
                f"{row['seconds'] * 1e3:.1f} ms",
                f"{row['seconds'] / core['seconds']:.2f}",
                f"{row['again'] * 1e3:.1f} ms",
                f"{row['again'] / core['again']:.2f}",
            )
        )
    head = ("model", "accelerator", "instructions", "est. cycles", "speedup", "MACs offloaded",
            "bit-exact", "simulated", "/ core", "again", "/ core")  # fmt: skip
    return table(head, cells, 2)


def _millions(count: int) -> str:
    return f"{count / 1e6:.2f}" if count < 1e7 else f"{count / 1e6:.1f}"


def beside_tflm(name: str, ours: str, theirs: str, show: Callable[[int], str]) -> str:
    """One figure of every model: a row per core and compiler, then the other runtime's row."""
    rows = rows_of(name)
    models = list(dict.fromkeys(row["model"] for row in rows))
    cells = []
    for core, title in CORES.items():
        here = [row for row in rows if row["core"] == core]
        for compiler in sorted({row["compiler"] for row in here}, reverse=True):
            of = {row["model"]: row for row in here if row["compiler"] == compiler}
            values = [f"{show(of[m][ours])} ({of[m][ours] / of[m][theirs]:.2f})" for m in models]
            cells.append((title, f"covp, {compiler}", *values))
        of = {row["model"]: row for row in here}
        cells.append((title, of[models[0]]["anchor"], *(show(of[m][theirs]) for m in models)))
    return table(("core", "runtime, compiler", *models), cells, 2)


def worst_layers(count: int = 10) -> str:
    """The layers nearest to the best of the other runtimes."""
    rows = sorted(rows_of("kernels"), key=lambda row: -row["ratio"])[:count]
    cells = [
        (row["core"], row["model"], row["layer"], row["by"], row["runtime"],
         f"{row['ours']:,}", f"{row['anchor']:,}", f"{row['ratio']:.2f}")
        for row in rows
    ]  # fmt: skip
    head = ("core", "model", "layer", "compiler", "other runtime", "covp", "other", "ratio")
    return table(head, cells, 5)


def emulation() -> str:
    """Speed of emulated models beside plain Unicorn and QEMU."""
    cells = [
        (row["core"], row["model"], str(row["plain"]), str(row["covp"]),
         f"{row['covp'] / row['plain']:.2f}x", f"{row['edges']:.2f}", str(row["qemu"] or "-"))
        for row in rows_of("emulation_speed")
    ]  # fmt: skip
    head = ("core", "model", "Unicorn's code", "covp", "ratio", "edges", "QEMU 7.2")
    return table(head, cells, 2)


def _found(what: str) -> Rows:
    return [row for row in rows_of("laboratory") if row["what"] == what]


def laboratory_calls() -> str:
    """Calls and examples a second beside the references."""
    examples = {row["platform"]: row for row in _found("examples")}
    cells = []
    for row in _found("calls"):
        example = examples[row["platform"]]
        figures = [row[by] for by in ("ours", "qemu", "qemu_processes", "cffi")]
        figures += [example[by] for by in ("ours", "cffi", "empty")]
        cells.append((row["platform"], *(f"{one:,}" if one else "-" for one in figures)))
    head = ("platform", "covp", "QEMU, one process", "QEMU, a process each", "CFFI on the host",
            "examples with covp", "examples with CFFI", "examples without a call")  # fmt: skip
    return table(head, cells)


def laboratory_restore() -> str:
    """Microseconds to go back to a snapshot."""
    cells = [
        (row["platform"], str(row["pages"]), str(row["ours"]), f"{row['copy']:,}")
        for row in _found("restore")
    ]
    return table(("platform", "pages stored to", "restore", "copy of all memory"), cells)


def laboratory_checks() -> str:
    """What checks cost, as ratios."""
    cells = [
        (row["platform"], row["program"], f"{row['sanitized']}x", f"{row['ubsan']}x")
        for row in _found("checks")
    ]
    head = ("platform", "program", "time with `sanitize`", "instructions with `ubsan`")
    return table(head, cells, 2)


def commands() -> str:
    """How the JSON files are made."""
    lines = (f"{call} --json benchmarks/results/{name}.json" for name, call in FILES.items())
    return "\n".join(lines)


def page() -> str:
    """docs/results.md."""
    tiny, balanced, layers = (
        rows_of(name) for name in ("mlperf_tiny", "mlperf_tiny_balanced", "kernels")
    )
    text = (DATA / "results.md.in").read_text(encoding="utf-8")
    values = {
        "commands": commands(),
        "compare": compare_table(),
        "accelerators": accelerators(),
        "accelerators_compiler": compilers(rows_of("accelerators")),
        "speed": beside_tflm("mlperf_tiny", "instructions", "anchor_instructions", _millions),
        "balanced": beside_tflm(
            "mlperf_tiny_balanced", "instructions", "anchor_instructions", _millions
        ),
        "arena": beside_tflm("mlperf_tiny", "arena", "anchor_arena", "{:,}".format),
        "flash": beside_tflm("mlperf_tiny", "flash", "anchor_flash", "{:,}".format),
        "flash_balanced": beside_tflm(
            "mlperf_tiny_balanced", "flash", "anchor_flash", "{:,}".format
        ),
        "tiny_compilers": compilers(tiny),
        "tiny_range": _ratio_range(tiny),
        "balanced_range": _ratio_range(balanced),
        "tiny_inputs": str(tiny[0]["inputs"]),
        "tiny_exact": str(sum(row["exact"] for row in tiny)),
        "tiny_runs": str(sum(row["inputs"] for row in tiny)),
        "layer_count": str(len(layers)),
        "layers_above": str(sum(row["ratio"] > 1 for row in layers)),
        "layers": worst_layers(),
        "emulation": emulation(),
        "laboratory_calls": laboratory_calls(),
        "laboratory_restore": laboratory_restore(),
        "laboratory_checks": laboratory_checks(),
    }
    return re.sub(r"@(\w+)@", lambda found: values[found[1]], text)


def readme(text: str) -> str:
    """README.md with today's figures between its markers."""
    marked = r"(<!-- results -->\n).*?(\n<!-- /results -->)"
    return re.sub(marked, lambda found: found[1] + readme_figures() + found[2], text, flags=re.S)


def main() -> int:
    """Write or check both files."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing, compare")
    options = parser.parse_args()
    old_readme = (ROOT / "README.md").read_text(encoding="utf-8")
    wanted = {ROOT / "docs" / "results.md": page(), ROOT / "README.md": readme(old_readme)}
    old = [file for file, text in wanted.items()
           if not file.is_file() or file.read_text(encoding="utf-8") != text]  # fmt: skip
    for file in old:
        if options.check:
            print(f"{file.relative_to(ROOT)} is not what benchmarks/results gives: run "
                  "`python benchmarks/results.py`")  # fmt: skip
        else:
            file.write_text(wanted[file], encoding="utf-8")
    return 1 if options.check and old else 0


if __name__ == "__main__":
    sys.exit(main())
