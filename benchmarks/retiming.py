"""Retimed designs beside runs with the same parameters, and how many are retimed in a second.

    python benchmarks/retiming.py                       # all; a few minutes
    python benchmarks/retiming.py exact --sets 300      # random parameters against runs
    python benchmarks/retiming.py speed                 # a million designs of each model
    python benchmarks/retiming.py space                 # 61,952 designs of a soft core with a unit

Compared with: CFU-Playground's space (proj/dse_template/vizier_dse.py: seven switches, four branch
predictors, eleven sizes of each cache), of which each design is synthesized and simulated alone.
"""

from __future__ import annotations

import argparse
import itertools
import random
import tempfile
import time
from pathlib import Path

import numpy as np
import yaml

from covp.building.schedules import schedules_of
from covp.chip.platform_file import Platform, load_platform, parse_size
from covp.evaluation import Sample, build
from covp.evaluation.runner import Runner
from covp.evaluation.varied import SHAPE, vary_design
from covp.exploration.retiming import RunTrace, record, retime
from covp.exploration.retiming.run_trace import time_parameters

MODELS = ("kws", "resnet", "vww", "toycar")
SETS = (
    ("riscv32", ()),
    ("riscv32", ("gemm",)),
    ("riscv32", ("qconv2d:wait=sleep",)),
    ("cv32e40p", ("cfu",)),
    ("cv32e40p", ("a=gemm:wait=sleep", "b=vector")),
    ("cortex-m4", ("gemm:size=16",)),
    ("cortex-m4", ("qconv2d:wait=sleep",)),
    ("cortex-m0plus", ("a=gemm:size=4", "b=vector:wait=sleep")),
    ("nucleo-f746zg", ("a=gemm", "b=vector:wait=sleep")),
    ("nucleo-u575zi", ("gemm",)),
    ("raspberry-pi-pico", ("qconv2d:wait=sleep",)),
    ("nrf52840", ("a=gemm", "b=qconv2d")),
    ("esp32-c3", ("a=gemm:wait=sleep", "b=qconv2d")),
    ("vexriscv-full", ("cfu",)),
    ("nucleo-l4r5zi", ("a=gemm:wait=sleep", "b=vector")),
    ("stm32f407-discovery", ("qconv2d",)),
)
TIMINGS = {
    "arm": ("m0plus", "m3", "m4", "m7", "m33"),
    "riscv": ("rv32", "cv32e40p", "ibex", "ibex-small", "picorv32", "vexriscv-cfu", "e31", "serv"),
}
SPEED_WANTED, SPACE_WANTED = 5.0, 3.0
Value = int | float | str


def other_shapes(platform: Platform) -> dict[str, list[dict[str, int]]]:
    """Larger shapes of caches that do not read in advance, by name."""
    return {
        cache.name: [
            {"size": ways * parse_size(cache.size), "line": line, "ways": more * cache.ways}
            for line, ways, more in ((cache.line, 2, 1), (cache.line, 4, 2), (2 * cache.line, 4, 1))
            if line == cache.line or f"platform.{cache.name}.line" in time_parameters(platform)
        ]
        for cache in platform.caches
        if not cache.prefetch
    }


def drawn(
    chance: random.Random, trace: RunTrace, shapes: dict[str, list[dict[str, int]]]
) -> dict[str, Value]:
    """Random values of about half of the parameters."""
    timings = TIMINGS[trace.platform.core.isa.architecture]
    found: dict[str, Value] = {}
    for name, own in shapes.items():
        if chance.random() < 0.5:
            found |= {f"platform.{name}.{key}": value for key, value in chance.choice(own).items()}
    ends = tuple(f".{key}" for key in SHAPE)
    for name in sorted(trace.retimable - {"platform.core"}):
        if chance.random() < 0.5 or (name.startswith("platform.") and name.endswith(ends)):
            continue
        last = name.rpartition(".")[2]
        if last == "timing":
            found[name] = chance.choice(timings)
        elif last == "clock_hz":
            found[name] = chance.randrange(1, trace.platform.clock_hz + 1)
        elif last in ("contention", "clock_ratio"):
            found[name] = chance.choice([0.5, 1, 0.01 + 4 * chance.random()])
        elif last == "startup_cycles":
            found[name] = chance.randrange(3000)
        elif last.endswith("per_cycle"):
            found[name] = chance.choice([1, 4, 16, 64, chance.randrange(1, 300)])
        elif last.endswith("cycles"):
            found[name] = chance.randrange(1, 20)
        else:
            found[name] = chance.choice([0, 0, 1, 2, 5, chance.randrange(16)])
    return {name: found[name] for name in found if name in trace.retimable}


