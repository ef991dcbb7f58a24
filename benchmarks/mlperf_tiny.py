"""The MLPerf Tiny models on the emulated cores, beside TFLM with the vendors' kernels.

    python benchmarks/mlperf_tiny.py [--models resnet kws] [--inputs 20] [--toolchains zig gcc]
                                     [--accel qconv2d] [--optimize balanced | --untuned]

Prints, for each model, platform and compiler: instructions of one inference and their ratio to
the anchor's, arena and flash likewise, and how many of the random inputs gave the reference's
bits. With --accel the bits are what is checked, the anchors mean little. Exit status 1 where a
ratio is above its limit or a bit differs. Uses the official models when COVP_MODEL_DIR or the
download cache has them.
"""

from __future__ import annotations

import argparse
import shutil
import sys

import numpy as np
from anchors import ANCHORS

import covp
from covp import zoo
from covp.evaluation import recorded_schedules

MODELS = ["toycar", "resnet", "kws", "vww", "sww"]
PLATFORMS = ["riscv32", "stm32l4r5", "stm32f746", "cortex-m0plus"]
LIMITS = {"rv32imc": 1.0, "cortex-m4f": 1.3, "cortex-m7f": 1.3}
"""Instructions over the anchor's; no limit is set on the other cores."""
GCC = {"arm": "arm-none-eabi-gcc", "riscv": "riscv64-unknown-elf-gcc"}


def measure(name: str, platform_name: str, toolchain: str, options: argparse.Namespace) -> bool:
    """Print one row; whether it holds its limits."""
    platform = covp.load_platform(platform_name)
    tuned = None if options.untuned else recorded_schedules(platform, toolchain, options.optimize)
    program = covp.compile(name, platform, options.accel, allow_unused=True, schedules=tuned)
    inputs = options.inputs
    assert program.reference is not None
    exact = 0
    with covp.Session(platform, toolchain=toolchain) as session:
        graph = session.load(program)
        for seed in range(inputs):
            rng = np.random.default_rng(seed)
            x = [rng.integers(-128, 128, t.shape).astype(t.dtype) for t in program.inputs]
            outputs = graph.run(*x)
            wanted = program.reference(x)
            exact += all(
                np.array_equal(a, b)
                for a, b in zip(outputs if len(wanted) > 1 else [outputs], wanted, strict=True)
            )
        instructions = session.profile().instructions
        assert instructions is not None
        flash = session.memory().flash_bytes
    anchor = ANCHORS[platform.core.name][name]
    ratio, arena = instructions / anchor.instructions, program.arena_bytes
    limit = LIMITS.get(platform.core.name)
    held = exact == inputs and arena <= anchor.arena and (limit is None or ratio <= limit)
    print(
        f"{name:7} {platform_name:14} {toolchain:4} {instructions:11,} {anchor.instructions:11,} "
        f"{ratio:5.2f} {arena:8,} {anchor.arena:8,} {flash:8,} {anchor.flash:8,} "
        f"{exact:3}/{inputs} {'' if held else 'ABOVE THE LIMIT'}"
    )
    return held


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--models", nargs="+", default=MODELS)
    parser.add_argument("--platforms", nargs="+", default=PLATFORMS)
    parser.add_argument("--toolchains", nargs="+", default=["zig", "gcc"])
    parser.add_argument("--inputs", type=int, default=20)
    parser.add_argument("--accel", nargs="*", default=[])
    parser.add_argument("--optimize", choices=["speed", "balanced", "size"], default="speed")
    parser.add_argument("--untuned", action="store_true", help="the kernels' own choices")
    options = parser.parse_args()
    synthetic = [name for name in options.models if zoo.find(name).source != "official"]
    if synthetic:
        print(f"SYNTHETIC stand-ins, not comparable with the anchors: {', '.join(synthetic)}")
    print(
        "model   platform       by   instructions      anchor ratio    arena   anchor "
        "   flash   anchor bits"
    )
    held = True
    for name in options.models:
        for platform in options.platforms:
            for toolchain in options.toolchains:
                core = covp.load_platform(platform).core
                if toolchain == "gcc" and shutil.which(GCC[core.architecture]) is None:
                    print(f"{name:7} {platform:14} gcc  not installed, skipped")
                    continue
                held &= measure(name, platform, toolchain, options)
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
