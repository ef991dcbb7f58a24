"""How fast the tuner gets to the best known schedules: resnet on RV32IMC, from nothing.

    python benchmarks/tuning.py [--seconds 280] [--trials 48] [--jobs 2]

Searches every distinct layer with no trial known before, in an empty cache, and prints for each
layer the instructions of the default, of what was found and of the best shipped record. Exits with
1 where the sum is more than 10 % above the shipped records' or the search took 5 minutes.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time

import covp
from covp.building.tune.records import Records
from covp.building.tune.tuner import Options, Progress, tune
from covp.compilers.toolchain import get_toolchain

MODEL, PLATFORM, TOOLCHAIN = "resnet", "riscv32", "zig"
LIMIT_SECONDS, LIMIT_RATIO = 300.0, 1.10


def main() -> int:
    """Search, print, and say by the exit status whether the limits hold."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=280.0, help="of search")
    parser.add_argument("--trials", type=int, default=48, help="for each layer at most")
    parser.add_argument("--jobs", type=int, default=2)
    wanted = parser.parse_args()
    platform = covp.load_platform(PLATFORM)
    compiler = get_toolchain(TOOLCHAIN, platform.core).version
    shipped = Records.available()
    model = covp.load_model(MODEL)
    tried = 0

    def count(progress: Progress) -> None:
        nonlocal tried
        tried += 1

    with tempfile.TemporaryDirectory(prefix="covp-tuning-") as folder:
        os.environ["COVP_CACHE_DIR"] = folder
        start = time.monotonic()
        options = Options(trials=wanted.trials, seconds=wanted.seconds, jobs=wanted.jobs)
        results = tune(model, platform, TOOLCHAIN, options, count, Records([]))
        seconds = time.monotonic() - start
    sums = [0, 0, 0]
    print(
        f"{'layer':>5} {'operator':16} {'default':>12} {'found':>12} {'shipped':>12}  ratio  tried"
    )
    for result in results:
        best = shipped.find(result.op, platform.core, compiler)
        if result.best is None or result.default is None or best is None:
            print(f"{result.op.index:5} {result.op.kind:16} no shipped record, or no time for it")
            continue
        row = [t.instructions or 0 for t in (result.default, result.best, best)]
        sums = [total + value for total, value in zip(sums, row, strict=True)]
        print(
            f"{result.op.index:5} {result.op.kind:16} {row[0]:12,} {row[1]:12,} {row[2]:12,}  "
            f"{row[1] / row[2]:.3f}  {result.tried}/{result.space}"
        )
    ratio = sums[1] / sums[2] if sums[2] else float("inf")
    print(f"{'':5} {'sum':16} {sums[0]:12,} {sums[1]:12,} {sums[2]:12,}  {ratio:.3f}")
    print(f"{tried} candidates in {seconds:.0f} s, {tried / seconds:.1f} a second")
    return int(ratio > LIMIT_RATIO or seconds > LIMIT_SECONDS)


if __name__ == "__main__":
    sys.exit(main())
