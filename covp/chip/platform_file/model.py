"""`Platform`: a microcontroller as data, and as each of its cores sees it."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
from typing import Annotated, Any

import msgspec

from covp.chip.cores import Core, find_core
from covp.chip.energy.core_costs import CoreEnergy
from covp.chip.platform_file.caches import Cache
from covp.chip.platform_file.further_cores import FIRST, FurtherCore
from covp.chip.platform_file.memory import Address, Region, WaitStates, parse_size
from covp.errors import PlatformError, near_misses

Irq = Annotated[int, msgspec.Meta(ge=0, le=239)]


class PeripheralConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A peripheral on the bus.

    ``model`` is a module name in covp.peripherals, "module:Class" or "path/to/file.py:Class".
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
    """Addresses for accelerators named at run time, one every ``stride`` bytes.

    The first one's interrupt is line ``irq``, the next one's the following line. With
    ``shared_port`` they have one port of the memory together, else each has its own.
    """

    base: Address
    stride: Annotated[int, msgspec.Meta(ge=0x1000)] = 0x1000
    irq: Irq | None = None
    shared_port: bool = False


class Qemu(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The QEMU machine with this memory map: ``-M machine -cpu cpu`` and further options."""

    machine: str
    cpu: str = ""
    options: tuple[str, ...] = ()


class OpenOcd(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The OpenOCD configuration of the real board.

    ``board`` is OpenOCD's stock configuration file; ``commands`` run before its ``init``,
    ``init`` after it, such as clocks and flash wait states.
    """

    board: str
    commands: tuple[str, ...] = ()
    init: tuple[str, ...] = ()


class BoardSupport(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The board support of firmware: a file of device_runtime/boards and the macros it takes."""

    board: Annotated[str, msgspec.Meta(pattern=r"^[a-z][a-z0-9_]*$")] = "generic"
    defines: dict[str, str | int] = {}


ZERO_WAITS = "zero wait states"
LOWER_BOUND = "a lower bound: flash wait states not counted"
"""What figures of a platform say whose file does not give the wait states of its flash."""
_NO_WAITS = WaitStates()


class Platform(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"core_name": "core"}
):
    """A microcontroller.

    Attributes:
        core_name: a core's name, or the path of its folder, in a file relative to it (key
            ``core``), see `covp.chip.cores.find_core`.
        clock_hz: core clock; turns cycles into seconds.
        memory: regions that do not overlap; at least one flash and one ram. Programs go to the
            first of each kind, and what does not fit there to the next. Regions of one kind
            without a gap between them are one (`join_regions`).
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
        aliases: other names of it.
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
    firmware: BoardSupport | None = None
    further_cores: tuple[FurtherCore, ...] = ()
    shared_memory: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()

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
        return _with_timing(find_core(self.core_name), self.timing)

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

    def with_waits(self, flash: int, ram: int) -> Platform:
        """Return the platform without caches, with these wait states of memory by its kind.

        Args:
            flash, ram: cycles beyond the first of each fetch, load and store.
        """
        waits = {"flash": flash, "ram": ram}
        memory = (
            msgspec.structs.replace(one, wait_states=waits.get(one.kind, 0), clocks=(), caches=())
            for one in self.memory
        )
        return msgspec.structs.replace(self, memory=tuple(memory), caches=())

    def seen_by(self, core: str) -> Platform:
        """Return the platform as a core sees it: its own memory first, then all other.

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
        """Return the platform of a core's programs: with its own memory alone, and its clock.

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
    def is_lower_bound(self) -> bool:
        """True if cycles leave out a flash's wait states, as the file does not give them."""
        return any(r.kind == "flash" and r.wait_states is None for r in self.memory)

    @property
    def cached_ram(self) -> tuple[Region, ...]:
        """The RAM that the core reads through a data cache, and bus masters do not."""
        names = {cache.name for cache in self.caches if cache.has_data}
        return tuple(r for r in self.memory if r.kind == "ram" and names & {*r.caches})

    @property
    def data_cache_line(self) -> int:
        """Bytes of the longest line in which the core caches RAM; 0: it does not."""
        names = {name for region in self.cached_ram for name in region.caches}
        return max((c.line for c in self.caches if c.has_data and c.name in names), default=0)

    @property
    def cache_defines(self) -> dict[str, str]:
        """The macros of device_runtime/include/covp_cache.h; none where no RAM is cached."""
        ram = self.cached_ram
        if not ram:
            return {}
        whole = {"COVP_DATA_CACHE_WHOLE": "1"} if self.core.flushes_data_cache else {}
        return {
            "COVP_DATA_CACHE_LINE": str(self.data_cache_line),
            "COVP_DATA_CACHE_START": f"0x{min(region.start for region in ram):08x}u",
            "COVP_DATA_CACHE_END": f"0x{max(region.end for region in ram):08x}u",
            **whole,
        }

    @property
    def wait_states(self) -> str:
        """The note on memory that belongs to every figure of cycles, e.g. "zero wait states"."""
        waits = {region.name: region.waits for region in self.memory}
        each = ", ".join(f"{name} {wait.fetch}/{wait.data}" for name, wait in waits.items())
        has_some = any(wait != _NO_WAITS for wait in waits.values())
        states = f"wait states of fetch/data: {each}" if has_some else ""
        caches = ", ".join(f"{cache.name} {cache.size}" for cache in self.caches)
        parts = (
            LOWER_BOUND if self.is_lower_bound else "" if states else ZERO_WAITS,
            states,
            f"caches: {caches}" if caches else "",
        )
        return "; ".join(filter(None, parts))

    @property
    def memory_timing(self) -> str:
        """A key of what the memory adds to a core's cycles; "" where it adds nothing.

        Platforms with the same core and key spend the same on the same program, but for where it
        lies.
        """
        regions = [
            (r.kind, r.waits.fetch, r.waits.data, r.caches, *_limits(r)) for r in self.own_memory
        ]
        if self.timing is None and not any(any(rest) for _, *rest in regions):
            return ""
        text = repr((regions, msgspec.to_builtins(self.caches), self.timing))
        return hashlib.sha256(text.encode()).hexdigest()[:8]

    @property
    def stack_bytes(self) -> int:
        """The size of the stack in bytes."""
        return parse_size(self.stack)

    def region_of(self, address: int, size: int = 1) -> Region | None:
        """Return the memory region that holds all of ``size`` bytes from ``address``, or None."""
        return next((region for region in self.memory if region.holds(address, size)), None)


def _limits(region: Region) -> tuple[int, ...]:
    """Return the limits of a region's interface; none where it has none."""
    return () if region.interface is None else msgspec.structs.astuple(region.interface)


def _seen_line(config: PeripheralConfig, core: str) -> PeripheralConfig:
    """Return a peripheral as a core sees it; a line that leads to another core is not connected."""
    return msgspec.structs.replace(
        config, core=FIRST, irq=config.irq if config.core == core else None
    )


@functools.lru_cache(maxsize=64)
def _with_timing(core: Core, timing: str | None) -> Core:
    """Return a core with another timing model."""
    return core if timing is None else dataclasses.replace(core, timing=timing)
