"""`add_advice`: the error of a program that does not fit, with what would help."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping

from covp.chip.platform_file import Platform, load_platform, platform_aliases, platform_names
from covp.codegen.program import Program
from covp.errors import CapacityError
from covp.runtime.linking import ALIGNMENT, ImageMemory

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
def _shipped() -> tuple[Platform, ...]:
    """Return the shipped platforms, the smallest memory first."""
    platforms = [load_platform(n) for n in platform_names() if n not in platform_aliases()]
    return tuple(sorted(platforms, key=lambda p: sum(region.bytes for region in p.memory)))


def _with_room(sections: Mapping[str, int], program: Program) -> list[str]:
    """Name shipped platforms with a core of the same architecture and room for the sections."""
    mine = program.platform
    return [
        platform.name
        for platform in _shipped()
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
