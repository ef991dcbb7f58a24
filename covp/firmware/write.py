"""A project written to a folder in a layout, or linked to an ELF file."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from covp.base.temporary import temporary_folder
from covp.compilers.toolchain import split_sources
from covp.errors import UsageError
from covp.firmware.layouts import find_layout
from covp.firmware.manifest import MANIFEST, manifest, spdx
from covp.firmware.project import Project
from covp.runtime.standalone import link_standalone, start_files


def export_project(project: Project, folder: Path, layout: str = "make") -> list[Path]:
    """Write a project: all of its files or none.

    Args:
        project: what is written.
        folder: must not exist, or be empty.
        layout: name of the layout, see `covp.firmware.layouts`.

    Returns:
        The files, relative to the folder.

    Raises:
        UsageError: there is something in the folder, it cannot be written, or no layout has that
            name.
        CapacityError: the model does not fit the platform.
    """
    arrange = find_layout(layout)
    try:
        taken = folder.exists() and (not folder.is_dir() or any(folder.iterdir()))
    except OSError as error:
        raise UsageError(f"{folder} cannot be written: {error.strerror}") from None
    if taken:
        raise UsageError("exists already; name a folder that does not exist", where=folder)
    files = {
        name: content if isinstance(content, bytes) else content.encode()
        for name, content in arrange(project).items()
    }
    files[f"{project.library.name}.spdx.json"] = spdx(project.program, files).encode()
    files[MANIFEST] = manifest(project, files).encode()
    try:
        _write(files, folder)
    except OSError as error:
        raise UsageError(f"{folder} cannot be written: {error.strerror or error}") from None
    return sorted(map(Path, files))


def _write(files: Mapping[str, bytes], folder: Path) -> None:
    """Write all files or none."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with temporary_folder("export", folder.parent) as temporary:
        made = Path(temporary) / "project"
        for name, content in files.items():
            path = made / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        if folder.exists():
            folder.rmdir()
        shutil.move(made, folder)


def link_project(project: Project) -> Path:
    """Return the ELF file that the project's Makefile makes, in covp's cache.

    Raises:
        ToolchainError: it does not compile, or does not fit the memory.
        CapacityError: the model does not fit the platform.
    """
    files = {**project.library.files, **project.sample, **project.firmware}
    given = {*start_files(project.program.platform), "memory.c", "workspace.c"}
    texts = {
        Path(name).name: text
        for name, text in files.items()
        if not name.startswith("runtime/include/") and Path(name).name not in given
    }
    sources, headers = split_sources(texts)
    return link_standalone(
        project.toolchain,
        project.program.platform,
        sources,
        project.program.flags,
        headers,
        placement=project.placement,
    )
