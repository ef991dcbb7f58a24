"""What the checks for undefined behaviour cost: instructions and flash of models, without and with.

    python benchmarks/ubsan.py [--models kws toycar] [--platforms cortex-m4 riscv32]
                               [--toolchains zig gcc] [--json FILE]

"seconds" is the host's time for the inference with checks. Exit status 1 where something undefined
is found, or where an output differs.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from document import write_document
from numpy.typing import NDArray

import covp
from covp.codegen.program import Program
from covp.graph.models import load_model
from covp.graph.random_inputs import random_inputs


@dataclass(frozen=True)
class Row:
    """One model on one platform with one compiler."""

    model: str
    platform: str
    toolchain: str
    instructions: int
    checked_instructions: int
    flash_bytes: int
    checked_flash_bytes: int
    seconds: float
    same: bool


def measure(model: str, platform: str, toolchain: str) -> Row:
    """One row. Raises DeviceFault for a finding."""
    graph = load_model(model)
    inputs = random_inputs(graph.inputs, 1)
    program = covp.compile(graph, platform)
    plain, plain_flash, _, expected = _run(program, toolchain, inputs, ubsan=False)
    checked, flash, seconds, found = _run(program, toolchain, inputs, ubsan=True)
    return Row(model, platform, toolchain, plain, checked, plain_flash, flash, seconds,
               bool(np.array_equal(found, expected)))  # fmt: skip


def _run(
    program: Program, toolchain: str, inputs: list[NDArray[Any]], ubsan: bool
) -> tuple[int, int, float, NDArray[Any]]:
    with covp.Session(program.platform, toolchain=toolchain, ubsan=ubsan) as session:
        graph = session.load(program)
        start = time.perf_counter()
        output = graph.run(*inputs)
        seconds = time.perf_counter() - start
        instructions = graph.profile().instructions
        assert instructions is not None
        return instructions, session.memory().flash_bytes, seconds, output


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", default=["kws", "toycar"])
    parser.add_argument("--platforms", nargs="+", default=["cortex-m4", "riscv32"])
    parser.add_argument("--toolchains", nargs="+", default=["zig", "gcc"])
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows there as well")
    options = parser.parse_args()
    print(f"{'model':8}{'platform':14}{'':5}{'instructions':>13}{'checked':>12}{'ratio':>7}"
          f"{'flash':>9}{'checked':>9}{'seconds':>9}")  # fmt: skip
    rows = []
    for model in options.models:
        for platform in options.platforms:
            for toolchain in options.toolchains:
                row = measure(model, platform, toolchain)
                rows.append(row)
                ratio = row.checked_instructions / row.instructions
                print(f"{model:8}{platform:14}{toolchain:5}{row.instructions:13,}"
                      f"{row.checked_instructions:12,}{ratio:7.2f}{row.flash_bytes:9,}"
                      f"{row.checked_flash_bytes:9,}{row.seconds:9.2f}")  # fmt: skip
    if options.json:
        write_document(options.json, [asdict(row) for row in rows])
    return 0 if all(row.same for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
