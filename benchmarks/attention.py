"""Tiled attention beside its operators one by one: instructions, cycles and memory.

    python benchmarks/attention.py [--tokens 196] [--heads 4] [--platforms cortex-m4 riscv32]

The int8 transformer of examples/transformer_kws.py: the attention alone (projections included), the
block, the whole network. "plain" is the same graph without the pass that fuses attention: the
operators' own kernels, the scores of all heads in the arena. Outputs are equal to the bit, which is
checked. Exit status 1 where they are not.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import covp
import covp.graph.passes
from covp.graph.graph import Graph

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
from transformer_kws import build  # the script has no package


class Cost(NamedTuple):
    """Of one inference."""

    instructions: int
    cycles: int
    arena: int
    output: NDArray[Any]


def plain(graph: Graph, platform: str) -> covp.Program:
    """Compiled without the fusion of attention."""
    before = covp.graph.passes.PASSES
    kept = tuple(run for run in before if run.__name__ != "fuse_attention")
    covp.graph.passes.PASSES = kept
    try:
        return covp.compile(graph, platform)
    finally:
        covp.graph.passes.PASSES = before


def cost(program: covp.Program, platform: str, x: NDArray[Any]) -> Cost:
    """Run once."""
    with covp.Session(platform) as session:
        output = session.load(program).run(x)
        profile = session.profile()
    return Cost(profile.instructions or 0, profile.cycles or 0, program.arena_bytes, output)


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokens", type=int, default=196)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--platforms", nargs="+", default=["cortex-m4", "riscv32"])
    given = parser.parse_args()
    print(f"{given.tokens} tokens of 32 numbers, {given.heads} heads")
    print(f"{'':11}{'platform':11}{'form':7}{'instructions':>13}{'cycles':>12}{'arena':>9}")
    status = 0
    for part in ("attention", "block", ""):
        graph = build(given.tokens, given.heads, only=part)
        x = np.random.default_rng(1).integers(-128, 128, graph.inputs[0].shape, dtype=np.int8)
        for platform in given.platforms:
            costs = [cost(make(graph, platform), platform, x) for make in (plain, covp.compile)]
            for form, found in zip(("plain", "tiled"), costs, strict=True):
                print(f"{part or 'network':11}{platform:11}{form:7}", end="")
                print(f"{found.instructions:>13,}{found.cycles:>12,}{found.arena:>9,}")
            apart, tiled = costs
            print(f"{'':29}cycles {apart.cycles / tiled.cycles:.2f} times fewer,", end=" ")
            print(f"memory {apart.arena / tiled.arena:.2f} times less")
            status |= not np.array_equal(apart.output, tiled.output)
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
