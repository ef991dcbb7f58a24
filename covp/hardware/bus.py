"""The memory of a device as bus masters see it: peripherals that load and store by themselves."""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from covp.chip.platform_file import Region
from covp.errors import DeviceError, DeviceFault, FaultKind
from covp.hardware.observer import Observer
from covp.hardware.traffic import UNKNOWN

_LOADS = ("read", "view")
_Bytes = bytes | bytearray | memoryview | NDArray[Any]


class Registers(Protocol):
    """A peripheral as a bus master reaches it; see `covp.hardware.peripheral.Peripheral`."""

    name: str

    def read_register(self, offset: int, size: int) -> int:
        """Return the value of a load of ``size`` bytes at an ``offset`` from the base address."""
        ...

    def write_register(self, offset: int, size: int, value: int) -> None:
        """Store a ``value`` of ``size`` bytes at an ``offset`` from the base address."""
        ...


class LineCache(Protocol):
    """A data cache between a core and memory, whose lines may differ from memory."""

    def memory_bytes(self, address: int, data: NDArray[np.uint8]) -> None:
        """Overwrite ``data``, the core's view of the bytes from ``address``, with memory's."""
        ...

    def store_memory(self, address: int, data: NDArray[np.uint8]) -> None:
        """Store ``data`` from ``address`` on to memory alone; overwrite it with the core's view."""
        ...

    def soil(self, address: int, size: int) -> None:
        """Mark ``size`` bytes from ``address`` as stored by the core and not in memory yet."""
        ...

    def store_both(self, address: int, data: NDArray[np.uint8]) -> None:
        """Store ``data``, which the core sees already from ``address`` on, to memory, too."""
        ...


