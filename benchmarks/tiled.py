"""A systolic array with a scratchpad: its cycles beside SCALE-Sim's, its overlap, its speed.

    python benchmarks/tiled.py [--models toycar kws resnet vww] [--scale-sim PYTHON]

SCALE-Sim's cycles are those of benchmarks/scale_sim.csv, which version 3.0.0 from PyPI printed;
``--scale-sim`` is a Python with that version (and numpy below 2) that prints them anew.
"""

from __future__ import annotations

import argparse
import csv
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from covp.accel_backends.systolic.backend import Systolic
from covp.accelerator.partition import partition
from covp.chip.platform_file import load_platform
from covp.evaluation import Sample, build, run
from covp.graph.models import load_model
from covp.graph.passes import run_passes
from covp.graph.pattern import Match
from covp.hardware.job import JobValues

MODELS = ("toycar", "kws", "resnet", "vww")
FLOWS = {"weights": "ws", "outputs": "os", "inputs": "is"}
FILE = Path(__file__).with_name("scale_sim.csv")
IDEAL = "scratchpad=16777216,accumulators=16777216,banks=0,bytes_per_cycle=1024"
"""SCALE-Sim's own cycles are those without waiting for memory."""
CONFIG = """[general]
run_name = run
[architecture_presets]
ArrayHeight: {rows}
ArrayWidth: {columns}
IfmapSramSzkB: 1024
FilterSramSzkB: 1024
OfmapSramSzkB: 1024
IfmapOffset: 0
FilterOffset: 10000000
OfmapOffset: 20000000
Bandwidth : 10
Dataflow : {flow}
MemoryBanks: 1
ReadRequestBuffer: 32
WriteRequestBuffer: 32
[layout]
IfmapCustomLayout: False
IfmapSRAMBankBandwidth: 10
IfmapSRAMBankNum: 10
IfmapSRAMBankPort: 2
FilterCustomLayout: False
FilterSRAMBankBandwidth: 10
FilterSRAMBankNum: 10
FilterSRAMBankPort: 2
[sparsity]
SparsitySupport : false
SparseRep : ellpack_block
OptimizedMapping : false
BlockSize : 8
RandomNumberGeneratorSeed : 40
[run_presets]
InterfaceBandwidth: CALC
UseRamulatorTrace: False
"""
SCRIPT = """
import sys
from scalesim.scale_sim import scalesim
scalesim(save_disk_space=True, verbose=False, config="c.cfg", topology="t.csv", layout="l.csv",
         input_type_gemm=True).run_scale(top_path=".")
"""


def product(match: Match) -> tuple[int, int, int]:
    """Return pixels, channels and depth of a layer as a matrix product."""
    weights = match.op.input(1)
    channels = weights.shape[0]
    return match.op.output.size // channels, channels, weights.size // channels


def matches(model: str, unit: Systolic) -> Iterator[Match]:
    """Yield the layers of a model that the unit gets."""
    for one in partition(run_passes(load_model(model)), [unit]).placements:
        if one.match is not None:
            yield one.match


def job_of(unit: Systolic, match: Match) -> JobValues:
    """Return the numbers and the commands of a layer's job."""
    given = unit.registers(unit.layer(match))
    return JobValues(**{part.name: given[part.name] for part in unit.job.image})


