"""A Dask cluster that was started by hand."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def cluster(count: int) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """A scheduler and workers, started by hand on loopback: its address, and their processes."""
    start = [sys.executable, "-m", "dask"]
    log = subprocess.PIPE
    own = ["--host", "127.0.0.1", "--no-dashboard"]
    scheduler = subprocess.Popen([*start, "scheduler", *own, "--port", "0"], stderr=log)
    processes = [scheduler]
    try:
        assert scheduler.stderr
        line = next(line for line in scheduler.stderr if b"Scheduler at:" in line)
        address = line.split()[-1].decode()
        threading.Thread(target=scheduler.stderr.read, daemon=True).start()
        worker = [*start, "worker", address, *own, "--nthreads", "1", "--no-nanny"]
        for _ in range(count):
            processes.append(subprocess.Popen(worker, stderr=subprocess.DEVNULL))
        yield address, processes
    finally:
        for process in reversed(processes):
            process.kill()
            process.wait()
