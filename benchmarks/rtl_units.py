"""A unit in Verilog beside its model in Python, on an emulated core and on the core's RTL.

    python benchmarks/rtl_units.py [--models kws resnet] [--platform ibex]

The unit is examples/rtl_unit: convolutions, four multipliers. One row for each way to run it; "off"
are the cycles beside those of the last row, where core and unit are both RTL.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from covp.chip.platform_file import load_platform
from covp.evaluation import Evaluation, Sample, build, run

UNIT = Path(__file__).parents[1] / "examples" / "rtl_unit" / "conv8.py"
WAYS = (
    ("model in Python", "", "virtual"),
    ("RTL, job by job", ":rtl=yes", "virtual"),
    ("RTL, exact", ":rtl=yes,rtl_mode=exact", "virtual"),
    ("RTL, job by job", ":rtl=yes", "rtl"),
    ("RTL, exact", ":rtl=yes,rtl_mode=exact", "rtl"),
)


def measure(model: str, platform: str, unit: str, device: str) -> tuple[Evaluation, float]:
    """Return a checked run, and the seconds of its second inference, when all is compiled."""
    made = build(model, load_platform(platform), [unit])
    sample = Sample.random(made.graph, 0)
    run(made, sample, device=device, check="none")
    began = time.perf_counter()
    run(made, sample, device=device, check="none")
    seconds = time.perf_counter() - began
    return run(made, sample, device=device, check="output"), seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", nargs="+", default=["kws", "resnet"])
    parser.add_argument("--platform", default="ibex")
    given = parser.parse_args()
    print("| model | unit | core | cycles | off | of the unit | same bits | simulated |")
    print("|---|---|---|---:|---:|---:|---|---|")
    for model in given.models:
        found = [(way, *measure(model, given.platform, f"{UNIT}{way[1]}", way[2])) for way in WAYS]
        last = found[-1][1].profile.cycles or 1
        for (what, _, device), result, seconds in found:
            cycles = result.profile.cycles or 0
            busy = sum(e.offload.compute for e in result.profile.layers if e.offload)
            core = "emulated" if device == "virtual" else "RTL"
            print(
                f"| {model} | {what} | {core} | {cycles:,} | {cycles / last - 1:+.2%} | {busy:,} "
                f"| {'yes' if result.matches_reference else 'NO'} | in {seconds:.1f} s |",
                flush=True,
            )


if __name__ == "__main__":
    main()
