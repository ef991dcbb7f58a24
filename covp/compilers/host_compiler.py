"""C and C++ for the host that covp runs on: compiled on first use.

C is compiled by the bundled compiler. It would build its C++ library before the first C++, for more
than a minute; so C++ is compiled by the machine's own GCC where there is one that can.
"""

from __future__ import annotations

import functools
import os
import platform
import shutil
import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from covp.base import cache
from covp.base.cache import content_key
from covp.base.temporary import temporary_folder
from covp.compilers.compiler_process import failure, run_compiler
from covp.compilers.toolchain import SourceText, compiler_environment, zig_binary
from covp.errors import ToolchainError

_CPP = (".cpp", ".cc", ".cxx")
_HEADERS = ("*.h", "*.hh", "*.hpp")
_WARNINGS = ("-Wall", "-Wextra")


@dataclass(frozen=True)
class HostBinary:
    """A kind of file that sources are made into.

    Attributes:
        suffix: of the file.
        compile: options of the compiler.
        link: options of the linker.
    """

    suffix: str
    compile: tuple[str, ...]
    link: tuple[str, ...]


_LIBRARY = ("-O2", "-fPIC", "-fomit-frame-pointer")
LIBRARY = HostBinary(".so", _LIBRARY, ("-shared",))
"""A shared library for `ctypes`."""
PLAIN_LIBRARY = HostBinary(
    ".so", _LIBRARY, ("-shared", "-nostdlib") if sys.platform == "linux" else LIBRARY.link
)
"""One that needs nothing but the C library of Python's own process: zig builds none for it."""

_NEEDED = "#include <memory>\n#include <mutex>\n#include <string>\nstd::string covp_name;\n"


@functools.cache
def own_gcc() -> tuple[str, str] | None:
    """Return path and version of the machine's C++ compiler; None: there is none that can C++17.

    Whether it can is tried once for each version: its library may be missing or too old.
    """
    path = shutil.which("g++") if sys.platform == "linux" else None
    if path is None:
        return None
    try:
        run = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.SubprocessError):
        return None
    version = run.stdout.partition("\n")[0]
    file = content_key(path, version, _NEEDED)
    made = cache.load("versions", file)
    if made is None:
        with temporary_folder("gcc") as folder:
            source, library = Path(folder, "needed.cpp"), Path(folder, "made")
            source.write_text(_NEEDED, encoding="utf-8")
            options = ["-std=c++17", *_LIBRARY, "-shared", str(source), "-o", str(library)]
            failed = run_compiler([path, *options], compiler_environment(Path(folder))).returncode
            made = b"" if failed else library.read_bytes()
            cache.store("versions", file, made)
    return (path, version) if made else None


def host_key(is_cpp: bool = True) -> tuple[str, ...]:
    """Return what a library for this machine depends on beside its sources and options."""
    gcc = own_gcc() if is_cpp else None
    return (sys.platform, platform.machine(), *([] if gcc is None else [gcc[1]]))


def compile_for_host(
    name: str,
    what: str,
    sources: Sequence[Path | SourceText],
    kind: HostBinary = LIBRARY,
    *,
    headers: Sequence[Path] = (),
    include: Sequence[Path] = (),
    flags: Sequence[str] = (),
) -> Path:
    """Return the path of the cached file that C and C++17 sources are made into.

    Args:
        name: start of the file's name in the cache.
        what: the text that names it in errors, e.g. "the instruction counter".
        sources: files or texts; the suffix says the language (.c; .cpp, .cc, .cxx).
        kind: a library or a program.
        headers: files that the sources include from beside them. A change of them or of a header
            in ``include`` makes the file anew.
        include: folders to look for headers in.
        flags: more options of the compiler, e.g. "-DNAME=1".

    Raises:
        ToolchainError: the first error of the compiler or linker, on one line.
    """
    read = [SourceText.read(source) if isinstance(source, Path) else source for source in sources]
    known = [*headers, *(h for folder in include for p in _HEADERS for h in sorted(folder.glob(p)))]
    options = (*kind.compile, *_WARNINGS, *flags, *(f"-I{folder}" for folder in include))
    key = content_key(
        *(part for source in read for part in (source.name, source.text)),
        *(part for header in known for part in (header.name, header.read_bytes())),
        *options,
        *kind.link,
        *(*host_key(_has_cpp(read)), str(sys.maxsize)),
    )
    file = f"{name}-{key}{kind.suffix}"
    found = cache.find("native", file)
    if found is not None:
        return found
    data = build_for_host(what, read, kind, include=include, flags=flags)
    return cache.store("native", file, data, mode=0o700)


