"""`load_platform`: a platform by name or from a YAML file, checked."""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import get_args

import msgspec
import yaml

from covp.arguments import read_file
from covp.energy.core_energy import CoreEnergy
from covp.errors import PlatformError, UnknownPlatform, UsageError, near_misses
from covp.platform_file.caches import Cache
from covp.platform_file.further_cores import FurtherCore
from covp.platform_file.memory import Kind, Region, WaitStates, joined
from covp.platform_file.model import Platform
from covp.platform_file.parts import AcceleratorSlot, Firmware, OpenOcd, PeripheralConfig, Qemu
from covp.platform_file.rules import first_problem
from covp.platform_yaml import parse_yaml

_TIMING_FILE = re.compile(r"\.ya?ml$|\.py:\w+$")
_LONGEST = 300
_parse_once = functools.lru_cache(maxsize=64)(parse_yaml)
"""Sweeps and test runs open many sessions with the same few files."""


def platforms_dir() -> Path:
    """The folder of the platform files that come with covp."""
    return Path(__file__).parents[1] / "platforms"


def platform_names() -> list[str]:
    """Names of the platforms that come with covp."""
    return sorted(path.stem for path in platforms_dir().glob("*.yaml"))


def load_platform(name: str | Path | Platform) -> Platform:
    """A platform by name or by the path of its YAML file.

    Raises:
        PlatformError: unknown name (an UnknownPlatform), unreadable file, or a wrong key; the text
            says which.
        UsageError: not a name, a path or a platform.
    """
    if isinstance(name, Platform):
        return name
    if not isinstance(name, str | Path):
        raise UsageError(
            f"a platform is its name, the path of its file or a Platform, not {name!r:.80}"
        )
    text = str(name)
    if text.endswith((".yaml", ".yml")) or "/" in text:
        return read_platform(Path(text))
    path = platforms_dir() / f"{text}.yaml"
    if text not in platform_names():
        raise UnknownPlatform(f"unknown platform {text!r}: {near_misses(text, platform_names())}")
    return read_platform(path)


def read_platform(path: Path) -> Platform:
    """Read and check one platform file."""
    try:
        content = _parse_once(read_file(path))
    except FileNotFoundError:
        raise PlatformError(f"{path}: no such platform file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise PlatformError(f"{path}: cannot be read: {error}") from None
    except RecursionError:
        raise PlatformError(f"{path}: not valid YAML: nested too deeply") from None
    except Exception as error:
        # PyYAML's constructors raise anything: ValueError for "!!float x", KeyError for "!!bool x"
        name = "" if isinstance(error, yaml.YAMLError) else f"{type(error).__name__}: "
        reason = name + " ".join(str(error).split())[:300]
        raise PlatformError(f"{path}: not valid YAML: {reason}") from None
    if not isinstance(content, dict):
        raise PlatformError(
            f"{path}: a platform file is a mapping of keys (name, core, memory ...)"
        )
    try:
        platform = msgspec.convert(content, Platform)
    except msgspec.ValidationError as error:
        raise PlatformError(f"{path}: {_readable(str(error))[:_LONGEST]}") from None
    problem = first_problem(platform)
    if problem:
        raise PlatformError(f"{path}: {problem[:_LONGEST]}")
    return msgspec.structs.replace(
        platform,
        memory=joined(platform.memory, platform.named_memory),
        timing=_beside(path, platform.timing),
    )


def _beside(path: Path, timing: str | None) -> str | None:
    """The timing model of a platform file; relative paths are those from its folder."""
    if timing is None or not _TIMING_FILE.search(timing):
        return timing
    return str(path.parent.resolve() / timing)


_STRUCTS: dict[str, type[msgspec.Struct]] = {
    "memory": Region,
    "wait_states": WaitStates,
    "caches": Cache,
    "peripherals": PeripheralConfig,
    "accelerators": AcceleratorSlot,
    "openocd": OpenOcd,
    "qemu": Qemu,
    "firmware": Firmware,
    "energy": CoreEnergy,
    "further_cores": FurtherCore,
}


def _readable(message: str) -> str:
    """msgspec's "... - at `$.memory[0].size`" as "memory[0].size: ...", with what is allowed."""
    reason, _, where = message.partition(" - at `$")
    where = where.rstrip("`").lstrip(".")
    unknown = re.match(r"Object contains unknown field `(.*)`$", reason)
    value = re.match(r"Invalid enum value (.*)$", reason)
    if unknown:
        structs = [_STRUCTS[name] for name in re.findall(r"\w+", where) if name in _STRUCTS]
        fields = msgspec.structs.fields(structs[-1] if structs else Platform)
        known = near_misses(unknown[1], [field.encode_name for field in fields])
        reason = f"unknown key {unknown[1]!r}: {known}"
    elif value and where.endswith(".kind"):
        reason = f"{value[1]} is not one of {', '.join(get_args(Kind))}"
    return f"{where}: {reason}" if where else reason
