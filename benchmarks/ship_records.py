"""Rebuild covp/tune/shipped from the trials that `covp tune` left on this machine.

    python benchmarks/ship_records.py

Keeps, of each layer, the front of instructions against flash; one file a core and compiler.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path

from covp.tune.records import Records, Trial, append_trials, front, own_folder

SHIPPED = Path(__file__).parent.parent / "covp" / "tune" / "shipped"


def main() -> int:
    records = Records(sorted(own_folder().glob("*.jsonl")))
    files: dict[str, list[Trial]] = defaultdict(list)
    for layer, core, compiler in records.layers():
        files[f"{core}-{compiler.replace(' ', '-')}.jsonl"] += front(
            records.trials(layer, core, compiler)
        )
    SHIPPED.mkdir(exist_ok=True)
    for name, trials in sorted(files.items()):
        path = SHIPPED / name
        path.unlink(missing_ok=True)
        append_trials(path, trials)
        print(f"{name}: {len(trials)} trials of {len({t.layer for t in trials})} layers")
    return 0


if __name__ == "__main__":
    sys.exit(main())
