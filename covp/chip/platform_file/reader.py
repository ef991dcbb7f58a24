"""`load_platform`: a platform by name or from a YAML file, checked."""

from __future__ import annotations

import functools
import re
from pathlib import Path

import msgspec

from covp.base.installed import PLATFORMS, find_brought, single
from covp.base.struct_errors import readable
from covp.base.yaml_files import read_yaml
from covp.chip.cores import is_core_path, timing_file
from covp.chip.platform_file.memory import join_regions
from covp.chip.platform_file.model import Platform
from covp.chip.platform_file.rules import first_problem
from covp.chip.platform_file.unknown import advice
from covp.errors import PlatformError, UnknownPlatform, UsageError

_LONGEST = 300
_ALIASES = re.compile(r"^aliases: \[(.+)\]$", re.MULTILINE)


def platforms_dir() -> Path:
    """Return the folder of the platform files that come with covp."""
    return Path(__file__).parents[2] / "platforms"


def platform_names() -> list[str]:
    """Return the names of all platforms: covp's, `platform_aliases`, those of other packages."""
    return sorted({*_file_names(), *platform_aliases(), *single(PLATFORMS)})


def every_platform() -> list[Platform]:
    """Return the platforms there are, each once, without this machine."""
    others = {"host", *platform_aliases()}
    return [load_platform(name) for name in platform_names() if name not in others]


def _file_names() -> set[str]:
    return {path.stem for path in platforms_dir().glob("*.yaml")}


@functools.cache
def platform_aliases() -> dict[str, str]:
    """Return further names of covp's platforms, with the name of the platform."""
    found: dict[str, str] = {}
    for path in platforms_dir().glob("*.yaml"):
        # the line alone: to parse all files takes three tenths of a second
        if line := _ALIASES.search(path.read_text(encoding="utf-8")):
            found |= dict.fromkeys(line[1].split(", "), path.stem)
    return found


def load_platform(name: str | Path | Platform) -> Platform:
    """Return a platform by name or by the path of its YAML file.

    By an alias it is the same platform with that name, so that results bear the requested name.

    Raises:
        PlatformError: unknown name (an UnknownPlatform), unreadable file, or a wrong key; the text
            says which. Or several packages bring a platform of that name.
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
    if text in _file_names():
        return read_platform(platforms_dir() / f"{text}.yaml")
    if text not in platform_aliases():
        if (found := find_brought(PLATFORMS, text)) is not None:
            return msgspec.structs.replace(
                read_platform(found.folder() / f"{text}.yaml"), name=text
            )
        what_to_do = advice(text, platform_names(), platforms_dir())
        raise UnknownPlatform(f"unknown platform {text!r}: {what_to_do}")
    platform = read_platform(platforms_dir() / f"{platform_aliases()[text]}.yaml")
    return msgspec.structs.replace(platform, name=text)


def read_platform(path: Path) -> Platform:
    """Read and check one platform file."""
    content = read_yaml(path, PlatformError, "platform file")
    if not isinstance(content, dict):
        raise PlatformError(
            "a platform file is a mapping of keys (name, core, memory ...)", where=path
        )
    try:
        platform = msgspec.convert(content, Platform)
    except msgspec.ValidationError as error:
        raise PlatformError(f"{readable(error, Platform)[:_LONGEST]}", where=path) from None
    platform = _with_paths(platform, path.parent.resolve())
    problem = first_problem(platform)
    if problem:
        raise PlatformError(f"{problem[:_LONGEST]}", where=path)
    return msgspec.structs.replace(
        platform, memory=join_regions(platform.memory, platform.named_memory)
    )


def _with_paths(platform: Platform, folder: Path) -> Platform:
    """Complete the paths in a platform file, which begin at its folder."""

    def core(name: str) -> str:
        return str(folder / name) if is_core_path(name) else name

    timing, replace = platform.timing, msgspec.structs.replace
    further = (replace(one, core_name=core(one.core_name)) for one in platform.further_cores)
    return replace(
        platform,
        core_name=core(platform.core_name),
        further_cores=tuple(further),
        timing=str(folder / timing) if timing and timing_file(timing) else timing,
    )
