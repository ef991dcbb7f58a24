"""int16 activations beside int8: the same layers on emulated cores, in instructions.

    python benchmarks/int16.py [--platforms cortex-m4 riscv32] [--search] [--json FILE]

Every output is compared with the reference. Schedules are those that a build takes without a
search; with --search the best of all schedules of either type (some minutes). The limit that the
project sets itself is 1.4 for convolutions on Cortex-M4.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from document import write_document
from single_layers import LAYERS, best

from covp.chip.platform_file import load_platform


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--platforms", nargs="+", default=["cortex-m4", "riscv32"])
    parser.add_argument("--search", action="store_true", help="the best schedule of either type")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows there as well")
    options = parser.parse_args()
    rows = []
    print("platform   layer                             int8      int16  ratio  schedules")
    for name in options.platforms:
        platform = load_platform(name)
        for title, case in LAYERS.items():
            int8 = best(platform, case.graph(), options.search)
            int16 = best(platform, replace(case, dtype="int16").graph(), options.search)
            ratio = int16.instructions / int8.instructions
            print(
                f"{name:10} {title:28} {int8.instructions:10,} {int16.instructions:10,}  "
                f"{ratio:5.2f}  {int8.schedule} | {int16.schedule}",
                flush=True,
            )
            row = {"platform": name, "layer": title, "ratio": round(ratio, 3)}
            rows.append(row | {"int8": int8._asdict(), "int16": int16._asdict()})
    if options.json:
        write_document(options.json, rows)


if __name__ == "__main__":
    main()
