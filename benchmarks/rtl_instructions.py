"""Custom instructions in C and in Verilog, on an emulated core and on the core's RTL.

    python benchmarks/rtl_instructions.py [--models kws toycar resnet]

The unit is the accelerator cfu, on vexriscv-cfu. "off" are the cycles beside those of the last row,
where core and unit are both RTL.
"""

from __future__ import annotations

import argparse

from rtl_units import measure

WAYS = (("C", "cfu", "virtual"), ("RTL", "cfu:rtl=yes", "virtual"),
        ("C", "cfu", "rtl"), ("RTL", "cfu:rtl=yes", "rtl"))  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", nargs="+", default=["toycar", "kws", "resnet"])
    given = parser.parse_args()
    print("| model | unit | core | cycles | off | same bits | simulated |")
    print("|---|---|---|---:|---:|---|---|")
    for model in given.models:
        found = [(way, *measure(model, "vexriscv-cfu", *way[1:])) for way in WAYS]
        last = found[-1][1].profile.cycles or 1
        for (what, _, device), result, seconds in found:
            cycles = result.profile.cycles or 0
            core = "emulated" if device == "virtual" else "RTL"
            same = "yes" if result.matches_reference else "NO"
            print(
                f"| {model} | {what} | {core} | {cycles:,} | {cycles / last - 1:+.2%} "
                f"| {same} | in {seconds:.1f} s |",
                flush=True,
            )


if __name__ == "__main__":
    main()