def run_scale_sim(python: str) -> None:
    """Write the file anew: the distinct rows that it has, by SCALE-Sim itself."""
    with FILE.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    groups: dict[tuple[str, str, str], list[dict[str, str]]] = {}
    for row in rows:
        groups.setdefault((row["dataflow"], row["rows"], row["columns"]), []).append(row)
    for (flow, height, width), own in groups.items():
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder)
            text = CONFIG.format(rows=height, columns=width, flow=flow)
            (place / "c.cfg").write_text(text)
            layers = [
                f"l{n},{row['pixels']},{row['channels']},{row['depth']},"
                for n, row in enumerate(own)
            ]
            (place / "t.csv").write_text("\n".join(["Layer,M,N,K,", *layers, ""]))
            names = [f"l{n}," for n in range(len(own))]
            (place / "l.csv").write_text("\n".join(["Layer,", *names, ""]))
            subprocess.run([python, "-c", SCRIPT], cwd=place, check=True, capture_output=True)
            report = next(place.rglob("COMPUTE_REPORT.csv"))
            with report.open(encoding="utf-8") as file:
                for row, found in zip(own, list(csv.reader(file))[1:], strict=True):
                    row["cycles"] = str(int(float(found[2])))
    with FILE.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def compare_with_scale_sim(models: list[str]) -> None:
    with FILE.open(encoding="utf-8") as file:
        known = {
            (row["dataflow"], int(row["pixels"]), int(row["channels"]), int(row["depth"])): row
            for row in csv.DictReader(file)
            if (row["rows"], row["columns"]) == ("16", "16")
        }
    print("| model | dataflow | layers | SCALE-Sim | covp | off | worst layer |")
    print("|---|---|---:|---:|---:|---:|---:|")
    for model in models:
        for flow, short in FLOWS.items():
            unit = Systolic(
                dict(p.split("=") for p in f"preload=no,dataflow={flow},{IDEAL}".split(","))
            )
            ours, theirs, worst, layers = 0, 0, 0.0, 0
            for match in matches(model, unit):
                key = (short, *product(match))
                if key not in known or match.op.kind.startswith("DEPTHWISE"):
                    continue
                reference, found = (
                    int(known[key]["cycles"]) + 1,
                    unit.engine_time(job_of(unit, match)).array,
                )
                ours, theirs, layers = ours + found, theirs + reference, layers + 1
                worst = max(worst, abs(found / reference - 1))
            print(
                f"| {model} | {flow} | {layers} | {theirs:,} | {ours:,} | {ours / theirs - 1:+.2%} "
                f"| {worst:.2%} |"
            )


WAYS = (
    ("", "as it is: 16 x 16, 64 KiB"),
    ("preload=no", "one block after the other"),
    ("buffers=1", "one tile after the other"),
    ("banks=1", "one bank"),
    ("bytes_per_cycle=16", "16 bytes a cycle"),
    ("bytes_per_cycle=16,arrays=2", "16 bytes a cycle, two arrays"),
    ("bytes_per_cycle=16,arrays=4", "16 bytes a cycle, four arrays"),
    ("scratchpad=4096,accumulators=4096", "4 KiB each"),
    ("weight_memory=65536", "weights stay, 64 KiB for them"),
    ("weight_memory=1048576", "weights stay, 1 MiB for them"),
)


def show_overlap(models: list[str]) -> None:
    print("\nCycles of the unit in all layers of a model, by the unit:\n")
    print("| unit | " + " | ".join(models) + " |")
    print("|---|" + "---:|" * len(models))
    for text, what in WAYS:
        cells = []
        for model in models:
            unit = Systolic(dict(part.split("=") for part in text.split(",") if part))
            own = list(matches(model, unit))
            planned = unit.for_layers(own)
            cells.append(f"{sum(planned.estimate(match) or 0 for match in own):,}")
        print(f"| {what} | {' | '.join(cells)} |")


def show_speed() -> None:
    """Print how long commands take to simulate: toycar in small tiles."""
    print(
        "\n| simulated: toycar in tiles | commands | of the largest layer | a command | inference |"
    )
    print("|---|---:|---:|---:|---:|")
    for size in (16, 4):
        spec = f"tile_channels={size},tile_depth={size}"
        unit = Systolic(dict(part.split("=") for part in spec.split(",")))
        jobs = [job_of(unit, match) for match in matches("toycar", unit)]
        counts = [len(unit.stream(job).commands) for job in jobs]
        began = time.perf_counter()
        for job in jobs:
            unit.engine_time(job)
            operands = [np.zeros(job.INPUT_ELEMENTS, np.int8), job.WEIGHTS.ravel()]
            unit.stream(job).execute(operands, (0, 0))
        each = 1e3 * (time.perf_counter() - began) / sum(counts)
        made = build("toycar", load_platform("riscv32"), [f"systolic:{spec}"])
        sample = Sample.random(made.graph, 0)
        run(made, sample, check="none")
        began = time.perf_counter()
        run(made, sample, check="none")
        seconds = time.perf_counter() - began
        counted = f"{sum(counts):,} | {max(counts):,}"
        print(f"| {size} x {size} | {counted} | in {each:.5f} ms | in {seconds:.2f} s |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", nargs="+", default=list(MODELS))
    parser.add_argument("--scale-sim", help="a Python with scalesim 3.0.0")
    given = parser.parse_args()
    if given.scale_sim:
        run_scale_sim(given.scale_sim)
    compare_with_scale_sim(given.models)
    show_overlap(given.models)
    show_speed()


if __name__ == "__main__":
    main()
