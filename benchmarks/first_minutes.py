"""What a new user waits for: help, a warm run, every platform cold and warm.

    python benchmarks/first_minutes.py

Times are of this machine, and noisy; processor time is of the command and its compilers.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence

COVP = [sys.executable, "-m", "covp"]
PLATFORMS = 30


def spent(words: Sequence[str], cache: str | None = None) -> tuple[float, float]:
    """Seconds of wall and of processor time of a command, the least of three where it is warm."""
    environment = {**os.environ, **({"COVP_CACHE_DIR": cache} if cache else {})}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    subprocess.run([*COVP, *words], env=environment, check=True, capture_output=True)
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    from covp.chip.platform_file import every_platform

    names = [board.name for board in every_platform()][:PLATFORMS]
    boards = [word for name in names for word in ("-p", name)]
    rows = [("covp --help", min(spent(["--help"]) for _ in range(5)), "0.3 s")]
    spent(["run", "kws", "-p", "riscv32"])
    warm = min((spent(["run", "kws", "-p", "riscv32"]) for _ in range(5)), key=lambda one: one[1])
    rows.append(("covp run kws, warm", warm, "1.0 s of processor time"))
    with tempfile.TemporaryDirectory() as cache:
        rows.append((f"covp fits kws, {len(names)} platforms, cold",
                     spent(["fits", "kws", *boards], cache), "60 s"))  # fmt: skip
        again = min(spent(["fits", "kws", *boards], cache) for _ in range(3))
        rows.append((f"covp fits kws, {len(names)} platforms, warm", again, "5 s"))
    print("| command | s | s of processor time | wanted below |\n|---|---:|---:|---:|")
    for what, (wall, processor), wanted in rows:
        print(f"| {what} | {wall:.2f} | {processor:.2f} | {wanted} |")


if __name__ == "__main__":
    main()
