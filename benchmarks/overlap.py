"""Core and units at the same time: cycles without, promised and with, and the RAM that it takes.

A second table has the same with two and four equal units, which share layers.

    python benchmarks/overlap.py [--models kws,resnet] [--platforms cortex-m4,riscv32] [-a UNIT ...]

"without" is the program that `covp run` makes without ``--overlap``; outputs and every layer are
compared with the reference.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence

from msgspec.structs import replace

from covp.chip.platform_file import load_platform
from covp.evaluation import Evaluation, Sample, build, run

MODELS = "kws,resnet,vww,toycar"
PLATFORMS = "cortex-m4,riscv32"
UNITS = ["gemm", "qconv2d", "qconv2d:depthwise=false"]
COUNTS = (1, 2, 4)


def main() -> None:
    """Print one row for each model, platform and unit."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--models", default=MODELS)
    parser.add_argument("--platforms", default=PLATFORMS)
    parser.add_argument("-a", "--accel", action="append")
    options = parser.parse_args()
    head = "model platform unit without promised with off saved RAM RAM flash flash seconds"
    print("| " + " | ".join(head.split()) + " |")
    print("|" + "---|" * len(head.split()))
    models, platforms = options.models.split(","), options.platforms.split(",")
    for model in models:
        for platform in platforms:
            for unit in options.accel or UNITS:
                print(_row(model, platform, unit), flush=True)
    if not options.accel:
        _print_equal(models, platforms)


def _print_equal(models: Sequence[str], platforms: Sequence[str]) -> None:
    """Print a row for each model and platform with one, two and four convolution units."""
    titles = [f"{n} x qconv2d" for n in COUNTS]
    print(f"\n| model | platform | {' | '.join(titles)} | {titles[-1]}, one port | most off |")
    print("|---|---|" + "---:|" * (len(COUNTS) + 2))
    for model in models:
        for name in platforms:
            platform = load_platform(name)
            assert platform.accelerators is not None
            slot = replace(platform.accelerators, shared_port=True)
            together = replace(platform, accelerators=slot)
            cells, off = [], 0.0
            for count, where in (*((n, platform) for n in COUNTS), (COUNTS[-1], together)):
                units = ["qconv2d"] * count + ["vector"]
                made = build(model, where, units, allow_unused=True, overlap=True)
                result = run(made, Sample.random(made.graph))
                assert result.matches_reference, result.check.mismatch
                cycles = _cycles(result)
                promised = made.overlap.promised if made.overlap is not None else cycles
                off = max(off, abs(promised / cycles - 1))
                cells.append(f"{cycles:,}")
            print(f"| {model} | {name} | {' | '.join(cells)} | {off:.3%} |", flush=True)


def _row(model: str, platform: str, unit: str) -> str:
    plain = build(model, platform, [unit], allow_unused=True)
    without = run(plain, check="none")
    start = time.perf_counter()
    made = build(model, platform, [unit], allow_unused=True, overlap=True)
    seconds = time.perf_counter() - start
    result = run(made, Sample.random(made.graph))
    assert result.matches_reference, result.check.mismatch
    found, before, after = made.overlap, _cycles(without), _cycles(result)
    promised = found.promised if found is not None else before
    cells = [
        *(model, platform, unit, f"{before:,}", f"{promised:,}", f"{after:,}"),
        f"{promised / after - 1:+.3%}",
        f"{1 - after / before:.1%}",
        *(f"{each.memory.ram_bytes:,}" for each in (without, result)),
        *(f"{each.memory.flash_bytes:,}" for each in (without, result)),
        f"{seconds:.0f}",
    ]
    return "| " + " | ".join(cells) + " |"


def _cycles(result: Evaluation) -> int:
    assert result.profile.cycles is not None
    return result.profile.cycles


if __name__ == "__main__":
    main()
