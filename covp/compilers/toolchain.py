"""C in, ELF out: the zig compiler that comes with the install, or GCC cross compilers.

Every result is cached by the content of all that went into it (compiler, flags, sources, headers),
so a warm run starts no compiler at all.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from covp.base import cache, cache_upkeep
from covp.base.arguments import demand_name, read_file
from covp.base.cache import cache_dir, content_key, write_atomically
from covp.base.temporary import temporary_folder
from covp.chip.cores import Core
from covp.compilers.compiler_process import dependencies, failure, first_error, run_compiler
from covp.errors import ToolchainError, UsageError

WORKERS = min(2, os.cpu_count() or 1)

# The options follow one idea: the same bits on both compilers, and every call the kernels make
# visible. No contraction to fused multiply-add, no library call in place of a builtin.
COMMON_FLAGS = (
    "-O2",
    "-Wall",
    "-Wextra",
    "-ffreestanding",
    "-fbuiltin",
    "-ffunction-sections",
    "-fdata-sections",
    "-fno-stack-protector",
    "-fomit-frame-pointer",
    "-fno-asynchronous-unwind-tables",
    "-fno-unwind-tables",
    "-ffp-contract=off",
    "-fno-math-errno",
)

UNDEFINED_BEHAVIOUR_FLAGS = (
    "-fsanitize=undefined",
    "-fsanitize=float-cast-overflow",
    "-fsanitize-trap=all",
    # one trap per operation, with its line: a fault names it
    "-fno-sanitize-merge",
    "-fno-sanitize-debug-trap-reasons",
)
"""Options of zig under which undefined behaviour is a fault; device host names the reason."""


def runtime_dir() -> Path:
    """Return the folder of the C files that run on the target."""
    return Path(__file__).parents[1] / "device_runtime"


def compiler_environment(folder: Path) -> dict[str, str]:
    """Return the compilers' environment: messages in English, zig's libraries in covp's cache.

    Args:
        folder: a temporary one for what zig keeps of a user's code.
    """
    environment = {**os.environ, "LC_ALL": "C"}
    environment.setdefault("ZIG_GLOBAL_CACHE_DIR", str(cache_dir("zig")))
    # what zig keeps is not checked, so that nothing made from a user's code comes from there
    environment["ZIG_LOCAL_CACHE_DIR"] = str(folder / "zig")
    return environment


@dataclass(frozen=True)
class SourceText:
    """A C or assembly file.

    Attributes:
        name: file name; its suffix says the language (.c, .S).
        text: the content.
        path: where it lies, for includes beside it and for messages; None for generated text.
    """

    name: str
    text: str
    path: Path | None = None

    @classmethod
    def read(cls, path: Path) -> SourceText:
        """Return the file at ``path``. Raises UsageError when it cannot be read."""
        try:
            return cls(path.name, read_file(path).decode(), path.resolve())
        except (OSError, ValueError) as error:
            raise UsageError(f"cannot be read as C source: {error}", where=path) from None


def split_sources(files: Mapping[str, str]) -> tuple[list[SourceText], dict[str, str]]:
    """Return the files that are compiled (``.c``, ``.S``) and those that are included (``.h``)."""
    sources = [
        SourceText(name, text) for name, text in files.items() if name.endswith((".c", ".S"))
    ]
    return sources, {name: text for name, text in files.items() if name.endswith(".h")}


@dataclass(frozen=True)
class Driver:
    """A compiler as a Makefile calls it, for compiling and linking.

    Attributes:
        command: found on the user's path.
        compile_flags: all of them.
        link_flags: without script, objects and output.
        libraries: at the end of the link.
    """

    command: str
    compile_flags: tuple[str, ...]
    link_flags: tuple[str, ...]
    libraries: tuple[str, ...]


# The checks of -fsanitize=undefined that C defines as undefined. Not `function` (a call through a
# pointer of another type needs data before each function), not `vptr` (C++).
_CHECKS = (
    "-fsanitize=undefined,float-cast-overflow",
    "-fno-sanitize-recover=all",
    "-fno-optimize-sibling-calls",  # for whole call stacks
)


class Toolchain:
    """A compiler and linker for one core; `get_toolchain` makes them.

    Attributes:
        name: as for `get_toolchain`.
        plain_loops: options for memcpy and its family: a loop that copies must not become a call
            of the function it is in.
        undefined_behaviour_checks: options under which code calls ``__ubsan_handle_...`` before it
            does what C leaves undefined; each check has a call of its own, whose line is right.
    """

    name: str
    undefined_behaviour_checks: tuple[str, ...]
    plain_loops: tuple[str, ...]

    def __init__(self, core: Core) -> None:
        self.core = core

    @cached_property
    def binary(self) -> str:
        """The compiler's path.

        Raises:
            ToolchainError: it is not installed; the text says how to get it.
        """
        return self._find()

    @property
    def apart(self) -> tuple[str, ...]:
        """The options that give each variable a section of its own."""
        return ()

    @property
    def version(self) -> str:
        """Name and version, e.g. "zig 0.17.0"."""
        return f"{self.name} {_version_of(self.binary, self._version_arguments())}"

    def compile(
        self,
        sources: Sequence[SourceText],
        headers: Mapping[str, str] | None = None,
        include: Sequence[Path] = (),
        flags: Sequence[str] = (),
    ) -> list[Path]:
        """Compile each source to a cached object file, several at once.

        Args:
            headers: generated headers by name, visible to all the sources.
            include: folders for ``#include``, after the source's own and before the runtime's.
            flags: after the default ones, e.g. ("-g",).

        Returns:
            The object files in the order of ``sources``.

        Raises:
            ToolchainError: the first error as "file.c:12: message".
        """
        include = (*include, runtime_dir() / "include")
        given = dict(sorted((headers or {}).items()))
        seen = {id(source): _headers_of(source, given, flags) for source in sources}

        def one(source: SourceText) -> Path:
            return self._compile_one(source, seen[id(source)], include, flags)

        ready = [self._cached_object(s, seen[id(s)], include, flags) for s in sources]
        missing = [s for s, found in zip(sources, ready, strict=True) if found is None]
        if missing:
            with ThreadPoolExecutor(WORKERS) as pool:
                made = iter(list(pool.map(one, missing)))
            return [found or next(made) for found in ready]
        return [found for found in ready if found is not None]

    def link(self, objects: Sequence[Path], script: str) -> Path:
        """Link objects and archives by a linker script; unused sections are dropped.

        Returns:
            The ELF file in the cache.

        Raises:
            ToolchainError: the first undefined symbol or other error.
        """
        names = [path.name for path in objects]
        name = f"{content_key(self.version, script, *names)}.elf"
        found = cache.find("images", name)
        if found is not None:
            return found
        with temporary_folder("link") as folder:
            script_path = Path(folder) / "link.ld"
            script_path.write_text(script, encoding="utf-8")
            result = Path(folder) / "out.elf"
            self._link(script_path, objects, result)
            return cache.store("images", name, result.read_bytes())

    def archive(self, objects: Sequence[Path]) -> Path:
        """Return a static library of cached objects: the linker takes only the members it needs."""
        name = f"{content_key(self.version, *(path.name for path in objects))}.a"
        found = cache.find("objects", name)
        if found is not None:
            return found
        with temporary_folder("ar") as folder:
            result = Path(folder) / "out.a"
            self._run([*self._ar(), "rcs", str(result), *map(str, objects)], Path(folder))
            return cache.store("objects", name, result.read_bytes())

    def _key(
        self,
        source: SourceText,
        headers: Mapping[str, str],
        include: Sequence[Path],
        flags: Sequence[str],
    ) -> str:
        command = self._compile_command(flags)
        where = [str(source.path or ""), *map(str, include)]
        texts = [text for pair in headers.items() for text in pair]
        options = [str(len(texts)), *texts, *command[1:], *where]
        return content_key(self.version, source.name, source.text, *options)

    def _cached_object(
        self,
        source: SourceText,
        headers: Mapping[str, str],
        include: Sequence[Path],
        flags: Sequence[str],
    ) -> Path | None:
        """Return the object, if it was made from exactly these texts and included files."""
        manifest = cache.load("objects", f"{self._key(source, headers, include, flags)}.json")
        if manifest is None:
            return None
        record = json.loads(manifest)
        if any(_file_key(Path(path)) != key for path, key in record["includes"].items()):
            return None
        return cache.find("objects", record["object"])

    def _compile_one(
        self,
        source: SourceText,
        headers: Mapping[str, str],
        include: Sequence[Path],
        flags: Sequence[str],
    ) -> Path:
        key = self._key(source, headers, include, flags)
        work = cache.retry_in_temporary(lambda: self._unpack(source, headers, key))
        with temporary_folder("cc") as temporary:
            result, depend = Path(temporary) / "out.o", Path(temporary) / "out.d"
            command = self._compile_command(flags)
            command += [f"-I{f}" for f in (work, *include)]
            command += ["-MMD", "-MF", str(depend), "-c", str(source.path or source.name)]
            self._run([*command, "-o", str(result)], Path(temporary), cwd=work)
            path = source.path or work / source.name
            inside = {path.resolve(), *((work / name).resolve() for name in headers)}
            found = (Path(name) for name in dependencies(depend.read_text(encoding="utf-8")))
            files = {(work / file).resolve() for file in found} - inside
            includes = {str(file): _file_key(file) for file in sorted(files)}
            name = f"{content_key(key, json.dumps(includes))}.o"
            out = cache.store("objects", name, result.read_bytes())
        record = {"object": name, "includes": includes}
        cache.store("objects", f"{key}.json", json.dumps(record).encode())
        return out

    def _unpack(self, source: SourceText, headers: Mapping[str, str], key: str) -> Path:
        """Return the folder of generated files: in the cache, where a debugger finds them."""
        work = cache_dir("sources") / key
        work.mkdir(exist_ok=True)
        for name, text in headers.items():
            write_atomically(work / name, text.encode())
        if source.path is None:
            write_atomically(work / source.name, source.text.encode())
        return work

    def _run(self, command: Sequence[str], folder: Path, cwd: Path | None = None) -> None:
        try:
            done = run_compiler(command, compiler_environment(folder), cwd)
        except (OSError, ValueError) as error:
            raise ToolchainError(f"{command[0]} cannot be started: {error}") from None
        if done.returncode:
            folders = (folder, cache.cache_root())
            raise ToolchainError(failure(done.stderr, self.name, folders))

    def driver(self) -> Driver:
        """Return the compiler's command in a Makefile."""
        raise NotImplementedError

    def _find(self) -> str:
        raise NotImplementedError

    def _version_arguments(self) -> tuple[str, ...]:
        raise NotImplementedError

    def _compile_command(self, flags: Sequence[str]) -> list[str]:
        raise NotImplementedError

    def _link(self, script: Path, objects: Sequence[Path], out: Path) -> None:
        raise NotImplementedError

    def _ar(self) -> list[str]:
        raise NotImplementedError


