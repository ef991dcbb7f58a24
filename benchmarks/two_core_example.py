"""The example with two cores: time of both, bytes through shared memory; the table of the docs.

python benchmarks/two_core_example.py [--frames 8]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
from two_cores import Done, gesture, wake_word  # the script has no package

from covp.graph.equality import differences

EXAMPLES = {"gesture": gesture, "wake-word": wake_word}
HEAD = """\
| example | platform | time | sensor: busy cycles | main: busy cycles | main: share of the time \
| through shared memory | outputs that differ |
|---|---|---:|---:|---:|---:|---:|---:|"""


def row(name: str, done: Done, wrong: int) -> str:
    """A line of the table."""
    run = done.run
    main, sensor = run["main"], run["sensor"]
    share = main.busy / main.clock_hz / run.seconds
    through = sum(places["shared"].written for places in (run.traffic or {}).values()
                  if "shared" in places)  # fmt: skip
    return (
        f"| {name} | `{run.platform}` | {run.seconds:.3f} s | {sensor.busy:,} | {main.busy:,} "
        f"| {share:.2%} | {through:,} bytes | {wrong} of {done.outputs.size} |"
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--frames", type=int, default=8)
    frames = parser.parse_args().frames
    print(HEAD)
    for name, example in EXAMPLES.items():
        for platform in ("dual-m4-m0plus", "dual-riscv32"):
            done, expected = example(platform, frames)
            print(row(name, done, differences(done.outputs, expected).size), flush=True)


if __name__ == "__main__":
    main()
