"""The time of the check by layers beside that of the simulation, for each model.

    python benchmarks/check_time.py [--models resnet kws] [--platforms riscv32] [--runs 5]
                                    [--json FILE]

"simulation" is the first inference in a new session, as `covp run` reports it. "check" is what
`covp run` does beyond it: a session of its own, the reference of all inputs, and each layer of
each of them on the device. "reference" is the part that numpy takes in it. Seconds of host time,
each the shortest of a few runs; "processor" is the processor time of the check, which other work
on the machine does not lengthen. Exit status 1 where a tensor differs, or where the processor time
of the check is above the limit of half a second.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from document import write_document

from covp.evaluation import Runner, Sample, build, check_layers

MODELS = ("resnet", "kws", "vww", "toycar", "sww", "cifar10")
LIMIT = 0.5
"""Seconds that the check of a model of MLPerf Tiny's size may take."""


@dataclass(frozen=True)
class Row:
    """One model on one platform; seconds are the shortest."""

    model: str
    platform: str
    layers: int
    inputs: int
    simulation: float
    check: float
    reference: float
    processor: float
    exact: bool


def measure(model: str, platform: str, runs: int) -> Row:
    """One row."""
    made = build(model, platform)
    sample = Sample.random(made.graph)
    simulated, references, checks, used = [], [], [], []
    for _ in range(runs):
        with Runner(made) as runner:
            simulated.append(runner.run(sample).simulation_seconds)
        start, processor = time.perf_counter(), time.process_time()
        samples = sample.and_probes(made.graph)
        references.append(time.perf_counter() - start)
        found = check_layers(made, samples)
        checks.append(time.perf_counter() - start)
        used.append(time.process_time() - processor)
    return Row(model, platform, found.layers, found.inputs, min(simulated), min(checks),
               min(references), min(used), found.mismatch is None)  # fmt: skip


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", default=list(MODELS))
    parser.add_argument("--platforms", nargs="+", default=["riscv32", "cortex-m7"])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows there as well")
    options = parser.parse_args()
    print(f"{'model':10}{'platform':12}{'compared':>23}{'simulation':>12}{'check':>9}"
          f"{'reference':>11}{'processor':>11}")  # fmt: skip
    rows = []
    for platform in options.platforms:
        for model in options.models:
            row = measure(model, platform, options.runs)
            rows.append(row)
            compared = f"{row.layers} layers x {row.inputs} inputs"
            print(f"{model:10}{platform:12}{compared:>23}{row.simulation:10.3f} s{row.check:7.3f} s"
                  f"{row.reference:9.3f} s{row.processor:9.3f} s"
                  f"{'' if row.exact else '  NOT BIT-EXACT'}")  # fmt: skip
    if options.json:
        write_document(options.json, [asdict(row) for row in rows])
    return 0 if all(row.exact and row.processor <= LIMIT for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
