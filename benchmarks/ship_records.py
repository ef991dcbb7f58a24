"""Update covp/building/tune/shipped with the trials that `covp tune` left on this machine.

    python benchmarks/ship_records.py [--dry-run]

Adds them to the trials that are shipped already (the newer one of a schedule counts) and keeps, of
each layer, the Pareto front of instructions against flash; one file per core and compiler. Trials
of another version of the kernels are dropped, and files without a local trial stay as they are.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from pathlib import Path

from covp.building.tune.records import (
    FOLDER,
    Records,
    ScheduleTrial,
    file_name,
    own_folder,
    pareto_front,
    read_shipped_trials,
    write_shipped_trials,
)


def fronts(shipped: Path, own: Path) -> dict[str, list[ScheduleTrial]]:
    """What each file is to hold, for those that have a local trial."""
    local = sorted(own.glob("*.jsonl"))
    touched = {(core, compiler) for _, core, compiler in Records(local).layers()}
    records = Records(local, sorted(shipped.glob("*.jsonl")))
    files: dict[str, list[ScheduleTrial]] = defaultdict(list)
    for layer, core, compiler in dict.fromkeys(records.layers()):
        if (core, compiler) in touched:
            trials = pareto_front(records.trials(layer, core, compiler))
            files[file_name(core, compiler)] += trials
    return {name: trials for name, trials in sorted(files.items()) if trials}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--dry-run", action="store_true", help="say what would change, write nothing"
    )
    options = parser.parse_args()
    for name, trials in fronts(FOLDER, own_folder()).items():
        path = FOLDER / name
        before = len(read_shipped_trials(path)) if path.exists() else 0
        if not options.dry_run:
            write_shipped_trials(path, trials)
        print(
            f"{name}: {len(trials)} trials of {len({t.layer for t in trials})} layers, was {before}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
