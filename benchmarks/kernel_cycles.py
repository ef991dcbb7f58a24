"""Cycles of the MLPerf Tiny models beside the records of MLPerf Tiny, and the regret of schedules.

    python benchmarks/kernel_cycles.py                # the table, on the virtual device
    python benchmarks/kernel_cycles.py --regret kws -p nucleo-l4r5zi   # what other schedules take

The cycles are estimates of the platforms' timing models, with the memory of the boards; those of
cv32e40p equal its RTL. A record is the least of the closed division's submissions for that board,
up to v1.3: throughput of the performance run times the stated clock (repositories
mlcommons/tiny_results_v*). The regret of a layer is what it takes more than with the best schedule
that is known of it, each measured in the whole model.
"""

from __future__ import annotations

import argparse
import sys
from functools import partial

import covp
from covp.base.request import Objective
from covp.building.platform_costs import measure_recorded
from covp.building.schedules import recorded_schedules
from covp.building.tune.keys import layer_key
from covp.codegen.generate import generate
from covp.evaluation import build, run
from covp.graph.passes import run_passes

MODELS = ("toycar", "kws", "resnet", "vww")
GOALS = {
    "cv32e40p": (0.55, 6.8, 20, 12),
    "nucleo-l4r5zi-single-bank": (0.45, 4.6, 14, 8),
    "nucleo-l4r5zi": None,
    "nucleo-u575zi": (0.42, 4.1, 13, 7.5),
    "disco-f746ng": (0.30, 2.9, 9, 4.6),
    "ibex": None,
    "raspberry-pi-pico": None,
}
"""Mcycles that the kernels are to reach, by model."""
RECORDS: dict[str, tuple[tuple[float, str], ...]] = {
    "nucleo-l4r5zi-single-bank": (
        (0.4862, "Plumerai 2023.05, v1.1"), (5.1825, "X-CUBE-AI 9.0, v1.2"),
        (19.8151, "X-CUBE-AI 9.0, v1.2"), (10.6714, "X-CUBE-AI 9.0, v1.2"),
    ),
    "nucleo-u575zi": (
        (0.4945, "Bosch HALE, v1.2"), (4.6392, "X-CUBE-AI 10.2, v1.3"),
        (16.6858, "Plumerai 2023.05, v1.1"), (9.4826, "X-CUBE-AI 10.2, v1.3"),
    ),
    "disco-f746ng": (
        (0.3078, "Bosch HALE, v1.2"), (3.8338, "Plumerai 2023.05, v1.1"),
        (13.2989, "Bosch HALE 1.0, v1.1"), (7.3612, "Plumerai 2023.05, v1.1"),
    ),
}  # fmt: skip
"""Mcycles measured on the boards, with whose kernels, by model."""


def main() -> int:
    """Print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("-p", "--platforms", default=",".join(GOALS))
    parser.add_argument("--optimize", default="cycles")
    parser.add_argument("--regret", metavar="MODELS", help="by layer, instead")
    parser.add_argument("--most", type=int, default=64, help="schedules of a layer")
    options = parser.parse_args()
    platforms = options.platforms.split(",")
    if options.regret:
        for model in options.regret.split(","):
            for platform in platforms:
                print_regret(model, platform, options.most)
        return 0
    print("| platform | model | Mcycles | flash, B | RAM, B | weights in RAM, Mcycles | RAM, B "
          "| goal | record | of the record |")  # fmt: skip
    print("|---|---|---:|---:|---:|---:|---:|---:|---|---:|")
    for platform in platforms:
        for number, model in enumerate(MODELS):
            print(row(platform, number, model, options.optimize), flush=True)
    return 0


def row(platform: str, number: int, model: str, optimize: Objective) -> str:
    """The row of a model on a platform."""
    found = run(build(model, platform, optimize=optimize), check="output")
    moved = run(build(model, platform, optimize=optimize, ram_weights=1 << 31), check="output")
    assert found.matches_reference and moved.matches_reference
    cycles = (found.profile.cycles or 0) / 1e6
    fewer = f"{(moved.profile.cycles or 0) / 1e6:.3f}" if moved.memory != found.memory else ""
    ram = f"{moved.memory.ram_bytes:,}" if fewer else ""
    goals = GOALS.get(platform)
    goal = f"{goals[number]:g}" if goals else ""
    measured = RECORDS.get(platform)
    text, share = "", ""
    if measured is not None:
        text = f"{measured[number][0]:.3g} ({measured[number][1]})"
        share = f"{cycles / measured[number][0]:.2f}"
    memory = f"{found.memory.flash_bytes:,} | {found.memory.ram_bytes:,} | {fewer} | {ram}"
    return f"| {platform} | {model} | {cycles:.3f} | {memory} | {goal} | {text} | {share} |"


def print_regret(model: str, platform_name: str, most: int) -> None:
    """Print what each layer takes more than with the best schedule that is known of it."""
    platform, graph = covp.load_platform(platform_name), covp.load_model(model)
    chosen = recorded_schedules(platform, flash_trade=None)
    lowered = run_passes(graph)
    make = partial(generate, graph, platform)
    chosen = measure_recorded(chosen, lowered, make)
    every = measure_recorded(recorded_schedules(platform), lowered, make, most, again=True)
    lost = total = 0
    print(f"{model} on {platform_name}")
    for op in lowered.ops:
        known = {t.schedule: t.cycles or 0 for t in every.measured.get(layer_key(op), ())}
        taken = chosen.trial(op)
        if taken is None or taken.schedule not in known or len(known) < 2:
            continue
        best = min(known, key=known.__getitem__)
        spent, least = known[taken.schedule], known[best]
        lost, total = lost + spent - least, total + least
        if spent > 1.02 * least:
            print(f"  {op.name}: {taken.schedule} {spent:,}, {best} {least:,}")
    print(f"  regret {lost:,} of {total:,} cycles ({lost / max(total, 1):.1%})")


if __name__ == "__main__":
    sys.exit(main())
