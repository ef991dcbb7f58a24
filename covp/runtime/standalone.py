"""Programs without a host: start-up files, the linker script, a whole firmware image."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from string import Template

from covp.chip.platform_file import FIRST, Platform
from covp.compilers.toolchain import SourceText, Toolchain, runtime_dir
from covp.errors import UsageError
from covp.runtime.linking import ARCHITECTURE_SUFFIX, runtime_library, support_objects
from covp.runtime.placement import MemoryPlacement


def start_files(platform: Platform) -> tuple[str, str]:
    """Name the start-up files of a program without a host.

    Raises:
        UsageError: the platform is this machine, on which none starts.
    """
    architecture = platform.core.architecture
    if architecture == "x86":
        raise UsageError(
            f"{platform.name} is this machine: there are no programs for it that stand alone; "
            "take the platform of a microcontroller"
        )
    return "startup.c", f"startup_{ARCHITECTURE_SUFFIX[architecture]}.S"


def standalone_script(platform: Platform, placement: MemoryPlacement | None = None) -> str:
    """Write the linker script of a program without a host (device_runtime/standalone.ld).

    Args:
        platform: whose memory it is.
        placement: the region of each section; by default the first of its kind.
    """
    rights = {"flash": "rx", "ram": "rwx"}
    placed = placement or MemoryPlacement.first(platform)
    memory = [
        f"  {region.name} ({rights[region.kind]}) : "
        f"ORIGIN = 0x{region.start:08x}, LENGTH = {region.bytes}"
        for region in platform.own_memory
    ]
    template = Template((runtime_dir() / "standalone.ld").read_text(encoding="utf-8"))
    return template.substitute(
        name=platform.name,
        memory="\n".join(memory),
        flash=platform.flash.name,
        stack=placed.stack,
        stack_bytes=platform.stack_bytes,
        **{name[1:]: region for name, region in placed.regions.items()},
    )


def start_sources(platform: Platform) -> list[SourceText]:
    """Read the start-up files, with vectors for the lines of the platform's peripherals."""
    files = [SourceText.read(runtime_dir() / name) for name in start_files(platform)]
    own = [one.irq for one in platform.peripherals if one.irq is not None and one.core == FIRST]
    if not own:
        return files
    lines = max(own) + 1
    define = f"#define COVP_LINES {lines} /* of the platform's peripherals */\n"
    return [
        SourceText(file.name, define + file.text) if file.name.endswith(".S") else file
        for file in files
    ]


def link_standalone(
    toolchain: Toolchain,
    platform: Platform,
    sources: Sequence[SourceText],
    flags: Sequence[str] = (),
    headers: Mapping[str, str] | None = None,
    include: Sequence[Path] = (),
    placement: MemoryPlacement | None = None,
) -> Path:
    """Link a whole firmware image of C sources with a ``main``.

    It starts at symbol ``covp_reset`` and ends at ``covp_exit`` with main's result in
    ``covp_exit_status``.

    Args:
        toolchain, platform: it is for.
        sources: C and assembly files.
        flags: further compiler options.
        headers: files that the sources include, name to text.
        include: folders of headers.
        placement: the region of each section; by default the first of its kind.

    Raises:
        ToolchainError: it does not compile or link, or overflows a memory region.
        UsageError: see `start_files`.
    """
    objects = toolchain.compile(sources, headers, include=include, flags=("-g", *flags))
    objects += toolchain.compile(start_sources(platform), flags=("-g1",))
    objects += [*support_objects(toolchain), runtime_library(toolchain)]
    return toolchain.link(objects, standalone_script(platform, placement))
