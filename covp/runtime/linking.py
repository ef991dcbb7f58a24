"""Linking at addresses that the session chooses, and loading what comes out.

A first link at made-up addresses gives the sizes. Only when every section has found its place
is the image linked for good; a section that grew in the new place is placed again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from covp.chip.platform_file import Platform
from covp.compilers.elf import ElfImage, global_names
from covp.compilers.toolchain import SourceText, Toolchain, runtime_dir
from covp.device.base import LowLevelDevice
from covp.errors import CapacityError, ToolchainError
from covp.runtime.allocator import Block, LinearAllocator

ALIGNMENT = 16
FLASH_SECTIONS = (".text", ".rodata")
RAM_SECTIONS = (".data", ".bss")
SECTIONS = FLASH_SECTIONS + RAM_SECTIONS

MARGIN = 32
"""Bytes between pieces of memory where accesses are checked, at least."""
_GAP = "covp_gap"
_MERGED = (".rodata.str", ".rodata.cst")  # the linker merges equal ones
_CONTENTS = {
    ".text": "*(.text .text.*)",
    ".rodata": "*(.rodata .rodata.* .srodata .srodata.* .got .got.*)",
    ".data": "*(.data .data.* .sdata .sdata.*)",
    ".bss": "*(.bss .bss.* .sbss .sbss.* COMMON)",
}
_DROPPED = "*(.ARM.exidx* .ARM.extab* .eh_frame* .note.* .comment .riscv.attributes)"


def linker_script(
    addresses: Mapping[str, int],
    *,
    entry: str | None = None,
    keep: Sequence[str] = (),
    symbols: Mapping[str, int] | None = None,
    apart: Sequence[str] = (),
) -> str:
    """Write a linker script with one output section at each address.

    Args:
        addresses: of all `SECTIONS`.
        entry: the symbol that the rest is reached from.
        keep: further symbols that must stay.
        symbols: names of other images with their values (Thumb bit included).
        apart: input sections that are followed by `MARGIN` bytes, see `gaps`.
    """
    # in quotes, as GNU ld takes a name such as "add" for a hexadecimal number
    lines = [f'ENTRY("{entry}")'] if entry else []
    lines += [f'EXTERN("{name}")' for name in keep]
    lines += [f'"{name}" = 0x{value:08x};' for name, value in sorted((symbols or {}).items())]
    lines.append("SECTIONS\n{")
    for name, contents in _CONTENTS.items():
        own = [section for section in apart if section.startswith(f"{name}.")]
        spread = " ".join(f"*({section}) {_gap(name, n)}" for n, section in enumerate(own))
        lines.append(f"  {name} 0x{addresses[name]:08x} : {{ {spread} {contents} }}")
    lines.append(f"  /DISCARD/ : {{ {_DROPPED} }}\n}}\n")
    return "\n".join(lines)


def _gap(section: str, number: int) -> str:
    return f'"{_GAP}{section}.{number}" = .; . += {MARGIN};'


def gaps(elf: ElfImage) -> list[Block]:
    """Return the bytes between variables, of an image that was linked with some."""
    found = [one.address for name, one in elf.symbols.items() if name.startswith(_GAP)]
    return [Block(address, MARGIN) for address in sorted(found)]


def _variables(objects: Sequence[Path]) -> list[str]:
    """Return the sections of single variables in object files; libraries are left out."""
    found: dict[str, None] = {}
    for path in objects:
        if path.suffix != ".a":
            for section in ElfImage(path.read_bytes()).sections:
                if not section.name.startswith(_MERGED):
                    found[section.name] = None
    return list(found)


@dataclass(frozen=True)
class LoadedImage:
    """A linked ELF file and the memory it occupies."""

    path: Path
    elf: ElfImage
    blocks: Mapping[str, Block]

    def bytes_in(self, names: Sequence[str]) -> int:
        """Return bytes of the sections of these names."""
        return sum(self.blocks[name].size for name in names)


class ImageMemory:
    """The target memory that images and tensors are placed in.

    Args:
        platform: whose memory it is.
        margin: bytes that stay free around everything in it, and between the variables of code.
    """

    def __init__(self, platform: Platform, margin: int = 0) -> None:
        self.flash = LinearAllocator([r for r in platform.own_memory if r.kind == "flash"], margin)
        self.ram = LinearAllocator([r for r in platform.own_memory if r.kind == "ram"], margin)
        self.stack = self.ram.allocate(platform.stack_bytes, ALIGNMENT, "the stack")

    def of(self, section: str) -> LinearAllocator:
        """Return the allocator of a section's kind of memory."""
        return self.flash if section in FLASH_SECTIONS else self.ram

    def place(
        self,
        toolchain: Toolchain,
        objects: Sequence[Path],
        what: str,
        *,
        entry: str | None = None,
        keep: Sequence[str] = (),
        symbols: Mapping[str, int] | None = None,
    ) -> LoadedImage:
        """Link ``objects`` into free memory; nothing is written to the device.

        Raises:
            ToolchainError: an undefined symbol.
            CapacityError: a section does not fit; what was placed is given back.
        """

        apart = _variables(objects) if self.ram.margin else ()

        def link(addresses: Mapping[str, int]) -> Path:
            script = linker_script(addresses, entry=entry, keep=keep, symbols=symbols, apart=apart)
            return toolchain.link(objects, script)

        start = {name: self.of(name).regions[0].start for name in SECTIONS}
        sizes = _extents(ElfImage(link(start).read_bytes()))
        for _ in range(4):
            with self._allocate(sizes, what) as blocks:
                path = link({name: block.address for name, block in blocks.items()})
                elf = ElfImage(path.read_bytes())
                real = _extents(elf)
                if all(real[name][0] <= sizes[name][0] for name in SECTIONS):
                    return LoadedImage(path, elf, self._keep(blocks))
            sizes = {n: (max(real[n][0], sizes[n][0]), real[n][1]) for n in SECTIONS}
        raise ToolchainError(
            f"{what}: its sections change size with every address; cannot place it"
        )

    def release(self, image: LoadedImage) -> None:
        """Give an image's memory back."""
        for name, block in image.blocks.items():
            self.of(name).free(block)

    @contextmanager
    def _allocate(
        self, sizes: Mapping[str, tuple[int, int]], what: str
    ) -> Iterator[dict[str, Block]]:
        """Allocate blocks for all sections; those still in the dict at the end are given back."""
        blocks: dict[str, Block] = {}
        try:
            for name, (size, alignment) in sizes.items():
                demand = f"{what}: section {name}"
                blocks[name] = self.of(name).allocate(size, max(alignment, ALIGNMENT), demand)
            yield blocks
        except CapacityError as error:
            error.sections = {name: size for name, (size, _) in sizes.items()}
            raise
        finally:
            for name, block in blocks.items():
                self.of(name).free(block)

    @staticmethod
    def _keep(blocks: dict[str, Block]) -> dict[str, Block]:
        kept = dict(blocks)
        blocks.clear()
        return kept