_NO_SANITIZER = "-fno-sanitize=all"
_LLD_EMULATION = {"arm": "armelf", "riscv": "elf32lriscv", "x86": "elf32_x86_64"}


def zig_binary() -> str:
    """Return the path of zig's program: of the ziglang wheel, or on the search path.

    Called by its path: ``python -m ziglang`` would execute a ziglang.py of the current folder.

    Raises:
        ToolchainError: there is none.
    """
    spec = importlib.util.find_spec("ziglang")
    if spec is not None and spec.origin is not None:
        for name in ("zig", "zig.exe"):
            binary = Path(spec.origin).parent / name
            if binary.is_file():
                return str(binary)
    binary_on_path = shutil.which("zig")
    if binary_on_path is None:
        raise ToolchainError("zig is not installed: pip install ziglang")
    return binary_on_path


class Zig(Toolchain):
    """clang and lld of the ziglang wheel; the binary is called without its Python wrapper."""

    name = "zig"
    plain_loops = ("-fno-builtin", "-fno-unroll-loops", "-fno-vectorize")  # unrolled only larger

    def __init__(self, core: Core) -> None:
        super().__init__(core)
        # Otherwise functions that call only checks, which do not return, lose the address
        # that they return to. ARMv6-M's inline assembly needs the frame pointer's register.
        keep = "-fsanitize-recover=all" if core.isa.is_armv6m else "-fno-omit-frame-pointer"
        self.undefined_behaviour_checks = (
            *_CHECKS,
            "-fno-sanitize=function,vptr",
            # through pointers to variables of known size; an option of its own, or zig drops it
            "-fsanitize=local-bounds",
            "-fno-sanitize-trap=local-bounds",
            # an array at the end of a structure is of any length only if it says 0 or 1
            "-fstrict-flex-arrays=1",
            "-fno-sanitize-merge",
            keep,
        )

    @property
    def apart(self) -> tuple[str, ...]:
        """The options that give each variable a section of its own; clang merges some.

        -mno-global-merge is known for Arm only; this is the same for RISC-V.
        """
        return ("-mllvm", "-enable-global-merge=false")

    def _find(self) -> str:
        return zig_binary()

    def _version_arguments(self) -> tuple[str, ...]:
        return ("version",)

    def driver(self) -> Driver:
        """Return the commands that run Zig through Python, which knows where the wheel put it."""
        return Driver(
            command="python3 -m ziglang cc",
            compile_flags=self._compile_flags(),
            # no -nostdlib: there is no library for bare metal but the compiler's own
            link_flags=(*self._target(), "-Wl,--gc-sections", "-Wl,--entry=covp_reset"),
            libraries=(),
        )

    def _target(self) -> tuple[str, ...]:
        return ("-target", self.core.zig_target, f"-mcpu={self.core.zig_cpu}")

    def _compile_flags(self) -> tuple[str, ...]:
        return (*self._target(), *COMMON_FLAGS, _NO_SANITIZER, *self.core.zig_flags)

    def _compile_command(self, flags: Sequence[str]) -> list[str]:
        default = list(self._compile_flags())
        if any(flag.startswith("-fsanitize=") for flag in flags):
            default.remove(_NO_SANITIZER)  # zig lets it win over what follows
        return [self.binary, "cc", *default, *flags]

    def _link(self, script: Path, objects: Sequence[Path], out: Path) -> None:
        emulation = _LLD_EMULATION[self.core.architecture]
        command = [self.binary, "ld.lld", "-m", emulation, "-T", str(script), "--gc-sections"]
        command += ["--no-check-sections", "-o", str(out), *map(str, objects)]
        try:
            self._run(command, out.parent)
        except ToolchainError as error:
            if "undefined symbol __" not in str(error):
                raise
            # 2 s to build, so only for programs that divide 64-bit or use floats in software
            self._run([*command, str(self._compiler_rt())], out.parent)

    def _compiler_rt(self) -> Path:
        core = self.core
        key = content_key(self.version, core.zig_target, core.zig_cpu, "compiler_rt")
        found = cache.find("objects", f"{key}.a")
        if found is not None:
            return found
        source = Path(self.binary).resolve().parent / "lib" / "compiler_rt.zig"
        with temporary_folder("rt") as name:
            folder = Path(name)
            result = folder / "rt.a"
            command = [self.binary, "build-lib", "-target", core.zig_target]
            command += [f"-mcpu={core.zig_cpu}", "-O", "ReleaseFast", "-ffunction-sections"]
            command += ["-fstrip", "-fomit-frame-pointer", "--name", "covp_rt"]
            self._run([*command, str(source), f"-femit-bin={result}"], folder, cwd=folder)
            return cache.store("objects", f"{key}.a", result.read_bytes())

    def _ar(self) -> list[str]:
        return [self.binary, "ar"]


