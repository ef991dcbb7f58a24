"""Compilers as child processes that end with this one, however that comes about.

They are in a process group of their own, with a shell that waits for the end of a pipe from this
process and then kills the group. A signal at the death of the parent (Linux' prctl) would not reach
what a compiler starts, as GCC does, and is set between fork and exec, which is unsafe in threads.
"""

from __future__ import annotations

import atexit
import os
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

_lock = threading.Lock()
_watch: subprocess.Popen[bytes] | None = None


def run_compiler(
    command: Sequence[str], environment: Mapping[str, str], cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a compiler to its end; what it prints is kept.

    Raises:
        OSError, ValueError: as of `subprocess.run`.
    """
    return subprocess.run(
        command,
        cwd=cwd,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        process_group=_group() if os.name == "posix" else None,
    )


def _group() -> int:
    """Return the process group of compilers."""
    global _watch
    with _lock:
        if _watch is None or _watch.poll() is not None:
            _watch = subprocess.Popen(
                ["/bin/sh", "-c", "read end; kill -KILL 0"],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                process_group=0,
            )
        return _watch.pid


def _end() -> None:
    if _watch is not None:
        _watch.communicate()  # which closes the pipe


def _forget() -> None:
    """Drop the shell and the pipe in a fork: they are the parent's."""
    global _lock, _watch
    _lock = threading.Lock()
    if _watch is not None and _watch.stdin is not None:
        _watch.stdin.close()
        _watch.returncode = 0
    _watch = None


atexit.register(_end)
if os.name == "posix":
    os.register_at_fork(after_in_child=_forget)
