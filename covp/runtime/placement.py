"""The memory regions of a program's sections, for sessions and standalone firmware."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from covp.chip.platform_file import Platform
from covp.codegen.program import Program
from covp.compilers.toolchain import Toolchain, split_sources
from covp.errors import CapacityError
from covp.runtime.capacity import add_advice
from covp.runtime.image import place_runtime, runtime_exports, runtime_library
from covp.runtime.linking import (
    FLASH_SECTIONS,
    RAM_SECTIONS,
    SECTIONS,
    ImageMemory,
    LoadedImage,
)


@dataclass(frozen=True)
class Placement:
    """The memory regions of a program.

    Attributes:
        regions: name of the region of each of `SECTIONS`; RAM for the arena is in ".bss".
        stack: the region of the stack.
        flash_bytes: of code, constants and initial values; the simulation's runtime is left out.
        ram_bytes: of variables and the arena; the stack is left out.
    """

    regions: Mapping[str, str]
    stack: str
    flash_bytes: int = 0
    ram_bytes: int = 0

    @staticmethod
    def first(platform: Platform) -> Placement:
        """Return the placement of all sections in the first region of their kind."""
        flash = dict.fromkeys(FLASH_SECTIONS, platform.flash.name)
        ram = dict.fromkeys(RAM_SECTIONS, platform.ram.name)
        return Placement({**flash, **ram}, platform.ram.name)

    @staticmethod
    def of(program: Program, toolchain: Toolchain) -> Placement:
        """Return where a session puts a program, which is compiled and linked for that.

        Raises:
            ToolchainError: its C does not compile or link.
            CapacityError: it does not fit; with what may help.
        """
        memory = ImageMemory(program.platform)
        runtime = place_runtime(toolchain, program.platform, memory)
        image = place_program(memory, toolchain, program, runtime_exports(runtime))
        blocks = {name: image.blocks[name] for name in SECTIONS}
        return Placement(
            {name: _region(program.platform, block.address) for name, block in blocks.items()},
            _region(program.platform, memory.stack.address),
            image.bytes_in((*FLASH_SECTIONS, ".data")),
            image.bytes_in(RAM_SECTIONS),
        )


def _region(platform: Platform, address: int) -> str:
    region = platform.region_of(address)
    assert region is not None
    return region.name


def place_program(
    memory: ImageMemory,
    toolchain: Toolchain,
    program: Program,
    symbols: Mapping[str, int],
    keep: Sequence[str] = (),
    flags: Sequence[str] = (),
) -> LoadedImage:
    """Compile a program and link it into free memory; nothing is written to a device.

    Args:
        memory: what is in use is known to it.
        toolchain: that compiles and links.
        program: what is placed.
        symbols: of the runtime, see `runtime_exports`.
        keep: functions that must stay beside those of an inference.
        flags: compiler options before the program's own.

    Raises:
        ToolchainError: its C does not compile or link.
        CapacityError: a section does not fit, with what may help.
    """
    sources = split_sources(program.sources)
    objects = toolchain.compile(*sources, flags=("-g1", *flags, *program.flags))
    kept = (program.run_function, program.arena_symbol, program.reset_function, *keep)
    try:
        return memory.place(
            toolchain,
            [*objects, runtime_library(toolchain)],
            program.name,
            keep=[name for name in kept if name],
            symbols=symbols,
        )
    except CapacityError as error:
        raise add_advice(error, program) from None