class Gcc(Toolchain):
    """A GNU cross compiler from the path."""

    name = "gcc"
    plain_loops = ("-fno-builtin", "-fno-tree-loop-distribute-patterns")
    undefined_behaviour_checks = (*_CHECKS, "-fno-sanitize=vptr", "-fno-crossjumping")

    def _find(self) -> str:
        if not self.core.gcc_prefix:
            raise ToolchainError(
                f"there is no GCC for the core {self.core.name}: use the toolchain zig"
            )
        command = f"{self.core.gcc_prefix}gcc"
        binary = shutil.which(command)
        if binary is None:
            arm = self.core.architecture == "arm"
            package = "gcc-arm-none-eabi" if arm else "gcc-riscv64-unknown-elf"
            raise ToolchainError(
                f"{command} is not installed: apt install {package}, or use the toolchain zig"
            )
        return binary

    def _version_arguments(self) -> tuple[str, ...]:
        return ("-dumpfullversion",)

    def _compile_command(self, flags: Sequence[str]) -> list[str]:
        return [self.binary, *self._compile_flags(), *flags]

    def _compile_flags(self) -> tuple[str, ...]:
        # folding equal functions into one would take names from signatures and profiles
        return (*self.core.gcc_flags, *COMMON_FLAGS, "-fno-ipa-icf")

    def driver(self) -> Driver:
        """Return the cross compiler of that name."""
        return Driver(
            command=f"{self.core.gcc_prefix}gcc",
            compile_flags=self._compile_flags(),
            link_flags=(*self._link_target(), "-nostdlib", "-static"),
            libraries=("-lgcc",),
        )

    def _link_target(self) -> tuple[str, ...]:
        # GCC finds its library by the architecture's exact spelling, and has none with _zicsr
        target = (flag.replace("_zicsr", "") for flag in self.core.gcc_flags)
        return (*target, "-nostartfiles", "-Wl,--gc-sections,--no-warn-rwx-segments")

    def _link(self, script: Path, objects: Sequence[Path], out: Path) -> None:
        command = [self.binary, *self._link_target(), "-nostdlib", "-static"]
        command += ["-Wl,--no-check-sections", "-T", str(script), "-o", str(out)]
        self._run([*command, *map(str, objects), "-lgcc"], out.parent)

    def _ar(self) -> list[str]:
        return [f"{self.core.gcc_prefix}ar"]