def _extents(elf: ElfImage) -> dict[str, tuple[int, int]]:
    """Return size and alignment of each of `SECTIONS`."""
    found = dict.fromkeys(SECTIONS, (0, ALIGNMENT))
    for section in elf.sections:
        if section.name not in found:
            raise ToolchainError(f"section {section.name} has no place; put it into .text or .data")
        found[section.name] = (section.size, section.alignment)
    return found


def write_image(device: LowLevelDevice, elf: ElfImage) -> None:
    """Store an image's sections in the device's memory and clear its zero-initialised ones."""
    for section in elf.sections:
        device.write(section.address, bytes(section.size) if section.zero else section.data)


ENTRY, DONE, QUEUE, RETURN = "covp_enter", "covp_done", "covp_queue", "covp_call_return"
STACK_TOP = "covp_stack_top"

ARCHITECTURE_SUFFIX = {"arm": "arm_m", "riscv": "riscv", "x86": "x86"}
"""Of the names of assembly files."""


def place_runtime(
    toolchain: Toolchain, platform: Platform, memory: ImageMemory, ubsan: bool = False
) -> LoadedImage:
    """Compile and link the runtime for a platform (cached).

    Args:
        toolchain, platform: for code and memory map.
        memory: what is in use is known to it.
        ubsan: with the handlers of code that has the compiler's undefined-behaviour checks.
    """
    names = ["task_runner.c", f"enter_{ARCHITECTURE_SUFFIX[platform.core.architecture]}.S"]
    if ubsan:
        names.append("ubsan.S")
    sources = [SourceText.read(runtime_dir() / name) for name in names]
    objects = toolchain.compile(sources, flags=("-g1",)) + support_objects(toolchain)
    keep = global_names(objects)
    symbols = {STACK_TOP: memory.stack.end}
    return memory.place(toolchain, objects, "runtime", entry=ENTRY, keep=keep, symbols=symbols)


def support_objects(toolchain: Toolchain) -> list[Path]:
    """Compile workspace allocation and memcpy with its family."""
    workspace = SourceText.read(runtime_dir() / "workspace.c")
    memory = SourceText.read(runtime_dir() / "memory.c")
    plain = ("-g1", *toolchain.plain_loops)
    return [
        *toolchain.compile([workspace], flags=("-g1",)),
        *toolchain.compile([memory], flags=plain),
    ]


def runtime_library(toolchain: Toolchain) -> Path:
    """Build the library of mathematical functions; modules link what they use (cached)."""
    sources = [SourceText.read(runtime_dir() / name) for name in ("math.c", "math_elementary.c")]
    return toolchain.archive(toolchain.compile(sources, flags=("-g1",)))


def runtime_exports(image: LoadedImage) -> dict[str, int]:
    """Return the functions that modules may call, name to value with the Thumb bit."""
    hidden = {ENTRY, DONE, RETURN, QUEUE, STACK_TOP, "covp_call", "covp_run_tasks"}
    return {
        symbol.name: symbol.value
        for symbol in image.elf.symbols.values()
        if symbol.visible and symbol.function and symbol.name not in hidden
    }
