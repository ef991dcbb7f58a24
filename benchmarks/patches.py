"""Networks in strips: arena, flash, instructions and cycles beside the plain programs.

    python benchmarks/patches.py [--platform stm32l4r5] [MODEL ...]

Runs each network plain, with `--patches 2`, 4, 8, 16 and auto, and checks every layer. The real
models of MLPerf Tiny are read from `COVP_MODEL_DIR`; without it stand-ins of the same layers run.
Exits with 1 where an output differs.
"""

from __future__ import annotations

import argparse
import sys

from covp.building.builder import build
from covp.evaluation import Evaluation, run

PATCHES = ("", "2", "4", "8", "16", "auto")


def _row(patches: str, result: Evaluation, plain: Evaluation) -> str:
    what = f"--patches {patches}" if patches else "plain"
    note = next((w for w in result.warnings if w.startswith("patches: ")), "patches: ")
    strips = note.removeprefix("patches: ").split(",")[0]
    memory, profile = result.memory, result.profile
    assert profile.instructions and plain.profile.instructions
    times = profile.instructions / plain.profile.instructions
    cells = (memory.arena_bytes, memory.flash_bytes, profile.instructions, profile.cycles or 0)
    numbers = "".join(f"{cell:>13,}" for cell in cells)
    return f"  {what:<15}{strips:<28}{numbers}  x{times:.3f}"


def main() -> int:
    """Print the table; return the status of the process."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("models", nargs="*", default=["vww", "resnet", "kws"])
    parser.add_argument("--platform", default="stm32l4r5")
    options = parser.parse_args()
    right = True
    for model in options.models:
        titles = "".join(f"{t:>13}" for t in ("arena B", "flash B", "instructions", "cycles"))
        print(f"{model} on {options.platform}\n  {'':<43}{titles}")
        plain: Evaluation | None = None
        for patches in PATCHES:
            result = run(build(model, options.platform, patches=patches))
            plain = plain or result
            right &= result.matches_reference
            print(_row(patches, result, plain))
    print("every output is bit-exact" if right else "OUTPUTS DIFFER")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
