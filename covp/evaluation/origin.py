"""`origin`: all that a run's figures depend on, so that it can be run again."""

from __future__ import annotations

import functools
import hashlib
import json
import re
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec

from covp.accelerator.registry import at_folder
from covp.base.request import DEFAULT_BUILD, BuildOptions
from covp.building.builder import Build
from covp.building.platform_content import platform_content
from covp.chip.platform_file import Platform, load_platform, platform_names
from covp.compilers.toolchain import get_toolchain
from covp.evaluation.check import Check
from covp.evaluation.documents import (
    OriginAccelerator,
    OriginCompiler,
    OriginCovp,
    OriginInputs,
    OriginModel,
    OriginPlatform,
    OriginRecord,
    OriginRun,
)
from covp.evaluation.sample import Sample

_FILE = re.compile(r"(?:\w+=)?(.+\.py)(?::|$)")


def origin(made: Build, sample: Sample, compiler: str, device: str, check: Check) -> OriginRecord:
    """Return what a run's figures depend on.

    Args:
        made: what ran.
        sample: its inputs.
        compiler: name and version.
        device: what it ran on.
        check: how it was compared.
    """
    flags = (*get_toolchain(made.toolchain, made.platform.core).driver().compile_flags,)
    schedules = [(layer.index, layer.target, layer.schedule) for layer in made.program.layers]
    return OriginRecord(
        covp=OriginCovp(version=version("covp"), commit=commit()),
        model=_model(made),
        platform=_platform(made.platform),
        accelerators=[_accelerator(request) for request in made.accelerators],
        inputs=OriginInputs(
            seed=None if sample.name == "given" else sample.seed,
            sha256=_digest(b"".join(array.tobytes() for array in sample.inputs)),
        ),
        compiler=OriginCompiler(version=compiler, flags=[*flags, *made.program.flags]),
        schedules_sha256=_digest(json.dumps(schedules).encode()),
        build=_unusual_options(made.options),
        run=OriginRun(
            device=device,
            # beside the layers, the source is compared by default alone
            check=None if check.level == "layers" and check.source else check.level,
            sanitize=check.sanitized,
            ubsan=check.ubsan,
        ),
    )


def _unusual_options(options: BuildOptions) -> dict[str, Any]:
    """Return the options that are not the usual ones, as JSON."""
    given, usual = msgspec.to_builtins(options), msgspec.to_builtins(DEFAULT_BUILD)
    return {name: value for name, value in given.items() if value != usual[name]}


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _platform(platform: Platform) -> OriginPlatform:
    """Return its name and content; the content itself unless it comes with covp."""
    known = platform.name in platform_names() and load_platform(platform.name) == platform
    return OriginPlatform(
        name=platform.name,
        content_key=platform_content(platform),
        content=None if known else msgspec.to_builtins(platform),
    )


def _accelerator(request: str) -> OriginAccelerator:
    """Return how it was requested, from any folder, and the content of its file if any."""
    file = _FILE.match(request)
    return OriginAccelerator(
        request=at_folder(request, Path.cwd()), sha256=_of_file(Path(file[1])) if file else None
    )


def _model(made: Build) -> OriginModel:
    """Return its zoo name or path, and the content of its file; none for a graph in memory."""
    found = made.graph.origin
    arrays = (tensor.data for tensor in made.graph.tensors() if tensor.data is not None)
    constants = _digest(b"".join(array.tobytes() for array in arrays))
    if found is None:
        return OriginModel(name=made.model, sha256=None, constants_sha256=constants)
    return OriginModel(
        name=str(found.path.absolute()) if made.source == "file" else made.model,
        sha256=_of_file(found.path),
        constants_sha256=constants,  # they may be in other files
        shapes={name: list(shape) for name, shape in found.shapes.items()},
    )


def _of_file(path: Path) -> str | None:
    """None where it is gone."""
    try:
        return _digest(path.read_bytes())
    except OSError:
        return None


@functools.cache
def commit() -> str | None:
    """Return the commit of covp's checkout, "-dirty" after changes; None where it is installed."""
    root = Path(__file__).parents[2]
    if not (root / ".git").exists():
        return None
    words = ["describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    command = ["git", "-C", str(root), *words]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None