def compare_exactly(sets: int, models: tuple[str, ...]) -> None:
    """Print how many of so many random parameter sets are equal to a run, and what others say."""
    chance, equal, said, count = random.Random(1), 0, 0, 0
    cases = list(itertools.product(models, SETS))
    for number, (model, (platform, units)) in enumerate(cases):
        share = sets // len(cases) + (number < sets % len(cases))
        if not share:
            continue
        board = load_platform(platform)
        made = build(model, board, units, allow_slower=True, allow_unused=True)
        sample, schedules = Sample.random(made.graph), schedules_of(board, made.options)
        shapes = other_shapes(board)
        trace = record(made, sample, shapes)
        same = silent = 0
        for _ in range(share):
            values = drawn(chance, trace, shapes)
            other, backends = vary_design(board, units, values)
            # the program's own schedules: those of another memory would be another program
            again = build(
                model, other, backends, allow_slower=True, allow_unused=True, schedules=schedules
            )
            with Runner(again) as runner:
                profile = runner.run(sample).profile
            found = retime(trace, values)
            if found.cycles[0] == profile.cycles and found.instructions[0] == profile.instructions:
                same += 1
            elif found.is_exact[0] or not found.assumes:
                silent += 1
                print(f"{model} {platform} {units} {values}: retimed {found.cycles[0]:,}, "
                      f"run {profile.cycles:,}")  # fmt: skip
        equal, count, said = equal + same, count + share, said + share - same - silent
        print(f"{model:8}{platform:20}{' '.join(units) or '-':28}{same} of {share} equal"
              f"{f', {share - same - silent} say why not' if same + silent < share else ''}"
              f"{f', {silent} WRONG' if silent else ''}", flush=True)  # fmt: skip
    print(f"retimed == run, cycles and instructions: {equal} of {count}; {said} others say why "
          f"not, {count - equal - said} do not (wanted: 0)")  # fmt: skip


def time_many(models: tuple[str, ...], designs: int = 1_000_000) -> None:
    """Print how long many designs take."""
    print(
        f"{'model':8}{'units':20}{'run, s':>8}{'designs':>11}{'s':>7}{'exact':>8}{'wanted, s':>11}"
    )
    for model, units in itertools.product(models, (("gemm",), ("a=gemm", "b=qconv2d"))):
        start = time.perf_counter()
        trace = record(build(model, "riscv32", units, allow_slower=True, allow_unused=True))
        once = time.perf_counter() - start
        chance, first = np.random.default_rng(0), units[0].partition("=")[0]
        values = {
            f"{first}.bytes_per_cycle": chance.integers(1, 65, designs),
            f"{first}.startup_cycles": chance.integers(0, 200, designs),
            f"{first}.contention": chance.choice(np.linspace(0, 3, 13), designs),
            "platform.flash.wait_states": chance.integers(0, 8, designs),
            "platform.ram.wait_states": chance.integers(0, 3, designs),
            "platform.timing": chance.choice(["rv32", "ibex", "cv32e40p"], designs),
        }
        if len(units) > 1:
            values["b.macs_per_cycle"] = chance.integers(1, 100, designs)
        start = time.perf_counter()
        found = retime(trace, values)
        took = time.perf_counter() - start
        print(f"{model:8}{' '.join(units):20}{once:8.2f}{designs:11,}{took:7.2f}"
              f"{found.is_exact.mean():8.0%}{SPEED_WANTED:11}", flush=True)  # fmt: skip