def build_for_host(
    what: str,
    sources: Sequence[Path | SourceText],
    kind: HostBinary = LIBRARY,
    *,
    include: Sequence[Path] = (),
    flags: Sequence[str] = (),
    objects: Sequence[Path] = (),
) -> bytes:
    """Return the file that C and C++17 sources are made into; nothing is cached.

    Args: as of `compile_for_host`, and
        objects: that are linked, too.

    Raises:
        ToolchainError: the first error of the compiler or linker, on one line.
    """
    read = [SourceText.read(source) if isinstance(source, Path) else source for source in sources]
    options = (*kind.compile, *_WARNINGS, *flags, *(f"-I{folder}" for folder in include))
    progress = _Progress(what, len(read), _has_cpp(read))
    with temporary_folder("host") as folder, progress:
        return _Build(Path(folder), what, options, progress).binary(read, kind.link, objects)


def _has_cpp(sources: Sequence[SourceText]) -> bool:
    return any(source.name.endswith(_CPP) for source in sources)


class _Progress:
    """A line on a terminal: how many files are compiled; elsewhere, of much C++, that they are."""

    def __init__(self, what: str, files: int, is_cpp: bool) -> None:
        self._text, self._files, self._done = f"covp: compiling {what}, once", files, 0
        self._is_long = is_cpp and files > 1
        self._shown = sys.stderr.isatty()
        self._lock = threading.Lock()

    def __enter__(self) -> _Progress:
        if self._is_long and not self._shown:
            print(f"{self._text}: {self._files} files ...", file=sys.stderr, flush=True)
        self._show(" ...")
        return self

    def __exit__(self, *error: object) -> None:
        self._show("\n")

    def step(self) -> None:
        """Count another compiled file."""
        with self._lock:
            self._done += 1
            self._show(" ...")

    def _show(self, end: str) -> None:
        if self._shown:
            count = f": {self._done} of {self._files} files" if self._files > 1 else ""
            print(f"\r{self._text}{count}", end=end, file=sys.stderr, flush=True)


class _Build:
    """A run of the compiler for each source, then of the linker."""

    def __init__(
        self, folder: Path, what: str, options: Sequence[str], progress: _Progress
    ) -> None:
        self.folder, self.what, self.options = folder, what, options
        self.progress = progress

    def binary(
        self, sources: Sequence[SourceText], link: Sequence[str], given: Sequence[Path]
    ) -> bytes:
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            objects = [*pool.map(self._object, range(len(sources)), sources), *given]
        made = self.folder / "made"
        language = "c++" if _has_cpp(sources) else "cc"
        # without -O2 zig builds debugging forms of its own libraries first, in half a minute
        self._run(language, ["-O2", *link, *map(str, objects), "-o", str(made)])
        return made.read_bytes()

    def _object(self, index: int, source: SourceText) -> Path:
        path = source.path
        if path is None:
            path = self.folder / f"{index}" / source.name
            path.parent.mkdir()
            path.write_text(source.text, encoding="utf-8")
        made = self.folder / f"{index}.o"
        cpp = source.name.endswith(_CPP)
        standard = ["-std=c++17"] if cpp else []
        arguments = [*self.options, *standard, "-c", str(path), "-o", str(made)]
        self._run("c++" if cpp else "cc", arguments)
        self.progress.step()
        return made

    def _run(self, language: str, arguments: Sequence[str]) -> None:
        gcc = own_gcc() if language == "c++" else None
        name, command = ("zig", [zig_binary(), language]) if gcc is None else ("g++", [gcc[0]])
        run = run_compiler([*command, *arguments], compiler_environment(self.folder))
        if run.returncode:
            reason = failure(run.stderr, name, (self.folder, cache.cache_root()))
            reason = " ".join(reason.replace(f"{self.folder}/", "").split())
            raise ToolchainError(f"{self.what} cannot be compiled: {reason[-400:]}")
