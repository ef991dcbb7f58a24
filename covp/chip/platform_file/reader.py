"""`load_platform`: a platform by name or from a YAML file, checked.

For one that has no file, `advice` says what is near and how to write one.
"""

from __future__ import annotations

import difflib
import functools
import re
from collections.abc import Sequence
from pathlib import Path

import msgspec

from covp.base.installed import PLATFORMS, find_brought, single
from covp.base.struct_errors import place_of, readable
from covp.base.yaml_files import read_yaml
from covp.chip.cores import is_core_path, timing_file
from covp.chip.platform_file.memory import join_regions
from covp.chip.platform_file.model import Platform
from covp.chip.platform_file.rules import first_problem
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
        raise PlatformError(
            f"{readable(error, Platform)[:_LONGEST]}", where=path, key=place_of(error)
        ) from None
    platform = _with_paths(platform, path.parent.resolve())
    problem = _stated_twice(platform) or first_problem(platform)
    if problem:
        key = problem.partition(": ")[0]
        raise PlatformError(f"{problem[:_LONGEST]}", where=path, key=key)
    memory = tuple(region.at_clock(platform.clock_hz) for region in platform.memory)
    return msgspec.structs.replace(platform, memory=join_regions(memory, platform.named_memory))


def _stated_twice(platform: Platform) -> str | None:
    for position, region in enumerate(platform.memory):
        if region.clocks and region.wait_states is not None:
            return f"memory[{position}].clocks: they say how many wait_states there are: leave one"
    return None


def _with_paths(platform: Platform, folder: Path) -> Platform:
    """Complete the paths in a platform file, which begin at its folder."""

    def core(name: str) -> str:
        return str(folder / name) if is_core_path(name) else name

    def model(name: str) -> str:
        return str(folder / name) if name.partition(":")[0].endswith(".py") else name

    timing, replace = platform.timing, msgspec.structs.replace
    further = (replace(one, core_name=core(one.core_name)) for one in platform.further_cores)
    return replace(
        platform,
        core_name=core(platform.core_name),
        further_cores=tuple(further),
        peripherals=tuple(replace(one, model=model(one.model)) for one in platform.peripherals),
        timing=str(folder / timing) if timing and timing_file(timing) else timing,
    )


_TYPO = 0.85
"""How alike two names are, by `difflib`, of which one is the other misspelt."""
_HELD = 6
"""Letters of a name that stands in the middle of a longer one, such as esp32c3."""
_SHARED = 4
"""Letters in a row that a name has to share with what it was meant to be."""


def advice(name: str, known: Sequence[str], folder: Path) -> str:
    """Return the text that follows "unknown platform ...:".

    Args:
        name: as it was typed.
        known: the names of platforms that there are.
        folder: of the platform files, with the table of chips that have none.

    Returns:
        A misspelt name's right one; else the core that is nearest to the chip's, where the name is
        that of a known chip or board, and the command that writes a platform file for it.
    """
    core, foreign = nearest_core(name, folder)
    typos = _longer(name, known) or difflib.get_close_matches(name.lower(), known, 2, _TYPO)
    if typos and foreign is None:
        return f"did you mean {' or '.join(typos)}?{f' Its core is near {core}' * bool(core)}"
    if foreign is not None:
        begun = [each for each in known if _letters(each).startswith(_letters(name))]
        others = f"; there are {', '.join(begun[:3])}" if begun else ""
        return f"covp has no core like its own, {foreign}{others}; `covp cores` lists its cores"
    wanted = re.sub("[^A-Za-z0-9_.+-]", "-", name).strip("-") or "NAME"
    command = f"`covp new platform {wanted} --core {core or 'CORE'} --flash SIZE --ram SIZE`"
    if core is not None:
        return f"its core is near {core}; {command} writes its file"
    near = [each for each in known if _shared_letters(name, each) > _SHARED]
    near.sort(key=lambda each: -_likeness(name, each))
    start = f"did you mean {' or '.join(near[:3])}? " if near else ""
    return f"{start}`covp platforms` lists those that there are; {command} writes another"


def _longer(name: str, known: Sequence[str]) -> list[str]:
    """Return the names that the name is the beginning of, or that it holds; those most like it."""
    plain = _letters(name)
    found = [
        each
        for each in known
        if (len(plain) >= _SHARED and _letters(each).startswith(plain))
        or (len(_letters(each)) >= _HELD and _letters(each) in plain)
        or (len(_letters(each)) >= _SHARED and plain.startswith(_letters(each)))
    ]
    return sorted(found, key=lambda each: -_likeness(name, each))[:2]


def nearest_core(name: str, folder: Path) -> tuple[str | None, str | None]:
    """Return the core of covp's that is nearest to a chip's, or the core that covp has none for.

    Returns:
        The core's name and None, or None and what the chip has; both None for an unknown chip.
    """
    plain = _letters(name)
    fitting = [row for row in _chips(folder) if plain.startswith(row[0])]
    if not fitting:
        return None, None
    return max(fitting, key=lambda row: len(row[0]))[1:]


@functools.cache
def _chips(folder: Path) -> tuple[tuple[str, str | None, str | None], ...]:
    """Return the table: how names begin, the core of covp's, the core that is none."""
    rows = []
    for line in (folder / "chips.txt").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            start, core, *other = line.split()
            rows.append((start, None if other else core, other[0] if other else None))
    return tuple(rows)


def _letters(name: str) -> str:
    return re.sub("[^a-z0-9]", "", name.lower())


def _shared_letters(one: str, other: str) -> int:
    """Count the letters in a row that both names have."""
    one, other = _letters(one), _letters(other)
    match = difflib.SequenceMatcher(None, one, other, False).find_longest_match()
    return match.size


def _likeness(one: str, other: str) -> float:
    return difflib.SequenceMatcher(None, _letters(one), _letters(other), False).ratio()