def soft_cores(folder: Path) -> dict[tuple[bool, bool, bool, str], str]:
    """Timing models of a soft core's variants: (bypass, fast shift, fast multiply, predictor).

    Made from VexRiscv's: without bypass results come two cycles later; a slow shift takes a cycle
    for each place, a slow multiplication 33 cycles; without a predictor all taken branches cost
    what a mispredicted one does. Dynamic predictors are not modelled and stand for the static one.
    """
    base = {"source": "a variant of vexriscv-cfu, synthetic", "instructions": "rv32", "error": None}
    found = {}
    for bypass, shift, multiply, predictor in itertools.product(
        (False, True), (False, True), (False, True), ("none", "static", "dynamic", "target")
    ):
        late = 0 if bypass else 2
        model: dict[str, object] = {
            **base,
            "cycles": {"jump": 2, "jump_register": 4, "relink": 4, "div": 34, "csr": 2}
            | ({} if multiply else {"mul": 33, "mulh": 33}),
            "latency": {"load": 2 + late, "mul": 2 + late, "mulh": 2 + late, "div": 1 + late,
                        "shift": 1 + late, "shift_constant": 1 + late, "csr": 1 + late},
        }  # fmt: skip
        if predictor == "none":
            model["taken"] = {"branch": 3}
        else:
            model |= {
                "predicts": "backward",
                "taken": {"branch": 1},
                "mispredicted": {"branch": 3},
            }
        if not shift:
            model["operands"] = {"shift": {"constant": 0, "amount": 1}}
        path = folder / f"core_{bypass:d}{shift:d}{multiply:d}_{predictor}.yaml"
        path.write_text(yaml.safe_dump({k: v for k, v in model.items() if v is not None}))
        found[bypass, shift, multiply, predictor] = str(path)
    return found


def walk_space(model: str) -> None:
    """Print how long the whole space takes after a run of each binary."""
    sizes = [256 << n for n in range(11)]
    with tempfile.TemporaryDirectory() as name:
        cores = soft_cores(Path(name))
        start = time.perf_counter()
        traces = {
            units: record(
                build(model, "vexriscv-cfu", units, allow_slower=True),
                sizes={"icache": sizes, "dcache": sizes},
            )
            for units in ((), ("cfu",))
        }
        once = time.perf_counter() - start
        start, count, best = time.perf_counter(), 0, (1 << 62, "")
        for units, trace in traces.items():
            # three switches change no time: the divider (these binaries have no division), the
            # presence of a multiplier (both have one), and checks of the bus
            designs = list(itertools.product(cores.values(), sizes, sizes, *[(False, True)] * 3))
            values = {
                "platform.timing": [design[0] for design in designs],
                "platform.icache.size": [design[1] for design in designs],
                "platform.dcache.size": [design[2] for design in designs],
            }
            cycles = retime(trace, {k: np.array(v) for k, v in values.items()}).cycles
            count += len(cycles)
            place = int(cycles.argmin())
            best = min(best, (int(cycles[place]), f"{units} {designs[place][1:3]}"))
        took = time.perf_counter() - start
    print(f"{model}: {count:,} designs in {took:.2f} s (wanted {SPACE_WANTED}) after "
          f"{once:.2f} s for 2 binaries; best {best[0]:,} cycles {best[1]}")  # fmt: skip


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", nargs="?", choices=("exact", "speed", "space"))
    parser.add_argument("--sets", type=int, default=300, help="random parameter sets")
    parser.add_argument("--models", nargs="*", default=list(MODELS))
    arguments = parser.parse_args()
    models = tuple(arguments.models)
    if arguments.part in (None, "exact"):
        compare_exactly(arguments.sets, models)
    if arguments.part in (None, "speed"):
        time_many(models)
    if arguments.part in (None, "space"):
        walk_space(models[0])


if __name__ == "__main__":
    main()
