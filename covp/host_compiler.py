"""C and C++ for the host that covp runs on: compiled on first use by the bundled compiler."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from covp import cache
from covp.cache import content_key
from covp.errors import ToolchainError
from covp.temporary import temporary_folder
from covp.toolchain import Source, compiler_environment

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


LIBRARY = HostBinary(".so", ("-O2", "-fPIC", "-fomit-frame-pointer"), ("-shared",))
"""A shared library for `ctypes`."""


def compile_for_host(
    name: str,
    what: str,
    sources: Sequence[Path | Source],
    kind: HostBinary = LIBRARY,
    *,
    headers: Sequence[Path] = (),
    include: Sequence[Path] = (),
    flags: Sequence[str] = (),
) -> Path:
    """The path of the cached file that C and C++17 sources are made into.

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
    read = [Source.read(source) if isinstance(source, Path) else source for source in sources]
    known = [*headers, *(h for folder in include for p in _HEADERS for h in sorted(folder.glob(p)))]
    options = (*kind.compile, *_WARNINGS, *flags, *(f"-I{folder}" for folder in include))
    key = content_key(
        *(part for source in read for part in (source.name, source.text)),
        *(part for header in known for part in (header.name, header.read_bytes())),
        *options,
        *kind.link,
        *(sys.platform, platform.machine(), str(sys.maxsize)),
    )
    file = f"{name}-{key}{kind.suffix}"
    found = cache.find("native", file)
    if found is not None:
        return found
    if sys.stderr.isatty():
        print(f"covp: compiling {what}, once for this machine ...", file=sys.stderr)
    with temporary_folder("host") as folder:
        build = _Build(Path(folder), what, options)
        return cache.store("native", file, build.binary(read, kind.link), mode=0o700)


class _Build:
    """One run of the compiler for each source, then the linker."""

    def __init__(self, folder: Path, what: str, options: Sequence[str]) -> None:
        self.folder, self.what, self.options = folder, what, options

    def binary(self, sources: Sequence[Source], link: Sequence[str]) -> bytes:
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            objects = list(pool.map(self._object, range(len(sources)), sources))
        made = self.folder / "made"
        language = "c++" if any(source.name.endswith(_CPP) for source in sources) else "cc"
        self._run(language, [*link, *map(str, objects), "-o", str(made)])
        return made.read_bytes()

    def _object(self, index: int, source: Source) -> Path:
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
        return made

    def _run(self, language: str, arguments: Sequence[str]) -> None:
        run = subprocess.run(
            [sys.executable, "-m", "ziglang", language, *arguments],
            env=compiler_environment(self.folder),
            capture_output=True,
            text=True,
            check=False,
        )
        if run.returncode:
            errors = [line for line in run.stderr.splitlines() if "error:" in line]
            reason = " ".join(errors[:1] or [run.stderr]).replace(f"{self.folder}/", "")
            raise ToolchainError(
                f"{self.what} cannot be compiled: {' '.join(reason.split())[-400:]}"
            )
