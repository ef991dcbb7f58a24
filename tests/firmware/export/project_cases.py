"""Exported projects that several tests look at."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from covp.evaluation import build
from covp.firmware import Project


@cache
def project(model: str, platform: str, compiler: str = "zig", accelerator: str = "") -> Project:
    """A model's project with a random sample."""
    accelerators = (accelerator,) if accelerator else ()
    made = build(model, platform, accelerators, toolchain=compiler, allow_slower=True)
    return Project.of(made)


def flat_files(made: Project) -> dict[str, str]:
    """All files that are compiled or included, name without folders to text."""
    files = {**made.library.files, **made.sample, **made.firmware}
    return {name.rpartition("/")[2]: text for name, text in files.items()}


def write(files: Mapping[str, str], folder: Path) -> None:
    """Write files with their folders."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
