"""The runtime that lies in the target's memory: entry stub, task runner, workspace, memcpy."""

from __future__ import annotations

from pathlib import Path

from covp.platform_file import Platform
from covp.runtime.elf import global_names
from covp.runtime.linking import ImageMemory, LoadedImage
from covp.toolchain import Source, Toolchain, runtime_dir

ENTRY, DONE, QUEUE, RETURN = "covp_enter", "covp_done", "covp_queue", "covp_call_return"
STACK_TOP = "covp_stack_top"

_ENTER = {"arm": "enter_arm_m.S", "riscv": "enter_riscv.S"}
# A loop that copies must not become a call of the function it is in; unrolled it is only larger.
_PLAIN_LOOPS = {
    "zig": ("-fno-builtin", "-fno-unroll-loops", "-fno-vectorize"),
    "gcc": ("-fno-builtin", "-fno-tree-loop-distribute-patterns"),
}


def place_runtime(toolchain: Toolchain, platform: Platform, memory: ImageMemory) -> LoadedImage:
    """Compile and link the runtime for a platform (cached)."""
    folder = runtime_dir()
    names = ["task_runner.c", "workspace.c", _ENTER[platform.core.architecture]]
    objects = toolchain.compile([Source.read(folder / name) for name in names], flags=("-g1",))
    plain = ("-g1", *_PLAIN_LOOPS[toolchain.name])
    objects += toolchain.compile([Source.read(folder / "memory.c")], flags=plain)
    keep = global_names(objects)
    symbols = {STACK_TOP: memory.stack.end}
    return memory.place(toolchain, objects, "runtime", entry=ENTRY, keep=keep, symbols=symbols)


def runtime_library(toolchain: Toolchain) -> Path:
    """The mathematical functions, of which each module links what it uses (cached)."""
    source = Source.read(runtime_dir() / "math.c")
    return toolchain.archive(toolchain.compile([source], flags=("-g1",)))


def runtime_exports(image: LoadedImage) -> dict[str, int]:
    """What modules may call, name to value with the Thumb bit."""
    hidden = {ENTRY, DONE, RETURN, QUEUE, STACK_TOP, "covp_call", "covp_run_tasks"}
    return {
        symbol.name: symbol.value
        for symbol in image.elf.symbols.values()
        if symbol.visible and symbol.function and symbol.name not in hidden
    }