class Memory:
    """A region of the memory map and the host buffer that holds it.

    The buffer has what the core sees. Where the core has a data cache, memory may hold something
    else: what bus masters `load` and `store`.

    It knows the pages that may differ from a saved state: a store of the core, `write` and what is
    handed out to be written mark them.

    Args:
        region: name, kind and place.
        content: uint8, shape (region.bytes,); the emulator maps these very bytes.

    Attributes:
        region: as given.
        content: as given, to be read only.
        dirty: uint8, shape (pages,): 0 for those that are as in the saved state, `ALWAYS` for those
            that someone holds.
        cache: the data cache that the core reads it through, or None.
    """

    PAGE = 4096
    ALWAYS = 2

    def __init__(self, region: Region, content: NDArray[np.uint8]) -> None:
        self.region = region
        self.content = content
        self.dirty = np.ones(-(-region.bytes // self.PAGE), np.uint8)
        self.cache: LineCache | None = None
        self._marks: memoryview[int] = self.dirty.data

    @classmethod
    def of(cls, region: Region) -> Memory:
        """Allocate zeroed memory for a region; the host commits its pages on first access.

        A fork has a copy, as of all that a device consists of.

        Raises:
            DeviceError: the host does not have that much memory.
        """
        try:
            private = mmap.mmap(-1, region.bytes, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        except OSError as error:
            raise DeviceError(
                f"memory {region.name}: {region.bytes:,} bytes of this machine: {error.strerror}"
            ) from None
        return cls(region, np.frombuffer(private, dtype=np.uint8))

    def slice(self, address: int, size: int) -> NDArray[np.uint8]:
        """Return the ``size`` bytes from ``address`` themselves, to be read and written."""
        self._mark(address, size, self.ALWAYS)
        return self._part(address, size)

    def view(self, address: int, size: int) -> NDArray[np.uint8]:
        """Return the ``size`` bytes from ``address`` themselves, to be read."""
        view: NDArray[np.uint8] = self._part(address, size).view()
        view.flags.writeable = False
        return view

    def read(self, address: int, size: int) -> bytes:
        """Return a copy of ``size`` bytes from ``address``, which the region holds."""
        return self._part(address, size).tobytes()

    def write(self, address: int, data: _Bytes) -> None:
        """Store ``data`` from ``address`` on: core and memory have it."""
        if len(data):
            raw = np.frombuffer(data, np.uint8)
            self._put(address, raw)
            if self.cache is not None:
                self.cache.store_both(address, raw)

    def load(self, address: int, size: int) -> NDArray[np.uint8]:
        """Return ``size`` bytes from ``address`` as bus masters see them, to be read."""
        if self.cache is None:
            return self.view(address, size)
        data: NDArray[np.uint8] = self._part(address, size).copy()
        self.cache.memory_bytes(address, data)
        data.flags.writeable = False
        return data

    def store(self, address: int, data: _Bytes) -> None:
        """Store a bus master's ``data`` from ``address`` on; the core sees it in lines not held."""
        if self.cache is None or not len(data):
            return self.write(address, data)
        seen = np.frombuffer(data, np.uint8).copy()
        self.cache.store_memory(address, seen)
        return self._put(address, seen)

    def _put(self, address: int, raw: NDArray[np.uint8]) -> None:
        self._part(address, raw.size)[:] = raw
        self._mark(address, raw.size, 1)

    def _part(self, address: int, size: int) -> NDArray[np.uint8]:
        start = address - self.region.start
        return self.content[start : start + size]

    def _mark(self, address: int, size: int, how: int) -> None:
        start = address - self.region.start
        first, last = start // self.PAGE, (start + size - 1) // self.PAGE
        if first == last:
            self._marks[first] = max(how, self._marks[first])
        else:
            pages = self.dirty[first : last + 1]
            np.maximum(pages, how, out=pages)

    @property
    def pointer(self) -> int:
        """Host address of the first byte."""
        return int(self.content.ctypes.data)


class Bus:
    """The reads and writes of one bus master. Addresses are the core's.

    Args:
        memories: all that can be addressed.
        master: name used in faults.
        wrote: called with the address and size of every write: translated code is out of date.
        moves: report the bytes that it moves to observers: it is hardware, not a debugger.
        registers: finds the peripheral at an address, with its base; None: the master reaches
            memory alone.
        sees_memory: the master is neither a core nor a debugger: it reaches memory, not what a
            data cache holds of it.
        observers: those of the board, which see every access.

    Attributes:
        memories: as given.
        observers: as given; `observe` adds to them.
    """

    def __init__(
        self,
        memories: Iterable[Memory],
        master: str,
        wrote: Callable[[int, int], None],
        moves: bool = False,
        registers: Callable[[int], tuple[int, Registers] | None] | None = None,
        sees_memory: bool = False,
        observers: list[Observer] | None = None,
    ) -> None:
        self.memories = tuple(memories)
        self._sees_memory = sees_memory
        self.master = master
        self._wrote = wrote
        self._moves = moves
        self.observers: list[Observer] = [] if observers is None else observers
        self._registers = registers
        self._is_counted = True

    def for_master(
        self,
        master: str,
        moves: bool = False,
        registers: Callable[[int], tuple[int, Registers] | None] | None = None,
        sees_memory: bool = False,
    ) -> Bus:
        """Return the same memory under another ``master``'s name.

        Args:
            master, moves, registers, sees_memory: as of the class.
        """
        return Bus(
            self.memories, master, self._wrote, moves, registers, sees_memory, self.observers
        )

    def observe(self, observer: Observer) -> ExitStack:
        """Report the accesses of all masters to ``observer`` until the result is closed."""
        self.observers.append(observer)
        registered = ExitStack()
        registered.callback(self.observers.remove, observer)
        return registered

    @contextmanager
    def uncounted(self) -> Iterator[None]:
        """Hide accesses that the hardware itself does not make from observers; see `count`."""
        before, self._is_counted = self._is_counted, False
        try:
            yield
        finally:
            self._is_counted = before

    def count(self, address: int | None, size: int, is_write: bool = False) -> None:
        """Report what the hardware moves to observers, for models whose own accesses differ.

        Args:
            address: where the bytes are; None if that is unknown.
            size: bytes.
            is_write: stored, else loaded.
        """
        if self.observers and size:
            memory = UNKNOWN
            if address is not None:
                memory = self._memory(address, 1, "read").region.name
            for observer in self.observers:
                observer.moved(self.master, memory, is_write, size)

    def read(self, address: int, size: int) -> bytes:
        """Return ``size`` bytes from ``address``. Raises DeviceFault outside the memory."""
        memory = self._memory(address, size, "read")
        if self.observers:
            self._tell_load(memory, address, size)
        return (
            memory.load(address, size).tobytes()
            if self._sees_memory
            else memory.read(address, size)
        )

    def write(self, address: int, data: bytes | bytearray | memoryview | NDArray[Any]) -> None:
        """Store ``data`` from ``address`` on. Raises DeviceFault outside the memory or in flash."""
        raw = np.frombuffer(data, dtype=np.uint8)
        memory = self._memory(address, raw.size, "write")
        if self.observers:
            self._tell_store(memory, address, raw)
        if self._sees_memory:
            memory.store(address, raw)
        else:
            memory.write(address, raw)
        self._wrote(address, raw.size)

    def program(self, address: int, data: bytes | bytearray | memoryview) -> None:
        """Store ``data`` from ``address`` on as `write`, but into flash too: for its controller.

        Raises DeviceFault outside the memory.
        """
        memory = self._memory(address, len(data), "program")
        if self.observers:
            self._tell_store(memory, address, np.frombuffer(data, np.uint8))
        memory.write(address, data)
        self._wrote(address, len(data))

    def region_at(self, address: int) -> Region:
        """Return the memory that holds the address. Raises DeviceFault where there is none."""
        return self._memory(address, 1, "read").region

    def view(self, address: int, size: int) -> NDArray[np.uint8]:
        """Return the bytes from ``address`` themselves as uint8 (size,), read-only in flash.

        Where a core has a data cache a peripheral gets a read-only copy of what memory holds.
        Observers take them for loaded.
        Code that already ran must not be written this way; use `write` for that.
        Raises DeviceFault outside the memory.
        """
        memory = self._memory(address, size, "view")
        if self.observers:
            self._tell_load(memory, address, size)
        if self._sees_memory and memory.cache is not None:
            return memory.load(address, size)
        is_flash = memory.region.kind == "flash"
        return memory.view(address, size) if is_flash else memory.slice(address, size)

    def load(self, address: int, size: int) -> int:
        """Return an element of memory, or a peripheral's register, little-endian.

        Args:
            address: of its first byte.
            size: 1, 2 or 4 bytes.

        Raises:
            DeviceFault: nothing is there, or the peripheral rejects the access.
        """
        found = self._registers(address) if self._registers is not None else None
        if found is None:
            return int.from_bytes(self.read(address, size), "little")
        base, model = found
        if self.observers:
            self._notify_moved(model.name, False, size)
        return model.read_register(address - base, size)

    def store(self, address: int, size: int, value: int) -> None:
        """Store a ``value`` of ``size`` bytes at ``address``; the opposite of `load`."""
        found = self._registers(address) if self._registers is not None else None
        if found is None:
            return self.write(address, value.to_bytes(size, "little"))
        base, model = found
        if self.observers:
            self._notify_moved(model.name, True, size)
        return model.write_register(address - base, size, value)

    def registers_at(self, address: int) -> Registers | None:
        """Return the peripheral at an ``address``; None: none that the master reaches."""
        found = self._registers(address) if self._registers is not None else None
        return found[1] if found is not None else None

    def _tell_load(self, memory: Memory, address: int, size: int) -> None:
        for observer in self.observers:
            observer.load(self.master, address, size)
        self._notify_moved(memory.region.name, False, size)

    def _tell_store(self, memory: Memory, address: int, data: NDArray[np.uint8]) -> None:
        for observer in self.observers:
            observer.store(self.master, address, data)
        self._notify_moved(memory.region.name, True, data.size)

    def _notify_moved(self, place: str, is_write: bool, size: int) -> None:
        if self._moves and self._is_counted and size:
            for observer in self.observers:
                observer.moved(self.master, place, is_write, size)

    def is_memory(self, address: int, size: int, writable: bool = False) -> bool:
        """Return whether one memory holds ``size`` bytes at ``address``; ``writable``: no flash."""
        return any(
            memory.region.holds(address, size) and not (writable and memory.region.kind == "flash")
            for memory in self.memories
        )

    def _memory(self, address: int, size: int, what: str) -> Memory:
        for memory in self.memories:
            region = memory.region
            if region.holds(address, size):
                if what == "write" and region.kind == "flash":
                    raise self._fault("write to read-only memory", address, size, region.name)
                return memory
        kind: FaultKind = "unmapped read" if what in _LOADS else "unmapped write"
        raise self._fault(kind, address, size, "outside the memory map")

    def _fault(self, kind: FaultKind, address: int, size: int, why: str) -> DeviceFault:
        detail = f"by bus master {self.master}: {why}"
        return DeviceFault(kind, address=address, size=size, detail=detail)
