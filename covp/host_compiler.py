"""C for the host that covp runs on: compiled on first use by the bundled compiler, cached."""

from __future__ import annotations

import platform
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from covp.cache import cache_dir, content_key, write_atomically
from covp.errors import ToolchainError
from covp.toolchain import compiler_environment

_FLAGS = ("-shared", "-O2", "-fPIC", "-fomit-frame-pointer", "-Wall", "-Wextra")


def shared_library(name: str, what: str, source: Path | str, headers: Sequence[Path] = ()) -> Path:
    """The path of a shared library.

    Args:
        name: of the file in the cache.
        what: it is, for the error.
        source: a C file, or the text of one.
        headers: files that it includes.

    Raises:
        ToolchainError: it cannot be compiled.
    """
    texts = [source if isinstance(source, str) else source.read_text()]
    texts += [header.read_text() for header in headers]
    key = content_key(*texts, *_FLAGS, sys.platform, platform.machine(), str(sys.maxsize))
    path = cache_dir("native") / f"{name}-{key}.so"
    if not path.is_file():
        with tempfile.TemporaryDirectory() as folder:
            write_atomically(path, _compile(Path(folder), what, source))
    return path


def _compile(folder: Path, what: str, source: Path | str) -> bytes:
    made = folder / "made.so"
    if isinstance(source, str):
        text, source = source, folder / "source.c"
        source.write_text(text)
    run = subprocess.run(
        [sys.executable, "-m", "ziglang", "cc", *_FLAGS, "-o", str(made), str(source)],
        env=compiler_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    if run.returncode:
        errors = [line for line in run.stderr.splitlines() if "error:" in line]
        reason = " ".join(" ".join(errors[:1] or [run.stderr]).replace(f"{folder}/", "").split())
        raise ToolchainError(f"{what} cannot be compiled: {reason[-400:]}")
    return made.read_bytes()
