"""The MLPerf Tiny models on the emulated cores, beside TFLM with the vendors' kernels.

    python benchmarks/mlperf_tiny.py [--models resnet kws] [--inputs 20] [--toolchains zig gcc]
                                     [--accel qconv2d] [--optimize balanced | --untuned]
                                     [--json FILE]

Prints, for each model, platform and compiler: instructions of one inference and their ratio to
the anchor's, arena and flash likewise, and how many of the random inputs gave bit-exact
outputs. Exit status 1 where one differs or a limit is exceeded: the arena's, always; instructions,
with --optimize instructions and no --accel, of the better compiler, zig alone 15 % more; flash,
with --optimize balanced. Uses the official models where COVP_MODEL_DIR or the download cache has
them.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path
from typing import NamedTuple, get_args

from anchors import ANCHORS
from document import write_document

import covp
from covp.base.request import Objective
from covp.evaluation import Runner, Sample, build, recorded_schedules
from covp.graph import zoo

MODELS = ["toycar", "resnet", "kws", "vww", "sww"]
PLATFORMS = ["riscv32", "stm32l4r5", "stm32f746", "cortex-m0plus"]
LIMITS = {
    "rv32imc": {"toycar": 0.60e6, "resnet": 27e6, "kws": 7.0e6, "vww": 14e6},
    "cortex-m4f": {"toycar": 0.38e6, "resnet": 15.5e6, "kws": 3.9e6, "vww": 8.5e6},
    "cortex-m7f": {"toycar": 0.38e6, "resnet": 15.5e6, "kws": 3.9e6, "vww": 8.5e6},
    "cortex-m0plus": {
        model: share * ANCHORS["cortex-m0plus"][model].instructions
        for model, share in (("toycar", 0.5), ("resnet", 0.5), ("kws", 0.5), ("vww", 0.4))
    },
}
"""Instructions of the better compiler at most; no limit is set for the other models."""
ZIG_ALONE = 1.15
GCC = {"arm": "arm-none-eabi-gcc", "riscv": "riscv64-unknown-elf-gcc"}


class Row(NamedTuple):
    """One model on one platform by one compiler, beside the anchor's figures."""

    model: str
    platform: str
    core: str
    compiler: str
    instructions: int
    arena: int
    flash: int
    exact: int
    inputs: int
    anchor: str
    anchor_instructions: int
    anchor_arena: int
    anchor_flash: int


def measure(
    name: str, platform_name: str, toolchain: str, options: argparse.Namespace
) -> tuple[Row, bool]:
    """Print one row; True where outputs are bit-exact and memory is within the limits."""
    platform = covp.load_platform(platform_name)
    tuned = (
        None
        if options.untuned
        else recorded_schedules(platform, toolchain=toolchain, optimize=options.optimize)
    )
    made = build(
        name, platform, options.accel, toolchain=toolchain, schedules=tuned, allow_unused=True
    )
    with Runner(made) as runner:
        results = [runner.run(Sample.random(made.graph, seed)) for seed in range(options.inputs)]
    last, inputs = results[-1], len(results)
    exact = sum(result.matches_reference for result in results)
    instructions, flash = last.profile.instructions, last.memory.flash_bytes
    assert instructions is not None
    anchor = ANCHORS[platform.core.name][name]
    ratio, arena = instructions / anchor.instructions, made.program.arena_bytes
    held = exact == inputs and arena <= anchor.arena
    held &= options.optimize != "balanced" or flash <= anchor.flash
    print(
        f"{name:7} {platform_name:14} {toolchain:4} {instructions:11,} {anchor.instructions:11,} "
        f"{ratio:5.2f} {arena:8,} {anchor.arena:8,} {flash:8,} {anchor.flash:8,} "
        f"{exact:3}/{inputs} {'' if held else 'ABOVE THE LIMIT'}"
    )
    row = Row(
        name, platform_name, platform.core.name, last.toolchain, instructions, arena, flash, exact,
        inputs, anchor.runtime, anchor.instructions, anchor.arena, anchor.flash,
    )  # fmt: skip
    return row, held


def is_short(name: str, core: str, instructions: dict[str, int]) -> bool:
    """Whether a model keeps within its limit; prints where it does not."""
    limit = LIMITS.get(core, {}).get(name)
    if limit is None or not instructions:
        return True
    found = min(instructions.values()) / limit, instructions.get("zig", 0) / limit
    held = found[0] <= (1.0 if len(instructions) > 1 else ZIG_ALONE) and found[1] <= ZIG_ALONE
    if not held:
        print(f"{name:7} {core:14} {found[0]:.2f} of {limit:,.0f}, zig {found[1]:.2f}: TOO MANY")
    return held


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--models", nargs="+", default=MODELS)
    parser.add_argument("--platforms", nargs="+", default=PLATFORMS)
    parser.add_argument("--toolchains", nargs="+", default=["zig", "gcc"])
    parser.add_argument("--inputs", type=int, default=20)
    parser.add_argument("--accel", nargs="*", default=[])
    parser.add_argument("--optimize", choices=get_args(Objective), default="instructions")
    parser.add_argument("--untuned", action="store_true", help="the kernels' own choices")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows there as well")
    options = parser.parse_args()
    synthetic = [name for name in options.models if zoo.find(name).source != "official"]
    if synthetic:
        print(f"SYNTHETIC stand-ins, not comparable with the anchors: {', '.join(synthetic)}")
    print(
        "model   platform       by   instructions      anchor ratio    arena   anchor "
        "   flash   anchor bit-exact"
    )
    held, rows = True, list[Row]()
    for name in options.models:
        for platform in options.platforms:
            core, counted = covp.load_platform(platform).core, dict[str, int]()
            for toolchain in options.toolchains:
                if toolchain == "gcc" and shutil.which(GCC[core.architecture]) is None:
                    print(f"{name:7} {platform:14} gcc  not installed, skipped")
                    continue
                row, row_held = measure(name, platform, toolchain, options)
                rows.append(row)
                counted[toolchain] = row.instructions
                held &= row_held
            if options.optimize == "instructions" and not options.accel and not options.untuned:
                held &= is_short(name, core.name, counted)
    if options.json:
        write_document(options.json, [row._asdict() for row in rows])
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
