"""`Platform`: a YAML file read into checked, frozen structures.

A platform file names a core, its clock, the memory map, the peripherals and the place for
accelerators. Every mistake is rejected with the file, the key and the reason.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Collection
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import msgspec
import yaml

from covp.arguments import read_file
from covp.cores import Core, find_core
from covp.energy.core_energy import CoreEnergy
from covp.errors import PlatformError, UnknownPlatform, UsageError, near_misses
from covp.memory_caches import MAX_CACHES, Cache, cache_problem
from covp.platform_cores import FIRST, FurtherCore, cores_problem
from covp.platform_yaml import parse_yaml

Address = Annotated[int, msgspec.Meta(ge=0, le=0xFFFFFFFF)]
Wait = Annotated[int, msgspec.Meta(ge=0, le=255)]
Irq = Annotated[int, msgspec.Meta(ge=0, le=239)]
_NAME = re.compile(r"^[A-Za-z][A-Za-z0-9_.+-]*$")
_TIMING_FILE = re.compile(r"\.ya?ml$|\.py:\w+$")
_LARGEST = 1 << 48
_LONGEST = 300
_SIZE = re.compile(r"^\s*([0-9]{1,12})\s*([KkMm]i?[Bb]?)\s*$")


Kind = Literal["flash", "ram"]


class WaitStates(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Wait states of a memory, apart for instructions and data."""

    fetch: Wait = 0
    data: Wait = 0


class Region(msgspec.Struct, frozen=True, forbid_unknown_fields=True, dict=True):
    """A stretch of memory.

    ``kind`` "flash" holds code and constants and cannot be written by the program; "ram" holds
    the rest. ``size`` is bytes, or text such as "320K" or "1M" (powers of 1024). ``wait_states``
    are the cycles that an access to a word takes beyond the least; a number is for both kinds.
    ``caches`` names those that it is read through.
    """

    name: str
    kind: Kind
    start: Address
    size: int | str
    wait_states: Wait | WaitStates = 0
    caches: tuple[str, ...] = ()

    # cached: every access to memory asks for them
    @functools.cached_property
    def bytes(self) -> int:
        """The size in bytes."""
        return parse_size(self.size)

    @functools.cached_property
    def end(self) -> int:
        """First address past the end of the region."""
        return self.start + self.bytes

    @functools.cached_property
    def waits(self) -> WaitStates:
        """The wait states of fetches and of loads and stores."""
        both = self.wait_states
        return both if isinstance(both, WaitStates) else WaitStates(both, both)

    def holds(self, address: int, size: int = 1) -> bool:
        """Whether all of ``size`` bytes from ``address`` lie in the region."""
        return self.start <= address and address + size <= self.end

    def overlaps(self, other: Region) -> bool:
        """Whether the two have bytes in common."""
        return self.start < other.end and other.start < self.end


class PeripheralConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A peripheral on the bus: ``model`` is a module name in covp.peripherals or "module:Class".

    ``irq`` is the number of its interrupt line: as vendors count them, after the core's own
    exceptions on Arm; all lines together are the machine external interrupt on RISC-V. ``core`` is
    the name of the core that the line leads to.
    """

    name: str
    model: str
    base: Address
    parameters: dict[str, Any] = {}
    irq: Irq | None = None
    core: str = FIRST


class AcceleratorSlot(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where accelerators named at run time are mapped, one every ``stride`` bytes.

    The first one's interrupt is line ``irq``, the next one's the following line.
    """

    base: Address
    stride: Annotated[int, msgspec.Meta(ge=0x1000)] = 0x1000
    irq: Irq | None = None


