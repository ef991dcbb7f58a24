"""Samples a minute of `covp run --data`, by model, on the reference and on emulated cores.

    python benchmarks/data_throughput.py [--models kws resnet] [--platforms riscv32] [--samples 200]
                                         [--jobs 2] [--json FILE]

"one by one" is the reference, sample by sample; "at once" the same in parts of 32 samples, one
process; "shared" with --jobs processes, their start included. The cores' figures are those of the
device, each sample from the state after loading. "processor" is samples a minute of processor time
in one process, which other work on the machine does not lengthen. Before there was --data, 200
samples took 6.6 s on Cortex-M4 and M7 and 2.5 s on RISC-V in a loop of a user's own, which is 1,818
and 4,800 a minute. Exit status 1 where the figures depend on the number of processes, or the
answers of the reference are not those of the device.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from document import write_document

from covp.evaluation import Build, build
from covp.evaluation.data import Data, accuracy_of
from covp.graph.graph import Graph
from covp.graph.random_inputs import random_inputs
from covp.graph.reference import run_reference

MODELS = ("kws", "resnet", "vww", "toycar", "sww")
PLATFORMS = ("riscv32", "cortex-m4", "cortex-m7")


@dataclass(frozen=True)
class Row:
    """One model on one platform, or on the reference; samples a minute."""

    model: str
    on: str
    one_by_one: float | None
    at_once: float
    shared: float
    processor: float
    same: bool


def rate(samples: int, work: Callable[[], object]) -> tuple[float, float]:
    """Samples a minute of time on the clock, and of processor time."""
    start, processor = time.perf_counter(), time.process_time()
    work()
    passed, used = time.perf_counter() - start, time.process_time() - processor
    return samples / passed * 60, samples / used * 60


def dataset(graph: Graph, samples: int, folder: Path) -> Data:
    """Random inputs, and as labels the classes that the reference names."""
    arrays = [random_inputs(graph.inputs, seed)[0] for seed in range(samples)]
    labels = [int(np.argmax(run_reference(graph, [array])[0])) for array in arrays]
    np.save(folder / "x.npy", np.stack(arrays))
    if graph.outputs[0].size != graph.inputs[0].size:
        np.save(folder / "y.npy", labels)
        return Data(folder / "x.npy", folder / "y.npy")
    return Data(folder / "x.npy")


def measure(made: Build, data: Data, samples: int, jobs: int) -> Row:
    """One row."""
    graph, found = made.graph, []

    def run(number: int) -> None:
        found.append(accuracy_of(made, data, jobs=number))

    alone = None
    if data.on == "reference":
        few = [random_inputs(graph.inputs, seed) for seed in range(min(samples, 20))]
        alone, _ = rate(len(few), lambda: [run_reference(graph, inputs) for inputs in few])
    run(1)  # compiles
    at_once, processor = rate(samples, lambda: run(1))
    shared, _ = rate(samples, lambda: run(jobs))
    plain = [replace(quality, seconds=0.0) for quality in found]
    right = all(quality.accuracy in (None, 1.0) for quality in plain)
    same = right and all(quality == plain[0] for quality in plain)
    place = "reference" if data.on == "reference" else made.platform.name
    return Row(graph.name, place, alone, at_once, shared, processor, same)


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", default=list(MODELS))
    parser.add_argument("--platforms", nargs="*", default=list(PLATFORMS))
    parser.add_argument("--samples", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows there as well")
    options = parser.parse_args()
    print(f"{'samples a minute':28}{'one by one':>12}{'at once':>12}{'processor':>12}"
          f"{f'{options.jobs} processes':>14}")  # fmt: skip
    rows: list[Row] = []
    for model in options.models:
        with tempfile.TemporaryDirectory() as folder:
            builds = [build(model, platform) for platform in options.platforms or ["riscv32"]]
            data = dataset(builds[0].graph, options.samples, Path(folder))
            wanted = [(builds[0], replace(data, on="reference"))]
            wanted += [(made, data) for made in builds if options.platforms]
            for made, given in wanted:
                row = measure(made, given, options.samples, options.jobs)
                rows.append(row)
                alone = "-" if row.one_by_one is None else f"{row.one_by_one:,.0f}"
                print(f"{row.model:12}{row.on:16}{alone:>12}{row.at_once:12,.0f}"
                      f"{row.processor:12,.0f}{row.shared:14,.0f}"
                      f"{'' if row.same else '  NOT THE SAME'}", flush=True)  # fmt: skip
    if options.json:
        write_document(options.json, [asdict(row) for row in rows])
    return 0 if all(row.same for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
