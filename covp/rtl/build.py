"""A core's RTL and covp's harness, made into a library for this machine and kept in the cache."""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path

from covp import cache
from covp.cache import content_key
from covp.errors import ToolchainError
from covp.host_compiler import HostBinary, build_for_host
from covp.rtl.cores import FOLDER, RtlCore
from covp.rtl.tools import Verilator, find_verilator, sources_of
from covp.temporary import temporary_folder

_HARNESS = Path(__file__).parent / "harness"
_RUNTIME = ("verilated.cpp", "verilated_threads.cpp")
# What Verilator's own makefile defines.
_SWITCHES = ("COVERAGE", "SC", "TIMING", "TRACE_FST", "TRACE_SAIF")
_LIBRARY = HostBinary(".so", ("-O2", "-fPIC", "-w"), ("-shared",))
_SPLIT = "30000"
"""Size from which Verilator begins another file: files are compiled in parallel."""


def library_of(name: str, core: RtlCore) -> Path:
    """The library with the core's model, made on first use: about a minute of processor time.

    Args:
        name: of the core, for messages and the file's name.
        core: its sources.

    Raises:
        ToolchainError: a package or Verilator is missing, or the sources are rejected.
    """
    verilator = find_verilator()
    rtl = sources_of(core.package)
    sources = [*(rtl / source for source in core.sources), FOLDER / core.wrapper]
    options = _options(core, rtl)
    key = content_key(
        *(part for path in sorted(_HARNESS.iterdir()) for part in (path.name, path.read_bytes())),
        *(path.read_bytes() for path in [*sources, *_headers(core, rtl)]),
        *(option.replace(str(rtl), "") for option in options),
        *(verilator.version, sys.platform, platform.machine(), *_LIBRARY.compile, _SPLIT),
    )
    file = f"{name}-{key}{_LIBRARY.suffix}"
    found = cache.find("rtl", file)
    if found is not None:
        return found
    with temporary_folder("rtl") as folder:
        made = Path(folder)
        _verilate(verilator, name, [*options, "--Mdir", str(made), *map(str, sources)])
        data = build_for_host(
            f"the RTL of {name}",
            [
                *sorted(made.glob("*.cpp")),
                *(verilator.root / "include" / source for source in _RUNTIME),
                _HARNESS / "harness.cpp",
            ],
            _LIBRARY,
            include=(made, verilator.root / "include", verilator.root / "include/vltstd", _HARNESS),
            flags=_flags(core),
        )
    return cache.store("rtl", file, data, mode=0o700)


def _headers(core: RtlCore, rtl: Path) -> list[Path]:
    return [path for folder in core.include for path in sorted((rtl / folder).glob("*.sv*"))]


def _options(core: RtlCore, rtl: Path) -> list[str]:
    return [
        *("--cc", "-O3", "--no-timing", "--top-module", "covp_core", "--prefix", "Vcovp_core"),
        *("--x-assign", "fast", "--x-initial", "fast", "--output-split", _SPLIT),
        *("-Wno-fatal", "-Wno-lint", "-Wno-style", "-Wno-BLKANDNBLK", "-Wno-UNOPTFLAT"),
        "-DSYNTHESIS",
        *(f"-D{define}" for define in core.defines),
        *(f"-G{name}={value}" for name, value in core.parameters.items()),
        *(f"-I{rtl / folder}" for folder in core.include),
    ]


def _flags(core: RtlCore) -> list[str]:
    return [
        "-w",
        *(f"-DVM_{switch}=0" for switch in _SWITCHES),
        "-DVM_TRACE=0",
        "-DVM_TRACE_VCD=0",
        f"-DCOVP_COMPRESSED={int(core.compressed)}",
        f"-DCOVP_CFU={int(core.custom_instructions)}",
        f'-DCOVP_BUS="{core.bus}.h"',
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
