"""Compilers as child processes that end with this one, however that comes about.

They are in a process group of their own, with a shell that waits for the end of a pipe from this
process and then kills the group. A signal at the death of the parent (Linux' prctl) would not reach
what a compiler starts, as GCC does, and is set between fork and exec, which is unsafe in threads.

What they print is read here too: error messages and lists of included files.
"""

from __future__ import annotations

import atexit
import os
import re
import subprocess
import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from covp.base.shortage import full_disk, small_address_space, small_files

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


_ERROR = re.compile(
    r"^(?P<file>[^\s:][^:\n]*):(?P<line>\d+):(?:\d+:)? (?:fatal )?error: (?P<text>.*)$"
)
_UNDEFINED = re.compile(r"undefined (?:symbol: |reference to )[`']?(?P<symbol>[^\s'`]+)")
_REFERENCE = re.compile(r"(?:>>> referenced by |^)(?P<file>[^\s:()]+\.[cS]):(?P<line>\d+)", re.M)
_LINKER = re.compile(r"^\S*\bld(?:\.lld)?: ?(?:error: )?(?:\S*/out\.elf )?")


def first_error(stderr: str, tool: str) -> str:
    """Return a compiler's or linker's first error as one line, with file and line if it says so."""
    for line in stderr.splitlines():
        found = _ERROR.match(line)
        if found:
            return f"{Path(found['file']).name}:{found['line']}: {found['text']}"
    undefined = _UNDEFINED.search(stderr)
    if undefined:
        place = _REFERENCE.search(stderr)
        where = f"{Path(place['file']).name}:{place['line']}: " if place else ""
        return f"{where}undefined symbol {undefined['symbol']}"
    lines = [_LINKER.sub("", line.strip()) for line in stderr.splitlines()]
    lines = [line for line in lines if line and not line.startswith("collect2")]
    first = next((line for line in lines if "error" in line.lower()), lines[0] if lines else "")
    return f"{tool}: {first or 'failed without a message'}"


def failure(stderr: str, tool: str, folders: Iterable[Path]) -> str:
    """Return why a compiler or linker failed, as one line; what is short where it blames no file.

    Args:
        stderr: what it printed.
        tool: its name.
        folders: that it writes in.
    """
    text = first_error(stderr, tool)
    if any(map(_ERROR.match, stderr.splitlines())):
        return text
    short = full_disk(folders) or small_files() or small_address_space()
    return f"{text}; {short}" if short else text


def dependencies(text: str) -> list[str]:
    """Return the file names of a make rule as compilers write it ("\\ " is a space)."""
    _, _, files = text.replace("\\\n", " ").partition(": ")
    return [name.replace("\\ ", " ") for name in re.findall(r"(?:\\.|\S)+", files)]
