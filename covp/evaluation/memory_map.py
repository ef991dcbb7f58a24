"""`memory_map`: what lies where in the target's memory while a program is loaded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from covp.chip.platform_file import Region
from covp.codegen.program import Program
from covp.compilers.elf import ElfImage
from covp.runtime.allocator import Block
from covp.runtime.linking import LoadedImage
from covp.runtime.session import Session

_SECTIONS = {
    ".text": "code",
    ".rodata": "constants",
    ".data": "initialised variables",
    ".bss": "variables",
}


@dataclass(frozen=True)
class Place:
    """A piece of memory that is in use.

    Attributes:
        what: such as "arena", "stack", "model: constants", "runtime: code".
        address: of its first byte.
        bytes: its size.
    """

    what: str
    address: int
    bytes: int


@dataclass(frozen=True)
class MemoryMap:
    """The memory of a session with one program.

    Attributes:
        places: all pieces in use, by address.
        code_bytes: of the machine code of each function of the program.
    """

    places: tuple[Place, ...] = ()
    code_bytes: Mapping[str, int] | None = None


NO_MEMORY_MAP = MemoryMap()
"""Of what was not loaded."""


def memory_map(session: Session, program: Program) -> MemoryMap:
    """Return the memory of a session in which the runtime and then the program were loaded.

    Args:
        session: with the program loaded.
        program: whose arena and functions are told apart.
    """
    runtime, loaded = session.images
    places = [
        Place("stack", session.image_memory.stack.address, session.image_memory.stack.size),
        *_places("runtime", runtime),
        *_places("model", loaded, _arena(loaded.elf, program)),
    ]
    functions = {s.name: s.size for s in loaded.elf.symbols.values() if s.function}
    return MemoryMap(tuple(sorted(places, key=lambda place: place.address)), functions)


def _arena(elf: ElfImage, program: Program) -> Block | None:
    symbol = elf.symbols.get(program.arena_symbol)
    return None if symbol is None else Block(symbol.address, symbol.size)


def _places(owner: str, image: LoadedImage, arena: Block | None = None) -> Iterator[Place]:
    """Yield the sections of an image that are not empty; the arena is a piece of its own."""
    for section, block in image.blocks.items():
        what = f"{owner}: {_SECTIONS[section]}"
        if arena is None or not block.address <= arena.address < block.end:
            parts = [(what, block.address, block.end)]
        else:
            parts = [
                (what, block.address, arena.address),
                ("arena", arena.address, arena.end),
                (what, arena.end, block.end),
            ]
        yield from (Place(name, start, end - start) for name, start, end in parts if end > start)


def holds(region: Region, place: Place) -> bool:
    """Return whether a ``region`` has the first byte of a ``place``."""
    return region.start <= place.address < region.end
