"""int16 activations beside int8: the same layers on emulated cores, in instructions.

    python benchmarks/int16.py [--platforms stm32l4r5 riscv32] [--search] [--json FILE]

Every output is compared with the reference. `default` is the schedule that a build takes without
a search; with --search the best of all schedules of either type is taken (some minutes). The
limit that the project sets itself is 1.4 for convolutions on Cortex-M4.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from document import write_document

from covp.codegen.compile import compile as compile_model
from covp.codegen.layer import KernelRequest, schedules
from covp.codegen.schedule import Schedule
from covp.graph.graph import Graph
from covp.graph.random_inputs import random_inputs
from covp.graph.reference import run_reference
from covp.platform_file import Platform, load_platform
from covp.runtime.session import Session
from covp.testing import ConvCase

LAYERS = {
    "conv 3x3, 16 to 16, 32x32": ConvCase(
        "CONV_2D", size=(32, 32), channels=(16, 16), kernel=(3, 3), same=True, bias=True
    ),
    "conv 3x3, 64 to 64, 8x8": ConvCase(
        "CONV_2D", size=(8, 8), channels=(64, 64), kernel=(3, 3), same=True, bias=True
    ),
    "conv 3x3, 3 to 16, 32x32": ConvCase(
        "CONV_2D", size=(32, 32), channels=(3, 16), kernel=(3, 3), same=True, bias=True
    ),
    "conv 1x1, 64 to 64, 25x5": ConvCase(
        "CONV_2D", size=(25, 5), channels=(64, 64), kernel=(1, 1), bias=True
    ),
    "depthwise 3x3, 64, 25x5": ConvCase(
        "DEPTHWISE_CONV_2D", size=(25, 5), channels=(64, 64), kernel=(3, 3), same=True, bias=True
    ),
    "fully connected, 640 to 128": ConvCase("FULLY_CONNECTED", channels=(640, 128), bias=True),
}


class Row(NamedTuple):
    """One layer on one core, in instructions of one inference."""

    platform: str
    layer: str
    int8: int
    int16: int
    schedule8: str
    schedule16: str

    @property
    def ratio(self) -> float:
        return self.int16 / self.int8


def measure(platform: Platform, graph: Graph, schedule: Schedule | None) -> tuple[int, str]:
    """Instructions of a layer and its schedule; the output is checked."""
    choice = None if schedule is None else (lambda op: schedule)
    program = compile_model(graph, platform, schedules=choice)
    inputs = random_inputs(graph.inputs, 1)
    with Session(platform) as session:
        loaded = session.load(program)
        output = loaded.run(*inputs)
        (layer,) = session.profile().layers
    wanted = run_reference(graph, inputs)[0]
    assert np.array_equal(output, wanted), f"{graph.name} differs from the reference"
    return layer.instructions or 0, layer.schedule


def best(platform: Platform, graph: Graph, search: bool) -> tuple[int, str]:
    """The default, or the best of all schedules."""
    if not search:
        return measure(platform, graph, None)
    request = KernelRequest(graph.ops[0], platform.core, "layer")
    return min(measure(platform, graph, schedule) for schedule in schedules(request))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--platforms", nargs="+", default=["stm32l4r5", "riscv32"])
    parser.add_argument("--search", action="store_true", help="the best schedule of either type")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows there as well")
    options = parser.parse_args()
    rows = []
    print("platform   layer                             int8      int16  ratio  schedules")
    for name in options.platforms:
        platform = load_platform(name)
        for title, case in LAYERS.items():
            int8, first = best(platform, case.graph(), options.search)
            int16, second = best(platform, replace(case, dtype="int16").graph(), options.search)
            row = Row(name, title, int8, int16, first, second)
            rows.append(row)
            print(
                f"{name:10} {title:28} {int8:10,} {int16:10,}  {row.ratio:5.2f}  "
                f"{first} | {second}",
                flush=True,
            )
    if options.json:
        write_document(options.json, [row._asdict() for row in rows])


if __name__ == "__main__":
    main()
