"""The MLPerf Tiny models on a RISC-V core alone and with each accelerator of this repository.

    python benchmarks/accelerators.py [--models resnet kws] [--runs 5] [--markdown]
                                       [--json FILE]

Instructions of one inference are exact; cycles are estimates of synthetic timing models (the
accelerators' parameters are their defaults, see `covp accelerators`); the share of the model's
multiply-accumulates that the accelerator did. "simulated" is the time of the first inference in a
new session, which is what `covp run` reports, "again" that of a later one, when the emulator has
translated all code; each the shortest of a few, with its ratio to the core alone. int8 outputs are
compared with the reference bit for bit, those of the float models (core riscv32f, vanilla) within
1e-5, layer by layer over four inputs. Exit status 1 where outputs differ.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from document import write_document

import covp
from covp.evaluation import Runner, Sample, build, recorded_schedules
from covp.evaluation.runner import by_layers

MODELS = ("resnet", "kws", "vww", "toycar")
PAPER = "qconv2d:requantize=false,depthwise=false,max_stride=1"
INT8 = {
    "core alone": (),
    "qconv2d, the paper's split": (PAPER,),
    "qconv2d": ("qconv2d",),
    "gemm 8x8": ("gemm",),
    "gemm 16x16": ("gemm:size=16",),
    "gemm 8x8 + vector": ("gemm", "vector"),
    "cfu": ("cfu",),
}
FLOAT = {"core alone": (), "vanilla": ("vanilla",)}
PAPER_COVERAGE = {"resnet": 0.79, "vww": 0.83, "kws": 0.77}
"""CODAI'23, table 2: share of the MACs that its qconv2d accelerator did."""


@dataclass(frozen=True)
class Row:
    """One model under one accelerator; seconds of simulation are the shortest."""

    model: str
    platform: str
    compiler: str
    accelerator: str
    instructions: int
    cycles: int
    coverage: float
    seconds: float
    again: float
    exact: bool


def measure(model: str, platform_name: str, label: str, accelerators: tuple[str, ...],
            runs: int) -> Row | None:  # fmt: skip
    """One row; None where the accelerators get no layer of the model."""
    platform = covp.load_platform(platform_name)
    schedules = recorded_schedules(platform)
    made = build(model, platform, accelerators, schedules=schedules, allow_unused=True)
    if accelerators and all(layer.target == "cpu" for layer in made.program.layers):
        return None
    sample = Sample.random(made.graph)
    first: list[float] = []
    again: list[float] = []
    for _ in range(runs):
        with Runner(made) as runner:
            results = [runner.run(sample) for _ in range(3)]
        seconds = [result.simulation_seconds for result in results]
        first.append(seconds[0])
        again += seconds[1:]
    result = results[-1]
    result = by_layers(result, result.sample.and_probes(result.build.graph))
    profile = result.profile
    assert profile.instructions is not None and profile.cycles is not None
    return Row(model, platform_name, result.toolchain, label, profile.instructions, profile.cycles,
               result.mac_coverage or 0.0, min(first), min(again),
               result.matches_reference)  # fmt: skip


def show(row: Row, alone: Row, markdown: bool) -> None:
    """Print a row beside the core alone."""
    cells = [
        row.model,
        row.accelerator,
        f"{row.instructions:,}",
        f"{row.cycles:,}",
        f"{alone.cycles / row.cycles:.1f}x",
        f"{row.coverage:.0%}",
        f"{row.seconds * 1e3:.1f} ms",
        f"{row.seconds / alone.seconds:.2f}",
        f"{row.again * 1e3:.1f} ms",
        f"{row.again / alone.again:.2f}",
        "yes" if row.exact else "NO",
    ]
    if markdown:
        print(f"| {' | '.join(cells)} |")
    else:
        widths = (13, 27, 12, 12, 8, 6, 10, 7, 10, 7, 11)
        print("".join(c.ljust(w) if i < 2 else c.rjust(w)
                      for i, (c, w) in enumerate(zip(cells, widths, strict=True))))  # fmt: skip


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=MODELS)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows there as well")
    options = parser.parse_args()
    head = ["model", "accelerator", "instructions", "est. cycles", "speedup", "MACs", "simulated",
            "/ core", "again", "/ core", "bit-exact"]  # fmt: skip
    if options.markdown:
        print(f"| {' | '.join(head)} |\n|---|---|{'---:|' * 9}")
    else:
        print("{:13}{:27}{:>12}{:>12}{:>8}{:>6}{:>10}{:>7}{:>10}{:>7}{:>11}".format(*head))
    good, rows = True, list[Row]()
    for model in options.models:
        for name, platform, kinds in (
            (model, "riscv32", INT8),
            (f"{model}_float", "riscv32f", FLOAT),
        ):
            alone: Row | None = None
            for label, accelerators in kinds.items():
                row = measure(name, platform, label, accelerators, options.runs)
                if row is None:
                    continue
                alone = alone or row
                rows.append(row)
                show(row, alone, options.markdown)
                good = good and row.exact
                if accelerators == (PAPER,) and model in PAPER_COVERAGE:
                    share = PAPER_COVERAGE[model]
                    note = f"the paper: {share:.0%} of the MACs"
                    good = good and row.coverage >= share - 0.005
                    print(f"{'':13}{note}" if not options.markdown else f"| | {note} |||||||||")
    if options.json:
        write_document(options.json, [asdict(row) for row in rows])
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
