"""The microTVM thesis' experiment: a CIFAR-10 CNN and two single operators, untuned and tuned.

    python benchmarks/thesis.py [--trials 48] [--jobs 2] [--cost cycles]

The operators are the first and the third convolution of the zoo's `cifar10`, so that one search
serves both. Without SIMD is the same core without its DSP instructions: neither the kernels nor
the compiler can use one then, the virtual device would fault. Every search starts from nothing, in
an empty cache. Beside them stands what others measured for this network on a real STM32F746. Exit
status 1 where an output does not match the reference.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

import covp
from covp.building.tune.records import Records, layer_key
from covp.building.tune.tuner import Options, Progress, tune
from covp.chip.platform_file import platform_names
from covp.codegen.schedule import Schedule
from covp.evaluation import Runner, Sample, build
from covp.graph.graph import Graph, Op
from covp.runtime.devices import DEVICES
from covp.runtime.profile import Profile

NETWORK, BOARD, TOOLCHAIN = "cifar10", "cortex-m7", "zig"
FIRST, THIRD = "conv 5x5x3x32, 32x32", "conv 5x5x32x64, 8x8"
OPERATORS = {FIRST: 0, THIRD: 4}
"""Name to index in the network."""
REPEATS = 20
Choice = Callable[[Op], "Schedule | None"]


class Anchor(NamedTuple):
    """What others measured on an STM32F746, Cortex-M7, and the row of ours it stands beside."""

    workload: str
    runtime: str
    milliseconds: float
    simd: str = "with"
    tuned: bool = True


BOARD_HZ = 216_000_000
"""The clock of CMSIS-NN's paper; of microTVM's evaluation it is assumed."""
# areusch/microtvm-blogpost-eval 9c5043cd: graph.png, and autotune-logs/eval for the operators, of
# which the first has 4 input channels (3,276,800 MACs instead of 2,457,600). CMSIS-NN's paper:
# arXiv 1801.06601, 8-bit fixed point without TFLite's quantization.
ANCHORS = (
    Anchor(FIRST, "microTVM, tuned, SIMD, 4 channels", 36.338),
    Anchor(THIRD, "microTVM, tuned, SIMD", 38.782),
    Anchor(NETWORK, "microTVM, untuned", 294, "without", False),
    Anchor(NETWORK, "microTVM, tuned, SIMD", 157),
    Anchor(NETWORK, "CMSIS-NN, TFLite's quantization", 136),
    Anchor(NETWORK, "CMSIS-NN, its paper", 99.1),
)


@dataclass(frozen=True)
class Target:
    """A core to measure on."""

    name: str
    simd: str
    platform: covp.Platform
    device: str = "virtual"


class Row(NamedTuple):
    """One workload, measured."""

    target: Target
    workload: str
    tuned: bool
    profile: Profile
    exact: bool

    @property
    def cost(self) -> float:
        """Cycles, or seconds where the device knows only those."""
        return self.profile.cycles or self.profile.seconds or float("nan")


def targets() -> Iterator[Target]:
    """Those of the thesis, as far as they are there."""
    board = covp.load_platform(BOARD)
    plain = msgspec.structs.replace(board, core_name=f"{board.core_name}-nodsp")
    yield Target(board.name, "without", plain)
    yield Target(board.name, "with", board)
    yield Target("riscv32", "none", covp.load_platform("riscv32"))
    if "host" in DEVICES and "host" in platform_names():
        yield Target("host", "none", covp.load_platform("host"), "host")


def workloads() -> dict[str, Graph]:
    """The single operators and the network."""
    network = covp.load_model(NETWORK)
    graphs = {}
    for name, index in OPERATORS.items():
        op = network.ops[index]
        graphs[name] = Graph(f"operator_{index}", [op.input(0)], [op.output], [op])
    return {**graphs, NETWORK: network}


def search(target: Target, options: Options) -> dict[str, Schedule]:
    """The best schedule of each layer of the network by `layer_key`."""
    tried = 0

    def count(progress: Progress) -> None:
        nonlocal tried
        tried += 1
        if sys.stderr.isatty():
            print(f"\r{target.name}: {tried} candidates", end="", file=sys.stderr, flush=True)

    start = time.monotonic()
    results = tune(
        covp.load_model(NETWORK), target.platform, TOOLCHAIN, options, count, Records([])
    )
    seconds = time.monotonic() - start
    space = sum(result.space for result in results)
    print(
        f"{target.name}, {target.platform.core.name}: {tried} of {space} candidates in "
        f"{seconds:.0f} s"
    )
    return {layer_key(r.op): Schedule.parse(r.best.schedule) for r in results if r.best is not None}


def measure(target: Target, workload: str, graph: Graph, choice: Choice | None) -> Row:
    """One inference on random inputs; where time is measured, the shortest of `REPEATS`."""
    made = build(graph, target.platform, toolchain=TOOLCHAIN, schedules=choice)
    sample = Sample.random(made.graph)
    with Runner(made, target.device) as runner:
        results = [runner.run(sample)]
        for _ in range(0 if results[0].profile.measured is None else REPEATS - 1):
            results.append(runner.run(sample))
    profile = min((result.profile for result in results), key=lambda p: p.measured or 0.0)
    exact = all(result.matches_reference for result in results)
    return Row(target, workload, choice is not None, profile, exact)


def measure_all(target: Target, graphs: dict[str, Graph], options: Options) -> list[Row]:
    """Every workload, untuned and tuned."""
    found = search(target, options)
    choices: tuple[Choice | None, ...] = (None, lambda op: found.get(layer_key(op)))
    return [
        measure(target, name, graph, choice) for name, graph in graphs.items() for choice in choices
    ]


def cell(value: float | None, scale: float = 1, digits: int = 0) -> str:
    """A number for the table; "-" where the device cannot tell."""
    return "-" if value is None else f"{value * scale:,.{digits}f}"


def print_ours(rows: list[Row]) -> None:
    """All rows; the last column is how often faster than the first of the platform and workload."""
    print(
        f"\n{'workload':21} {'platform':10} {'SIMD':8} {'':8} {'instructions':>13} "
        f"{'est. cycles':>13} {'ms':>8} faster  bit-exact"
    )
    first: dict[tuple[str, str], Row] = {}
    names = [*OPERATORS, NETWORK]
    for row in sorted(rows, key=lambda row: names.index(row.workload)):
        profile, target = row.profile, row.target
        base = first.setdefault((row.workload, target.name), row)
        print(
            f"{row.workload:21} {target.name:10} {target.simd:8} "
            f"{'tuned' if row.tuned else 'untuned':8} {cell(profile.instructions):>13} "
            f"{cell(profile.cycles):>13} {cell(profile.seconds, 1000, 2):>8} "
            f"{base.cost / row.cost:5.2f}x  {'yes' if row.exact else 'NO'}"
        )
    if not any(row.target.device == "host" for row in rows):
        print("host: rows are missing, this covp has no device 'host' with a platform 'host'")


def print_others(rows: list[Row]) -> None:
    """Measured by others, beside our estimate of the same kind."""
    ours = {
        (row.workload, row.target.simd, row.tuned): row.profile.cycles
        for row in rows
        if row.target.name == BOARD
    }
    print(
        f"\n{'on a real STM32F746':21} {'':32} {'ms':>6} {'cycles':>11} {'ours, est.':>11}  ratio"
    )
    for anchor in ANCHORS:
        cycles = anchor.milliseconds / 1000 * BOARD_HZ
        estimate = ours[anchor.workload, anchor.simd, anchor.tuned]
        assert estimate is not None
        print(
            f"{anchor.workload:21} {anchor.runtime:32} {anchor.milliseconds:6.1f} "
            f"{cycles:11,.0f} {estimate:11,} {cycles / estimate:5.2f}x"
        )
    print(
        "Theirs are measured; ours are estimates without flash wait states and cache misses. "
        "Untuned stands\nbeside untuned without SIMD, the others beside tuned with SIMD. The "
        "thesis' own figures are not known\nhere; these are of the evaluation that came with "
        "microTVM, and of CMSIS-NN's paper."
    )


def main() -> int:
    """Search, measure, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--trials", type=int, default=48, help="for each layer and core at most")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--cost", choices=["cycles", "instructions"], default="cycles")
    wanted = parser.parse_args()
    graphs = workloads()
    rows = []
    with tempfile.TemporaryDirectory(prefix="covp-thesis-") as folder:
        os.environ["COVP_CACHE_DIR"] = folder
        for target in targets():
            options = Options(
                trials=wanted.trials, cost=wanted.cost, jobs=wanted.jobs, device=target.device
            )
            rows += measure_all(target, graphs, options)
        print_ours(rows)
        print_others(rows)
    return int(not all(row.exact for row in rows))


if __name__ == "__main__":
    sys.exit(main())
