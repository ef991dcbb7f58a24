"""The runtime that lies in the target's memory: entry stub, task runner, workspace, memcpy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from string import Template

from covp.errors import UsageError
from covp.platform_file import Platform
from covp.runtime.elf import global_names
from covp.runtime.linking import ImageMemory, LoadedImage
from covp.toolchain import Source, Toolchain, runtime_dir

ENTRY, DONE, QUEUE, RETURN = "covp_enter", "covp_done", "covp_queue", "covp_call_return"
STACK_TOP = "covp_stack_top"

_SUFFIX = {"arm": "arm_m", "riscv": "riscv", "x86": "x86"}
# A loop that copies must not become a call of the function it is in; unrolled it is only larger.
_PLAIN_LOOPS = {
    "zig": ("-fno-builtin", "-fno-unroll-loops", "-fno-vectorize"),
    "gcc": ("-fno-builtin", "-fno-tree-loop-distribute-patterns"),
}


def start_files(platform: Platform) -> tuple[str, str]:
    """The start-up files of a program without a host.

    Raises:
        UsageError: the platform is this machine, on which none starts.
    """
    architecture = platform.core.architecture
    if architecture == "x86":
        raise UsageError(
            f"{platform.name} is this machine: there are no programs for it that stand alone; "
            "take the platform of a microcontroller"
        )
    return "startup.c", f"startup_{_SUFFIX[architecture]}.S"


def plain_loops(toolchain: Toolchain) -> tuple[str, ...]:
    """Compiler options for memcpy and its family."""
    return _PLAIN_LOOPS[toolchain.name]


def place_runtime(toolchain: Toolchain, platform: Platform, memory: ImageMemory) -> LoadedImage:
    """Compile and link the runtime for a platform (cached)."""
    names = ["task_runner.c", f"enter_{_SUFFIX[platform.core.architecture]}.S"]
    sources = [Source.read(runtime_dir() / name) for name in names]
    objects = toolchain.compile(sources, flags=("-g1",)) + _support_objects(toolchain)
    keep = global_names(objects)
    symbols = {STACK_TOP: memory.stack.end}
    return memory.place(toolchain, objects, "runtime", entry=ENTRY, keep=keep, symbols=symbols)


def _support_objects(toolchain: Toolchain) -> list[Path]:
    """Workspace allocation and memcpy with its family."""
    workspace = Source.read(runtime_dir() / "workspace.c")
    memory = Source.read(runtime_dir() / "memory.c")
    plain = ("-g1", *plain_loops(toolchain))
    return [
        *toolchain.compile([workspace], flags=("-g1",)),
        *toolchain.compile([memory], flags=plain),
    ]


def runtime_library(toolchain: Toolchain) -> Path:
    """The mathematical functions, of which each module links what it uses (cached)."""
    sources = [Source.read(runtime_dir() / name) for name in ("math.c", "math_elementary.c")]
    return toolchain.archive(toolchain.compile(sources, flags=("-g1",)))


def standalone_script(platform: Platform) -> str:
    """The linker script of a program that runs without a host (device_runtime/standalone.ld)."""
    rights = {"flash": "rx", "ram": "rwx"}
    memory = [
        f"  {region.name} ({rights[region.kind]}) : "
        f"ORIGIN = 0x{region.start:08x}, LENGTH = {region.bytes}"
        for region in platform.memory
    ]
    template = Template((runtime_dir() / "standalone.ld").read_text(encoding="utf-8"))
    return template.substitute(
        name=platform.name,
        memory="\n".join(memory),
        flash=platform.flash.name,
        ram=platform.ram.name,
        stack=platform.stack_bytes,
    )


def link_standalone(
    toolchain: Toolchain,
    platform: Platform,
    sources: Sequence[Source],
    flags: Sequence[str] = (),
    headers: Mapping[str, str] | None = None,
) -> Path:
    """A whole firmware image of C sources with a ``main``: vectors, start-up code, libraries.

    It starts at symbol ``covp_reset`` and ends at ``covp_exit`` with main's result in
    ``covp_exit_status``.

    Raises:
        ToolchainError: it does not compile or link, or overflows a memory region.
        UsageError: see `start_files`.
    """
    folder = runtime_dir()
    start = [folder / name for name in start_files(platform)]
    objects = toolchain.compile(sources, headers, flags=("-g", *flags))
    objects += toolchain.compile([Source.read(path) for path in start], flags=("-g1",))
    objects += [*_support_objects(toolchain), runtime_library(toolchain)]
    return toolchain.link(objects, standalone_script(platform))


def runtime_exports(image: LoadedImage) -> dict[str, int]:
    """The functions that modules may call, name to value with the Thumb bit."""
    hidden = {ENTRY, DONE, RETURN, QUEUE, STACK_TOP, "covp_call", "covp_run_tasks"}
    return {
        symbol.name: symbol.value
        for symbol in image.elf.symbols.values()
        if symbol.visible and symbol.function and symbol.name not in hidden
    }
