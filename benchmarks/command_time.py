"""From the command to the result: `covp run kws -p cortex-m7` as whole processes.

    python benchmarks/command_time.py

Cold is the first use after installing: the caches of covp and of zig are empty folders, so that
the instruction counter, the runtime and the model are compiled, and a model that COVP_MODEL_DIR
does not hold is built. Warm is the same command again. Prints the wall-clock times beside the
limits and exits with 1 above one. Cold is the slower of two runs, warm the median of seven.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

COMMAND = ("run", "kws", "-p", "cortex-m7", "--json")
COLD_LIMIT = 20.0
WARM_LIMIT = 1.5
COLD_RUNS = 2
WARM_RUNS = 7


def environment(folder: Path) -> dict[str, str]:
    """Ours with every cache in ``folder``."""
    ours = {k: v for k, v in os.environ.items() if not k.startswith("ZIG_")}
    ours["COVP_CACHE_DIR"] = str(folder / "covp")
    ours["XDG_CACHE_HOME"] = str(folder / "xdg")
    ours["ZIG_GLOBAL_CACHE_DIR"] = str(folder / "zig")
    ours["ZIG_LOCAL_CACHE_DIR"] = str(folder / "zig")
    ours["HOME"] = str(folder)
    return ours


def run(caches: dict[str, str]) -> tuple[float, str]:
    """Seconds from starting the process to its end, and where the model came from."""
    command = [sys.executable, "-c", "from covp.cli.main import main; main()", *COMMAND]
    start = time.perf_counter()
    done = subprocess.run(command, env=caches, capture_output=True, text=True)
    elapsed = time.perf_counter() - start
    if done.returncode:
        sys.exit(f"covp {' '.join(COMMAND)}: {done.stderr.strip()}")
    return elapsed, json.loads(done.stdout)["model_source"]


def main() -> int:
    """Measure, print, and say by the exit status whether the limits hold."""
    cold: list[float] = []
    warm: list[float] = []
    for _ in range(COLD_RUNS):
        with tempfile.TemporaryDirectory(prefix="covp-cold-") as folder:
            caches = environment(Path(folder))
            elapsed, source = run(caches)
            cold.append(elapsed)
            if len(cold) == COLD_RUNS:
                warm = [run(caches)[0] for _ in range(WARM_RUNS)]
    print(f"covp {' '.join(COMMAND[:-1])} ({source} model), seconds as a whole process")
    met = True
    for kind, seconds, limit in (
        ("cold", max(cold), COLD_LIMIT),
        ("warm", statistics.median(warm), WARM_LIMIT),
    ):
        verdict = "met" if seconds < limit else "NOT MET"
        met &= seconds < limit
        print(f"  {kind}  {seconds:6.2f}   limit {limit:5.1f}   {verdict}")
    print(f"  warm runs: {' '.join(f'{seconds:.2f}' for seconds in warm)}")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
