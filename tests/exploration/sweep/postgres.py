"""A PostgreSQL server of a test's own, from Debian's package."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from covp.device.child_process import ends_with_parent


def programs() -> Path | None:
    """The folder of initdb and postgres; None where there is none, or nobody to run them as."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    on_path = shutil.which("initdb")
    if os.getuid() == 0 and "postgres" not in {entry.pw_name for entry in pwd.getpwall()}:
        return None
    return found[-1].parent if found else Path(on_path).parent if on_path else None


class Server:
    """A cluster in a folder, reached by a socket there."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        # root may not run it
        self._as: dict[str, Any] = {"user": "postgres"} if os.getuid() == 0 else {}
        if self._as:
            shutil.chown(folder, "postgres")
        made = [self._program("initdb"), "-A", "trust", "-U", "postgres", "-N", f"{folder}/data"]
        subprocess.run(made, **self._as, check=True, stdout=subprocess.DEVNULL, cwd="/")
        self.url = f"postgresql://postgres@/postgres?host={folder}"
        self.start()

    def _program(self, name: str) -> str:
        folder = programs()
        assert folder is not None
        return str(folder / name)

    def start(self) -> None:
        """And wait until it answers."""
        data, options = self._folder / "data", ("-c", "listen_addresses=", "-c", "fsync=off")
        self._process = subprocess.Popen(
            [self._program("postgres"), "-D", data, "-k", self._folder, *options],
            **self._as,
            cwd="/",
            stderr=subprocess.DEVNULL,
            preexec_fn=ends_with_parent(signal.SIGQUIT),
        )
        ready = [self._program("pg_isready"), "-q", "-h", str(self._folder)]
        deadline = time.monotonic() + 60
        while subprocess.run(ready).returncode != 0:
            assert self._process.poll() is None and time.monotonic() < deadline
            time.sleep(0.05)

    def stop(self) -> None:
        """At once, as after a power cut."""
        self._process.send_signal(signal.SIGQUIT)
        self._process.wait()


@contextmanager
def server() -> Iterator[Server]:
    """For the time of a block."""
    # a socket's path is limited to some hundred characters
    with tempfile.TemporaryDirectory(prefix="pg", dir="/tmp") as folder:
        started = Server(Path(folder))
        try:
            yield started
        finally:
            started.stop()
