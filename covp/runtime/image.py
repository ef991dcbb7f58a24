"""The runtime that lies in the target's memory: entry stub, task runner, workspace, memcpy."""

from __future__ import annotations

from pathlib import Path

from covp.chip.platform_file import Platform
from covp.compilers.elf import global_names
from covp.compilers.toolchain import SourceText, Toolchain, runtime_dir
from covp.runtime.linking import ImageMemory, LoadedImage

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
