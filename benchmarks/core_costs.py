"""The cycles that placement counts for the core, relative to those of the layers in the program.

    python benchmarks/core_costs.py [--models kws,resnet] [--platforms serv,stm32f746] [-a UNIT ...]

One row for each platform and model: the lowest and the highest ratio over the layers that stay on
the core beside a unit, and over all layers in the program of the core alone; layers whose ratio is
below 0.9 or above 1.1, by name. Default: every platform that accelerators can be attached to.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from covp.chip.platform_file import load_platform
from covp.chip.platform_file.reader import platform_names
from covp.errors import CapacityError
from covp.evaluation import Evaluation, build, run

MODELS = "toycar,kws,resnet,vww"
UNITS = ["gemm", "qconv2d:depthwise=false", "vector"]
LOW, HIGH = 0.9, 1.1


def ratios(beside: Evaluation, alone: Evaluation) -> Iterator[tuple[str, float]]:
    """Of each layer the cycles that placement counted for the core to those that it takes there.

    Args:
        beside: a run with accelerators.
        alone: the same model on the core alone.
    """
    took = {entry.name: entry.cycles for entry in alone.profile.layers}
    for entry in beside.profile.layers:
        if entry.layer.target == "cpu" and entry.layer.estimated_cycles and entry.cycles:
            yield entry.name, entry.layer.estimated_cycles / entry.cycles
    for other in beside.program.alternatives:
        spent = took.get(other.operators[0])
        if other.target == "cpu" and other.cycles and spent:
            yield other.operators[0], other.cycles / spent


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--models", default=MODELS)
    parser.add_argument("--platforms", default=",".join(_with_accelerators()))
    parser.add_argument("-a", "--accel", action="append")
    options = parser.parse_args()
    print("| platform | model | layers | lowest | highest | outside |\n|---|---|---|---|---|---|")
    for platform in options.platforms.split(","):
        for model in options.models.split(","):
            print(_row(model, platform, options.accel or UNITS), flush=True)


def _with_accelerators() -> list[str]:
    return [name for name in platform_names() if load_platform(name).accelerators is not None]


def _row(model: str, platform: str, units: list[str]) -> str:
    found: list[tuple[str, float]] = []
    try:
        alone = run(build(model, platform), check="none")
        for unit in units:
            made = build(model, platform, [unit], allow_unused=True, allow_slower=True)
            found += ratios(run(made, check="none"), alone)
    except CapacityError:
        return f"| {platform} | {model} | does not fit | | | |"
    values = [ratio for _, ratio in found]
    outside = {f"{name} {ratio:.2f}" for name, ratio in found if not LOW <= ratio <= HIGH}
    listed = ", ".join(sorted(outside))
    return (
        f"| {platform} | {model} | {len(found)} | {min(values):.3f} | {max(values):.3f} "
        f"| {listed} |"
    )


if __name__ == "__main__":
    main()
