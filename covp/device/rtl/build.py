"""A core's RTL and covp's harness, made into a library for this machine and kept in the cache."""

from __future__ import annotations

from pathlib import Path

from covp.base import cache
from covp.base.cache import content_key
from covp.base.temporary import temporary_folder
from covp.chip.cores import Core
from covp.compilers.host_compiler import host_key
from covp.compilers.rtl_sources import RtlSources
from covp.compilers.verilator import LIBRARY, NO_EXTRA, QUIET, WAVES, find_verilator
from covp.device.rtl.cores import BUSES, RtlCore, find_sources, rtl_of
from covp.hardware.custom_instruction import STATE_HEADER

_HARNESS = Path(__file__).parent / "harness"
_CACHES = Path(__file__).parents[1] / "machine" / "cache_lines.h"
_INCLUDE = _HARNESS, _CACHES.parent, STATE_HEADER.parent


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
    format_ = WAVES[wave] if wave else NO_EXTRA
    options = [*_options(rtl, sources), *format_.options]
    flags = _flags(core, rtl)
    harness = [
        *sorted(path for path in _HARNESS.rglob("*") if path.is_file()),
        _CACHES,
        STATE_HEADER,
    ]
    key = content_key(
        *(part for path in harness for part in (path.name, path.read_bytes())),
        *sources.contents(),
        *([] if rtl.bus in BUSES else [Path(rtl.bus).read_bytes()]),
        *(option.replace(str(sources.root), "").replace(str(_HARNESS), "") for option in options),
        *(*flags, verilator.version, *host_key(), *LIBRARY.compile),
    )
    file = f"{core.name}-{key}{LIBRARY.suffix}"
    found = cache.find("rtl", file)
    if found is not None:
        return found
    with temporary_folder("rtl") as folder:
        made = Path(folder)
        sources = sources.patched(made)
        files = map(str, sources.files)
        options = [*_options(rtl, sources), *format_.options]
        verilator.translate(core.name, [*options, "--Mdir", str(made), *files])
        data = verilator.build(
            f"the RTL of {core.name}" + (" with waveforms" if wave else ""),
            made,
            _HARNESS / "harness.cpp",
            _INCLUDE,
            flags,
            format_,
        )
    return cache.store("rtl", file, data, mode=0o700)


def _options(rtl: RtlCore, sources: RtlSources) -> list[str]:
    ports = [BUSES.get(rtl.bus, "COVP_OWN_BUS"), *["COVP_CFU"] * rtl.custom_instructions]
    return [
        *(*QUIET, "--top-module", "covp_core", "--prefix", "Vcovp_core"),
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
