"""`Firmware`: the image of one core, built from C or read from an ELF file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from covp.chip.platform_file import FIRST, Platform
from covp.codegen.program import Program
from covp.compilers.elf import Symbol
from covp.compilers.toolchain import Source, get_toolchain, split_sources
from covp.device.debug.program_file import ProgramFile, read_program
from covp.errors import ToolchainError, UsageError
from covp.firmware.library import Library
from covp.firmware.multicore.platform_header import NAME, platform_header
from covp.runtime.standalone import link_standalone

_END = "covp_exit"
_NOWHERE = 1 << 32  # no instruction lies there


@dataclass(frozen=True)
class Firmware:
    """An image that lies in its core's own memory.

    Attributes:
        core: name of the core.
        path: the ELF file.
        program: what is loaded of it.
        symbols: by name.
        model: that was compiled into it; its accelerators are wanted on the bus.
    """

    core: str
    path: Path
    program: ProgramFile
    symbols: Mapping[str, Symbol]
    model: Program | None = None

    @property
    def ends(self) -> bool:
        """Whether there is a place where the core has finished."""
        return _END in self.symbols

    @property
    def stop(self) -> int:
        """The place where the core has finished; beyond all addresses where there is none."""
        return self.symbols[_END].address if self.ends else _NOWHERE

    def phases(self) -> list[tuple[int, int]]:
        """Addresses at which the model's next phase begins.

        Phase 0 is all other code, 1 the function that calls the layers, 2 the first layer, with all
        that it calls. Control comes back to a caller at some instruction of it: all are marked.
        """
        if self.model is None:
            return []
        name = self.model.name
        callers = {f"{name}_run": 0, f"{name}_invoke": 0, self.model.run_function: 1}
        marks = [
            (address, phase)
            for function, phase in callers.items()
            if function in self.symbols
            for address in _halfwords(self.symbols[function])
        ]
        for function in (self.model.startup_function, self.model.keep_function):
            if function in self.symbols:
                marks.append((self.symbols[function].address, 1))
        layers = [layer.function for layer in self.model.layers]
        return marks + [(self.symbols[f].address, n) for n, f in enumerate(layers, 2)]

    def bytes_in(self, platform: Platform) -> dict[str, int]:
        """Bytes of the image by name of the ``platform``'s memory, its stack included."""
        found: dict[str, int] = {}
        for _, address, size in self.program.places:
            region = platform.region_of(address, size)
            if region is not None:
                found[region.name] = found.get(region.name, 0) + size
        return found


def build_firmware(
    platform: Platform,
    core: str,
    sources: Sequence[str | Path] | Mapping[str, str],
    model: Program | None = None,
    flags: Sequence[str] = (),
    toolchain: str = "zig",
) -> Firmware:
    """Compile and link the firmware of a core; it starts at its reset and ends when main returns.

    Args:
        platform: with all of its cores.
        core: name of the core.
        sources: paths of C and assembly files, whose folders are searched for headers; or texts by
            file name, headers among them. ``covp_platform.h`` has the platform's addresses.
        model: compiled for this core; its library (``NAME.h``: ``NAME_init``, ``NAME_run``) is part
            of the image.
        flags: further compiler options.
        toolchain: "zig" or "gcc".

    Raises:
        ToolchainError: it does not compile, or does not fit the core's own memory.
        UsageError: a file cannot be read, or the model was compiled for something else.
        PlatformError: there is no such core.
    """
    own = platform.for_core(core)
    if model is not None:
        _demand_core(platform, core, model)
    units, headers, folders = _units(sources)
    if model is not None:
        library = {Path(name).name: text for name, text in Library.of(model).files.items()}
        more, own_headers = split_sources(library)
        units, headers, flags = [*units, *more], headers | own_headers, (*model.flags, *flags)
    try:
        path = link_standalone(
            get_toolchain(toolchain, own.core),
            own,
            units,
            flags,
            {**headers, NAME: platform_header(platform, core)},
            folders,
        )
    except ToolchainError as error:
        raise ToolchainError(f"core {core}: {error}") from None
    return read_firmware(platform, core, path, model)


def read_firmware(
    platform: Platform, core: str, path: Path, model: Program | None = None
) -> Firmware:
    """The firmware of a core from an ELF file, which any tool may have made.

    Args:
        platform: with all of its cores.
        core: name of the core.
        path: of the file.
        model: that was compiled into it, if any.

    Raises:
        UsageError: it cannot be read, is for another architecture, or some of it lies outside the
            core's own memory.
        PlatformError: there is no such core.
    """
    own = platform.for_core(core)
    program = read_program(path, own)
    stored = [(name, address, len(data)) for name, address, data in program.pieces]
    for name, address, size in (*program.places, *stored):
        if own.region_of(address, size) is None:
            raise UsageError(
                f"core {core}: section {name} at 0x{address:08x} ({size} bytes) lies "
                f"{_where(platform, address)}; its own memory is "
                f"{', '.join(region.name for region in own.memory)}"
            )
    return Firmware(core, path, program, program.symbols, model)


def _halfwords(function: Symbol) -> range:
    return range(function.address, function.address + function.size, 2)


def _units(
    sources: Sequence[str | Path] | Mapping[str, str],
) -> tuple[list[Source], dict[str, str], list[Path]]:
    """Files to compile, headers, and folders that are searched for others."""
    if isinstance(sources, Mapping):
        return *split_sources(sources), []
    if isinstance(sources, str | Path):
        raise UsageError("sources must be a list of paths, or a dictionary of texts by file name")
    units = [Source.read(Path(path)) for path in sources]
    folders = dict.fromkeys(unit.path.parent for unit in units if unit.path is not None)
    return units, {}, list(folders)


def _demand_core(platform: Platform, core: str, model: Program) -> None:
    fitting = [platform.for_core(core), *([platform] if core == FIRST else [])]
    if model.platform not in fitting:
        raise UsageError(
            f"core {core}: {model.name} was compiled for {model.platform.name}; compile it for "
            f"load_platform({platform.name!r}).for_core({core!r})"
        )


def _where(platform: Platform, address: int) -> str:
    """The owner of an address."""
    region = platform.region_of(address)
    if region is None:
        return "outside the memory"
    for core in platform.core_names:
        if region in platform.for_core(core).memory:
            return f"in {region.name}, which is core {core}'s"
    return f"in {region.name}, which is shared"
