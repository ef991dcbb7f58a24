"""int4 weights beside int8 ones: the same layers on emulated cores, instructions and flash.

    python benchmarks/int4.py [--platforms cortex-m4 riscv32] [--search] [--json FILE]

The weights of both forms are the same numbers, from -8 to 7; with int4 flash holds two in a byte.
Every output is compared with the reference. Flash is code and constants of the layer. Schedules are
those that a build takes without a search; with --search the best of all schedules of either form
(some minutes).
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from document import write_document
from single_layers import LAYERS, best

from covp.chip.platform_file import load_platform
from covp.graph.graph import Graph
from covp.testing import ConvCase


def small_weights(case: ConvCase, bits: int | None) -> Graph:
    """A layer with weights that fit int4."""
    graph = case.graph()
    weights = graph.ops[0].input(1)
    weights.data = np.random.default_rng(1).integers(-8, 8, weights.shape).astype(np.int8)
    weights.bits = bits
    return graph


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--platforms", nargs="+", default=["cortex-m4", "riscv32"])
    parser.add_argument("--search", action="store_true", help="the best schedule of either form")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows there as well")
    options = parser.parse_args()
    rows = []
    print(
        "platform   layer                        instructions: int8       int4 ratio"
        "   flash: int8    int4 ratio  schedules"
    )
    for name in options.platforms:
        platform = load_platform(name)
        for title, case in LAYERS.items():
            int8 = best(platform, small_weights(case, None), options.search)
            int4 = best(platform, small_weights(case, 4), options.search)
            print(
                f"{name:10} {title:28}     {int8.instructions:10,} {int4.instructions:10,} "
                f"{int4.instructions / int8.instructions:5.2f}    {int8.flash:7,} {int4.flash:7,} "
                f"{int4.flash / int8.flash:5.2f}  {int8.schedule} | {int4.schedule}",
                flush=True,
            )
            row = {"platform": name, "layer": title}
            rows.append(row | {"int8": int8._asdict(), "int4": int4._asdict()})
    if options.json:
        write_document(options.json, rows)


if __name__ == "__main__":
    main()