_TOOLCHAINS: dict[str, type[Toolchain]] = {"zig": Zig, "gcc": Gcc}


def get_toolchain(name: str, core: Core) -> Toolchain:
    """Return the toolchain of that name ("zig", "gcc") for a core.

    Raises:
        UsageError: no such toolchain.
        ToolchainError: it is not installed; the text says how to get it.
    """
    demand_name("toolchain", name, list(_TOOLCHAINS))
    toolchain = _TOOLCHAINS[name](core)
    assert toolchain.binary  # found now, before any work
    return toolchain


def toolchains_of(core: Core) -> list[Toolchain]:
    """Return those that there are for a core, whether or not they are installed."""
    return [made(core) for name, made in _TOOLCHAINS.items() if name != "gcc" or core.gcc_prefix]


_versions: dict[str, str] = {}
cache.stored.append(cache_upkeep.Evictor())


def _headers_of(
    source: SourceText, headers: Mapping[str, str], flags: Sequence[str]
) -> dict[str, str]:
    """Return the generated headers that a source may include: all that it, they or flags mention.

    Its object is then the same beside other headers. A file on disk may include others that do.
    """
    if source.path is not None:
        return dict(headers)
    found: dict[str, str] = {}
    texts = [source.text, *flags]
    while texts:
        text = texts.pop()
        more = {n: t for n, t in headers.items() if n not in found and n in text}
        found |= more
        texts += more.values()
    return dict(sorted(found.items()))


def _version_of(binary: str, arguments: Sequence[str]) -> str:
    """Return the version a compiler prints, asked once for each state of its file."""
    if binary in _versions:
        return _versions[binary]
    state = os.stat(binary)
    key = content_key(str(Path(binary).resolve()), str(state.st_mtime_ns), str(state.st_size))
    record = cache.load("versions", key)
    if record is None:
        done = subprocess.run([binary, *arguments], capture_output=True, text=True)
        if done.returncode:
            raise ToolchainError(f"{binary} does not run: {first_error(done.stderr, binary)}")
        record = done.stdout.strip().encode()
        cache.store("versions", key, record)
    _versions[binary] = record.decode()
    return _versions[binary]


def _file_key(path: Path) -> str:
    try:
        return content_key(path.read_bytes())
    except OSError:
        return "missing"