class Qemu(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The QEMU machine with this memory map: ``-M machine -cpu cpu`` and further options."""

    machine: str
    cpu: str = ""
    options: tuple[str, ...] = ()


class OpenOcd(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How to reach the real board.

    ``board`` is OpenOCD's stock configuration file; ``commands`` run before its ``init``,
    ``init`` after it, such as clocks and flash wait states.
    """

    board: str
    commands: tuple[str, ...] = ()
    init: tuple[str, ...] = ()


class Firmware(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The board support of firmware: a file of device_runtime/boards and the macros it takes."""

    board: Annotated[str, msgspec.Meta(pattern=r"^[a-z][a-z0-9_]*$")] = "generic"
    defines: dict[str, str | int] = {}


class Platform(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"core_name": "core"}
):
    """A microcontroller.

    Attributes:
        core_name: a name in `covp.cores.CORES` (key ``core``).
        clock_hz: core clock; turns cycles into seconds.
        memory: regions that do not overlap; at least one flash and one ram. Programs go to the
            first of each kind, and what does not fit there to the next. Regions of one kind
            without a gap between them are one (`joined`).
        caches: between the core and the regions that name them.
        stack: bytes of stack, at the low end of the first ram so that an overflow leaves the
            memory map and faults.
        accelerators: the bus addresses for accelerators; None where there can be none.
        energy: what a cycle costs; None where no figure is published.
        timing: timing model in place of the core's own: a name, the path of a YAML file, or
            "path/to/file.py:NAME"; a path in a file is relative to that file.
        firmware: the board support of exported firmware; None: `board` chooses.
        further_cores: beside the first one, which has the memory that they do not name.
        shared_memory: regions that no core's image is placed in.
    """

    name: str
    core_name: str
    clock_hz: Annotated[int, msgspec.Meta(gt=0, le=10**12)]
    memory: tuple[Region, ...]
    description: str = ""
    stack: int | str = "4K"
    peripherals: tuple[PeripheralConfig, ...] = ()
    accelerators: AcceleratorSlot | None = None
    caches: tuple[Cache, ...] = ()
    openocd: OpenOcd | None = None
    qemu: Qemu | None = None
    energy: CoreEnergy | None = None
    timing: str | None = None
    firmware: Firmware | None = None
    further_cores: tuple[FurtherCore, ...] = ()
    shared_memory: tuple[str, ...] = ()

    @property
    def board(self) -> str:
        """The file of device_runtime/boards that firmware gets."""
        if self.firmware is not None:
            return self.firmware.board
        has_uart = any(peripheral.model == "uart" for peripheral in self.peripherals)
        return "generic" if has_uart else "silent"

    @property
    def core(self) -> Core:
        """The core's data."""
        return _timed(find_core(self.core_name), self.timing)

    @property
    def flash(self) -> Region:
        """The region that code and constants go to."""
        return next(region for region in self.own_memory if region.kind == "flash")

    @property
    def ram(self) -> Region:
        """The region that data goes to."""
        return next(region for region in self.own_memory if region.kind == "ram")

    @property
    def core_names(self) -> tuple[str, ...]:
        """The names of all cores, the first one's "main"."""
        return (FIRST, *(core.name for core in self.further_cores))

    @property
    def named_memory(self) -> frozenset[str]:
        """Names of the regions that are shared, or a further core's."""
        own = (name for core in self.further_cores for name in core.memory)
        return frozenset((*self.shared_memory, *own))

    @property
    def own_memory(self) -> tuple[Region, ...]:
        """The regions that programs of the first core are placed in."""
        if not self.further_cores:
            return self.memory
        named = self.named_memory
        return tuple(region for region in self.memory if region.name not in named)

    def seen_by(self, core: str) -> Platform:
        """The platform as a core sees it: its own memory first, then all other.

        Args:
            core: one of `core_names`.

        Raises:
            PlatformError: there is no such core.
        """
        own = self.for_core(core)
        if not self.further_cores:
            return own
        return msgspec.structs.replace(
            own, memory=(*own.memory, *(r for r in self.memory if r not in own.memory))
        )

    def for_core(self, core: str) -> Platform:
        """The platform of a core's programs: with its own memory alone, and its clock.

        Args:
            core: one of `core_names`.

        Raises:
            PlatformError: there is no such core.
        """
        if core not in self.core_names:
            known = near_misses(core, list(self.core_names))
            raise PlatformError(f"{self.name} has no core {core!r}: {known}")
        if not self.further_cores:
            return self
        alone = msgspec.structs.replace(
            self, name=f"{self.name}.{core}", further_cores=(), shared_memory=(), openocd=None,
            qemu=None, memory=self.own_memory,
            peripherals=tuple(_seen_line(config, core) for config in self.peripherals),
        )  # fmt: skip
        if core == FIRST:
            return alone
        further = self.further_cores[self.core_names.index(core) - 1]
        regions = {region.name: region for region in self.memory}
        return msgspec.structs.replace(
            alone, core_name=further.core_name, clock_hz=self.clock_hz // further.clock_divider,
            memory=tuple(regions[name] for name in further.memory), stack=further.stack,
            timing=None, energy=None,
        )  # fmt: skip

    @property
    def has_wait_states(self) -> bool:
        """Whether any memory has some."""
        return any(region.waits.fetch or region.waits.data for region in self.memory)

    @property
    def wait_states(self) -> str:
        """What every figure of cycles has to say, e.g. "zero wait states"."""
        caches = ", ".join(f"{cache.name} {cache.size}" for cache in self.caches)
        if not self.has_wait_states:
            return f"zero wait states{'; caches: ' if caches else ''}{caches}"
        waits = {region.name: region.waits for region in self.memory}
        each = ", ".join(f"{name} {wait.fetch}/{wait.data}" for name, wait in waits.items())
        return f"wait states of fetch/data: {each}{'; caches: ' if caches else ''}{caches}"

    @property
    def stack_bytes(self) -> int:
        """The size of the stack in bytes."""
        return parse_size(self.stack)

    def region_of(self, address: int, size: int = 1) -> Region | None:
        """The memory region that holds all of ``size`` bytes from ``address``, or None."""
        return next((region for region in self.memory if region.holds(address, size)), None)


def _seen_line(config: PeripheralConfig, core: str) -> PeripheralConfig:
    """A peripheral as a core sees it; a line that leads to another core is not connected."""
    return msgspec.structs.replace(
        config, core=FIRST, irq=config.irq if config.core == core else None
    )


@functools.lru_cache(maxsize=64)
def _timed(core: Core, timing: str | None) -> Core:
    """A core with another timing model."""
    return core if timing is None else dataclasses.replace(core, timing=timing)


@functools.lru_cache(maxsize=256)
def parse_size(size: int | str) -> int:
    """Bytes of 4096, "320K", "1M", "64 KiB".

    Raises:
        ValueError: not a size.
    """
    if isinstance(size, int):
        if abs(size) > _LARGEST:
            raise ValueError("more than 2^48 bytes")
        return size
    match = _SIZE.match(size)
    if match is None:
        raise ValueError(f"{size!r:.40} is not a size; write bytes or such as 320K, 1M")
    return int(match[1]) * (1024 if match[2][0] in "Kk" else 1024 * 1024)


def platforms_dir() -> Path:
    """The folder of the platform files that come with covp."""
    return Path(__file__).parent / "platforms"


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
        content = parse_yaml(read_file(path))
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


def joined(memory: tuple[Region, ...], apart: Collection[str] = frozenset()) -> tuple[Region, ...]:
    """Regions that lie next to each other and are alike as one, such as two banks of a flash.

    It stands where its first part was listed; its name is those of the parts in the order of their
    addresses, joined by "_".

    Args:
        memory: of a platform.
        apart: names of regions that stay alone.
    """
    rest = list(memory)
    for left in sorted(memory, key=lambda region: region.start):
        lower = next((r for r in rest if _continues(r, left)), None)
        if lower is None or {lower.name, left.name} & set(apart):
            continue
        name, size = f"{lower.name}_{left.name}", lower.bytes + left.bytes
        one = msgspec.structs.replace(lower, name=name, size=size)
        first = min(rest.index(lower), rest.index(left))
        rest[first] = one
        rest = [region for region in rest if region not in (lower, left)]
    return tuple(rest)


def _continues(lower: Region, upper: Region) -> bool:
    """Whether the second one follows the first without a gap or a difference."""
    alike = (lower.kind, lower.waits, lower.caches) == (upper.kind, upper.waits, upper.caches)
    return alike and lower.end == upper.start


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


def first_problem(platform: Platform) -> str | None:
    """The first broken rule that types cannot express, as "key: reason"; or None."""
    if not _NAME.match(platform.name):
        return f"name: {platform.name!r} must start with a letter and hold no spaces"
    try:
        find_core(platform.core_name)
    except PlatformError as error:
        return f"core: {error}"
    problem = _memory_problem(platform) or _caches_problem(platform) or _cores_problem(platform)
    if problem:
        return problem
    problem = platform.energy.problem() if platform.energy else None
    if problem:
        return f"energy{problem}"
    return _bus_problem(platform)


def _cores_problem(platform: Platform) -> str | None:
    kinds = {region.name: region.kind for region in platform.memory}
    problem = cores_problem(
        platform.further_cores, platform.shared_memory, kinds, platform.clock_hz
    )
    if problem:
        return problem
    for position, name in enumerate(platform.core_names):
        problem = _stack_problem(platform.seen_by(name), platform.named_memory)
        if problem:
            return problem if position == 0 else f"further_cores[{position - 1}].{problem}"
    return None


def _stack_problem(platform: Platform, apart: Collection[str]) -> str | None:
    """The broken rule on the stack of the first core; regions ``apart`` are joined with none."""
    try:
        stack = parse_size(platform.stack)
    except ValueError as error:
        return f"stack: {error}"
    if stack < 512 or stack % 16 or stack >= platform.ram.bytes:
        return f"stack: {stack} bytes; it must be a multiple of 16, at least 512 and below the ram"
    return _unguarded_stack(platform, apart)


def _memory_problem(platform: Platform) -> str | None:
    for position, region in enumerate(platform.memory):
        problem = _extent_problem(region) or _clash(region, platform.memory[:position])
        if problem:
            return f"memory[{position}]{problem}"
    return _missing_kind(platform.memory)


def _caches_problem(platform: Platform) -> str | None:
    if len(platform.caches) > MAX_CACHES:
        return f"caches: {len(platform.caches)} of them; at most {MAX_CACHES} are possible"
    for position, cache in enumerate(platform.caches):
        key = f"caches[{position}]"
        if not _is_name(cache.name):
            return f"{key}.name: {cache.name!a:.80} must be one line, 60 characters at most"
        if cache.name in (other.name for other in platform.caches[:position]):
            return f"{key}.name: {cache.name!r} is used twice"
        try:
            problem = cache_problem(cache, parse_size(cache.size))
        except ValueError as error:
            problem = f".size: {error}"
        if problem:
            return key + problem
    return _cached_twice(platform)


def _cached_twice(platform: Platform) -> str | None:
    caches = {cache.name: cache for cache in platform.caches}
    for position, region in enumerate(platform.memory):
        key = f"memory[{position}].caches"
        for name in region.caches:
            if name not in caches:
                return f"{key}: there is no cache {name!r}: {near_misses(name, list(caches))}"
        used = [caches[name] for name in region.caches]
        for kind in ("fetches", "has_data"):
            if sum(getattr(cache, kind) for cache in used) > 1:
                return f"{key}: two of {', '.join(region.caches)} hold the same kind of content"
    return None


def _extent_problem(region: Region) -> str | None:
    """The broken rule on name, start and size, as the text after the region's key."""
    if not _is_name(region.name):
        return f".name: {region.name!a:.80} must be one line of printable characters, 60 at most"
    try:
        size = region.bytes
    except ValueError as error:
        return f".size: {error}"
    if size <= 0 or size % 1024 or region.start % 1024:
        return ": start and size must be multiples of 1024 and size above 0"
    if region.end > 1 << 32:
        return f": 0x{region.start:08x} + {size} bytes leaves the 32-bit address space"
    return None


def _is_name(text: str) -> bool:
    return text.isprintable() and 0 < len(text) <= 60


def _clash(region: Region, earlier: tuple[Region, ...]) -> str | None:
    """The name or address that an earlier region has too, as the text after the region's key."""
    for other in earlier:
        if region.name == other.name:
            return f".name: {region.name!r} is used twice"
        if region.overlaps(other):
            return (
                f": {region.name} 0x{region.start:08x}-0x{region.end - 1:08x} overlaps "
                f"{other.name} 0x{other.start:08x}-0x{other.end - 1:08x}"
            )
    return None


def _missing_kind(memory: tuple[Region, ...]) -> str | None:
    for kind in ("flash", "ram"):
        if not any(region.kind == kind for region in memory):
            return f"memory: there is no region of kind {kind}"
    return None


def _unguarded_stack(platform: Platform, apart: Collection[str]) -> str | None:
    region = platform.region_of(platform.ram.start - 1)
    if region is None:
        return None
    if _continues(region, platform.ram) and not {region.name, platform.ram.name} & set(apart):
        return None  # they will be one
    return (
        f"memory: {region.name} lies directly below {platform.ram.name}, so that a stack "
        "overflow would not be seen; list another ram first"
    )


def _bus_problem(platform: Platform) -> str | None:
    names: set[str] = set()
    for position, peripheral in enumerate(platform.peripherals):
        key = f"peripherals[{position}]"
        if not _is_name(peripheral.name):
            return f"{key}.name: {peripheral.name!a:.80} must be one line, 60 characters at most"
        if peripheral.name in names:
            return f"{key}.name: {peripheral.name!r} is used twice"
        names.add(peripheral.name)
        if peripheral.core not in platform.core_names:
            known = near_misses(peripheral.core, list(platform.core_names))
            return f"{key}.core: there is no core {peripheral.core!r}: {known}"
        if peripheral.base % 4:
            return f"{key}.base: 0x{peripheral.base:x} is not a multiple of 4"
        region = platform.region_of(peripheral.base)
        if region is not None:
            return f"{key}.base: 0x{peripheral.base:08x} lies inside memory {region.name}"
    slot = platform.accelerators
    if slot is not None:
        if slot.base % 0x1000 or slot.stride % 0x1000:
            return "accelerators: base and stride must be multiples of 0x1000"
        region = platform.region_of(slot.base)
        if region is not None:
            return f"accelerators.base: 0x{slot.base:08x} lies inside memory {region.name}"
    return None
