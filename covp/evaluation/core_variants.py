"""`vary_core`: a platform whose core has other parameters of its RTL.

The variant is the folder of a core in the cache, like the one that it comes from. Its timing model
is fitted to its RTL at its first use, which takes half a minute.
"""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

import msgspec
import yaml

from covp.accelerator.parameters import Value
from covp.base.cache import cache_dir, content_key
from covp.base.temporary import temporary_folder
from covp.chip.cores import Core
from covp.chip.platform_file import Platform
from covp.device.rtl.cores import find_sources, rtl_of
from covp.device.rtl.device import RtlDevice
from covp.errors import DeviceFault, PlatformError, UsageError, near_misses
from covp.evaluation.calibration.calibrate import FITTED_WAITS, calibrate

_PARAMETER = re.compile(r"\bparameter\s+(?:[\w:\[\]]+\s+)*?(\w+)\s*=")


def vary_core(platform: Platform, parameters: Mapping[str, Value]) -> Platform:
    """Return a platform with another configuration of its core.

    Args:
        platform: its core has RTL.
        parameters: of the wrapper around that RTL, to integers.

    Raises:
        UsageError: there is no such parameter, or a value is no integer.
        PlatformError: there is no RTL of the core, or the RTL with these values fails.
        ToolchainError: the RTL cannot be built with these values.
    """
    check_parameters(platform.core, parameters)
    stated = rtl_of(platform.core).parameters
    others = tuple(
        (name, int(value))
        for name, value in sorted(parameters.items())
        if stated.get(name) != int(value)
    )
    if not others:
        return platform
    return msgspec.structs.replace(platform, core_name=str(_folder(platform, others)))


def check_parameters(core: Core, parameters: Mapping[str, Value]) -> None:
    """Check the names and values of parameters, without building anything.

    Args:
        core: has RTL.
        parameters: of the wrapper around it.

    Raises:
        UsageError: there is no such parameter, or a value is no integer.
        PlatformError: there is no RTL of the core.
    """
    rtl = rtl_of(core)
    known = sorted({*rtl.parameters, *_PARAMETER.findall(Path(rtl.wrapper).read_text("utf-8"))})
    for name, value in parameters.items():
        if name not in known:
            hint = near_misses(name, known) if known else "its RTL has none"
            raise UsageError(f"platform.core.{name}: no such parameter of {core.name}:", hint=hint)
        if not isinstance(value, int):
            raise UsageError(f"platform.core.{name}={value}: has to be an integer")


@functools.cache
def _key(core: Core, parameters: tuple[tuple[str, int], ...]) -> str:
    """Return a hash of all that the variant's timing depends on."""
    files = [path for folder in core.folders for path in sorted(folder.glob("*.yaml"))]
    sources = find_sources(core, rtl_of(core)).contents()
    return content_key(*(path.read_bytes() for path in files), *sources, str(parameters))


def _folder(platform: Platform, parameters: tuple[tuple[str, int], ...]) -> Path:
    """Return the variant's folder, made on demand."""
    core = platform.core
    name = "-".join([core.name, *(f"{name}-{value}" for name, value in parameters)])
    place = cache_dir("cores") / _key(core, parameters) / name
    if (place / "timing.yaml").is_file():
        return place
    what = ", ".join(f"{name} {value}" for name, value in parameters)
    with temporary_folder("core", cache_dir("cores")) as made:
        draft = Path(made) / name
        draft.mkdir()
        like = str(core.folders[0]) if core.content else core.name
        _write(draft / "core.yaml", {"description": f"{core.name} with {what}", "like": like})
        _write(draft / "rtl.yaml", {"parameters": dict(parameters)})
        try:
            _calibrate(platform, draft)
        except DeviceFault as fault:
            raise PlatformError(
                f"the RTL of {core.name} with {what} fails: {fault}; `covp core check` of such a "
                "core names the instruction"
            ) from None
        place.parent.mkdir(exist_ok=True)
        with contextlib.suppress(OSError):  # another process was faster
            draft.rename(place)
    return place


def _calibrate(platform: Platform, core: Path) -> None:
    """Fit the timing model of a core's folder to its RTL, in the memory of a platform."""
    with ExitStack() as stack:
        boards = (_bare(platform, core, *waits) for waits in ((0, 0), *FITTED_WAITS))
        (board, device), *others = [(one, stack.enter_context(RtlDevice(one))) for one in boards]
        calibrate(board, device, others=others).write(core / "timing.yaml")


def _write(path: Path, content: Mapping[str, object]) -> None:
    path.write_text(yaml.safe_dump(dict(content), sort_keys=False), "utf-8")


def _bare(platform: Platform, core: Path, flash: int, ram: int) -> Platform:
    """Return the core's memory, with wait states, and nothing else."""
    waiting = platform.with_waits(flash, ram)
    return msgspec.structs.replace(waiting, core_name=str(core), timing=None, peripherals=())
