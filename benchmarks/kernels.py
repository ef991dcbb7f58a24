"""Every layer of the MLPerf Tiny models beside the best of the other runtimes on the same core.

    python benchmarks/kernels.py [--models resnet kws] [--optimize balanced] [--rows 40]
                                 [--json FILE]

The anchor of a layer is the least that TFLM with the vendor's kernels or TinyEngine (which is not
bit-exact) needs for it; see kernel_anchors.json. Ours is the better of zig and GCC where that is
installed. Prints the ratios, worst first; exit status 1 where one is above 1.0. Needs the official
models: with stand-ins nothing is comparable.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from pathlib import Path
from typing import NamedTuple, get_args

from document import write_document

import covp
from covp.base.request import Objective
from covp.evaluation import build, recorded_schedules, run
from covp.graph import zoo

MODELS = ["toycar", "resnet", "kws", "vww", "sww"]
PLATFORMS = ["riscv32", "cortex-m4", "cortex-m7"]
GCC = {"arm": "arm-none-eabi-gcc", "riscv": "riscv64-unknown-elf-gcc"}
ANCHORS = json.loads(Path(__file__).with_name("kernel_anchors.json").read_text())["cores"]


class Row(NamedTuple):
    """One layer on one core."""

    ratio: float
    core: str
    model: str
    layer: str
    ours: int
    by: str
    anchor: int
    runtime: str


def rows_of(model: str, platform_name: str, optimize: Objective) -> list[Row]:
    """The layers that have an anchor."""
    platform = covp.load_platform(platform_name)
    core = platform.core
    best: dict[int, tuple[int, str, str]] = {}
    for toolchain in ("zig", "gcc"):
        if toolchain == "gcc" and shutil.which(GCC[core.architecture]) is None:
            continue
        schedules = recorded_schedules(platform, toolchain=toolchain, optimize=optimize)
        result = run(build(model, platform, toolchain=toolchain, schedules=schedules))
        for entry in result.profile.layers:
            found = entry.instructions or 0, result.toolchain, entry.layer.op
            best[entry.layer.index] = min(best.get(entry.layer.index, found), found)
    rows = []
    for index, (op, _, instructions, runtime) in ANCHORS[core.name][model].items():
        if int(index) not in best:
            continue  # RESHAPE: no code with us
        ours, by, kind = best[int(index)]
        assert kind == op, f"{model}: layer {index} is {kind}, the anchor's is {op}"
        name = f"{index} {op}"
        rows.append(
            Row(ours / instructions, core.name, model, name, ours, by, instructions, runtime)
        )
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--models", nargs="+", default=MODELS)
    parser.add_argument("--platforms", nargs="+", default=PLATFORMS)
    parser.add_argument("--optimize", choices=get_args(Objective), default="instructions")
    parser.add_argument("--rows", type=int, default=30, help="how many to print, worst first")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all rows there as well")
    options = parser.parse_args()
    synthetic = [name for name in options.models if zoo.find(name).source != "official"]
    if synthetic:
        print(f"no official file of {', '.join(synthetic)}; run `covp models fetch`")
        return 1
    rows = [
        row
        for model in options.models
        for platform in options.platforms
        for row in rows_of(model, platform, options.optimize)
    ]
    print("ratio core        model   layer                        ours by         anchor runtime")
    for row in sorted(rows, reverse=True)[: options.rows]:
        print(
            f"{row.ratio:5.2f} {row.core:11} {row.model:7} {row.layer:22} {row.ours:11,} "
            f"{row.by.split()[0]:4} {row.anchor:11,} {row.runtime}"
        )
    above = sum(row.ratio > 1.0 for row in rows)
    if options.json:
        write_document(options.json, [row._asdict() for row in sorted(rows, reverse=True)])
    print(f"{len(rows)} layers, {above} above the best anchor")
    return 1 if above else 0


if __name__ == "__main__":
    sys.exit(main())
