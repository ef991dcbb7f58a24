"""The memory regions of a program's sections, for sessions and standalone firmware.

A program that does not fit is an error with what would help (`add_advice`).
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from covp.chip.platform_file import Platform, load_platform, platform_aliases, platform_names
from covp.codegen.program import Program
from covp.compilers.toolchain import Toolchain, split_sources
from covp.errors import CapacityError
from covp.runtime.linking import (
    ALIGNMENT,
    FLASH_SECTIONS,
    RAM_SECTIONS,
    SECTIONS,
    ImageMemory,
    LoadedImage,
    place_runtime,
    runtime_exports,
    runtime_library,
)


@dataclass(frozen=True)
class MemoryPlacement:
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
    def first(platform: Platform) -> MemoryPlacement:
        """Return the placement of all sections in the first region of their kind."""
        flash = dict.fromkeys(FLASH_SECTIONS, platform.flash.name)
        ram = dict.fromkeys(RAM_SECTIONS, platform.ram.name)
        return MemoryPlacement({**flash, **ram}, platform.ram.name)

    @staticmethod
    def of(program: Program, toolchain: Toolchain) -> MemoryPlacement:
        """Return where a session puts a program, which is compiled and linked for that.

        Raises:
            ToolchainError: its C does not compile or link.
            CapacityError: it does not fit; with what may help.
        """
        memory = ImageMemory(program.platform)
        runtime = place_runtime(toolchain, program.platform, memory)
        image = place_program(memory, toolchain, program, runtime_exports(runtime))
        blocks = {name: image.blocks[name] for name in SECTIONS}
        return MemoryPlacement(
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


_RUNTIME_BYTES = 4096
_SMALLEST_STACK = 512
_SHOWN = 3


def add_advice(error: CapacityError, program: Program) -> CapacityError:
    """Return the error with what would help added to its text.

    Args:
        error: of `ImageMemory.place`, with the sizes of the sections.
        program: what does not fit.
    """
    if error.kind is None:
        return error
    hints = list(_of_program(error, program)) + list(_of_platform(error, program.platform))
    boards = _with_room(error.sections, program)
    if boards:
        hints.append(f"platforms with room: {', '.join(boards[:_SHOWN])}")
    else:
        hints.append("no platform of covp's with such a core has room")
    text = f"{error}; what may help: {'; '.join(hints)}"
    return CapacityError(text, error.needed, error.available, error.kind, error.sections)


def _of_program(error: CapacityError, program: Program) -> Iterator[str]:
    expanded = program.graph.expanded_bytes
    if error.kind == "flash" and expanded:
        yield (
            f"its int8 weights under float activations (dynamic range) take {expanded} bytes more "
            "as float32: quantize the activations too"
        )
    if error.kind == "flash" and _could_fit(program):
        yield "--optimize size"


def _could_fit(program: Program) -> bool:
    """Return whether other schedules could fit the flash; constants keep their size."""
    flash = sum(r.bytes for r in program.platform.own_memory if r.kind == "flash") - _RUNTIME_BYTES
    return sum(tensor.nbytes for tensor in program.graph.tensors() if tensor.constant) < flash


def _of_platform(error: CapacityError, platform: Platform) -> Iterator[str]:
    excess = error.needed - error.available
    if error.kind == "ram" and excess <= platform.stack_bytes - _SMALLEST_STACK:
        yield f"a smaller `stack` in the platform file, now {platform.stack_bytes} bytes"
    if platform.name not in platform_names():
        yield f"a further region of kind {error.kind} in the platform file, if the chip has one"


@functools.cache
def _platforms_by_memory() -> tuple[Platform, ...]:
    """Return the shipped platforms, the smallest memory first."""
    platforms = [load_platform(n) for n in platform_names() if n not in platform_aliases()]
    return tuple(sorted(platforms, key=lambda p: sum(region.bytes for region in p.memory)))


def _with_room(sections: Mapping[str, int], program: Program) -> list[str]:
    """Name shipped platforms with a core of the same architecture and room for the sections."""
    mine = program.platform
    return [
        platform.name
        for platform in _platforms_by_memory()
        if platform.core.architecture == mine.core.architecture
        and (platform.accelerators is not None or not program.accelerators)
        and _has_room(platform, sections, is_same_core=platform.core == mine.core)
    ]


def _has_room(platform: Platform, sections: Mapping[str, int], is_same_core: bool) -> bool:
    """Return whether all sections fit; another core's code may be a quarter larger."""
    memory = ImageMemory(platform)
    try:
        memory.flash.allocate(_RUNTIME_BYTES, ALIGNMENT, "runtime")
        for name, size in sections.items():
            room = size if is_same_core or name != ".text" else size * 5 // 4
            memory.of(name).allocate(room, ALIGNMENT, name)
    except CapacityError:
        return False
    return True
