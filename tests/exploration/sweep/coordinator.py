"""``python -m tests.exploration.sweep.coordinator STORE COUNT [WORKERS | SCHEDULER]``: stand-ins.

Its points take a twentieth of a second each; "working" is printed when the first have rows.
"""

from __future__ import annotations

import sys

from covp.errors import CovpError
from covp.exploration.sweep.execute import execute, terminable
from covp.exploration.sweep.status import SweepProgress
from covp.exploration.sweep.store import Store
from covp.runtime.jobs import open_jobs
from tests.exploration.sweep import standins


def main(where: str, count: str, cluster: str = "2") -> None:
    """Run it. Exit status 130 where it was interrupted."""
    local = cluster.isdigit()

    def tell(progress: SweepProgress) -> None:
        if progress.rate:
            print("working", flush=True)

    try:
        with (
            terminable(),
            Store(where) as store,
            open_jobs(
                standins.slowly,
                int(cluster) if local else None,
                None if local else cluster,
                isolated=True,
            ) as workers,
        ):
            execute(standins.points(int(count), binaries=40), store, workers, tell=tell)
    except KeyboardInterrupt:
        sys.exit(130)
    except CovpError as error:
        sys.exit(f"covp: {error}")


if __name__ == "__main__":
    main(*sys.argv[1:])
