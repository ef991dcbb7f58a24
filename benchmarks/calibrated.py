"""Timing models that `covp calibrate` fits to the RTL of cores from `rv32`, and their errors.

    python benchmarks/calibrated.py [CORE ...]

Mean and worst error over 24 random programs that were left out, without wait states; the worst with
1 and 3 wait states of flash, 1 of RAM, 2 of both; and the error of toycar, which nothing was fitted
to, with 0 and 1 wait states of flash, beside the RTL's cycles.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

import msgspec

from covp.chip.platform_file import Platform, load_platform
from covp.device.rtl.device import RtlDevice
from covp.evaluation import Sample, build, run
from covp.evaluation.calibration.calibrate import FITTED_WAITS, calibrate

ROOT = Path(__file__).resolve().parents[1]
EXAMPLE = str(ROOT / "examples" / "own_core" / "board.yaml")
CORES = ("ibex", "ibex-small", "cv32e40p", "picorv32", EXAMPLE, "vexriscv-lite", "vexriscv-full")
START = "rv32"


def main() -> int:
    """Print a row for each core."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("cores", nargs="*", default=CORES)
    print("| core | mean error | worst | worst with wait states | toycar | toycar, 1 wait state |")
    print("|---|---:|---:|---:|---:|---:|")
    for core in parser.parse_args().cores:
        print(row(load_platform(core)), flush=True)
    return 0


def row(platform: Platform) -> str:
    """Return the line of one core."""
    waits = () if platform.caches else FITTED_WAITS
    with ExitStack() as stack, tempfile.TemporaryDirectory() as folder:
        devices = [
            (one, stack.enter_context(RtlDevice(one)))
            for one in (platform, *(platform.with_waits(*pair) for pair in waits))
        ]
        found = calibrate(*devices[0], START, others=devices[1:])
        path = Path(folder) / "model.yaml"
        found.write(path)
        fitted = msgspec.structs.replace(platform, timing=str(path))
        errors = [toycar(fitted)]
        errors += [toycar(fitted.with_waits(1, 0))] if waits else []
    cells = [f"{found.mean_error:.2%}", f"{found.worst_error:.2%}"]
    cells.append(f"{max(found.by_memory.values()):.2%}" if waits else "-")
    cells += [f"{error:+.2%}" for error in errors] + ["-"] * (not waits)
    return f"| `{platform.core.name}` | " + " | ".join(cells).replace("%", " %") + " |"


def toycar(platform: Platform) -> float:
    """Return the relative error of the model's cycles."""
    made = build("toycar", platform)
    sample = Sample.random(made.graph, 0)
    rtl, ours = (run(made, sample, device=device).profile.cycles for device in ("rtl", "virtual"))
    assert rtl and ours
    return ours / rtl - 1


if __name__ == "__main__":
    sys.exit(main())
