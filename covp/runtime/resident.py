"""`Resident`: a device with covp's runtime in its memory: place data there, call addresses."""

from __future__ import annotations

import threading
import weakref
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from covp.base.arguments import demand, demand_count, demand_seconds
from covp.chip.platform_file import Platform, load_platform
from covp.compilers.toolchain import get_toolchain
from covp.device.base import LowLevelDevice
from covp.device.stop import Stop
from covp.errors import UsageError
from covp.runtime.abi import untyped_task
from covp.runtime.allocator import Block
from covp.runtime.call import Call
from covp.runtime.devices import open_device
from covp.runtime.linking import (
    ALIGNMENT,
    MARGIN,
    ImageMemory,
    LoadedImage,
    place_runtime,
    runtime_exports,
    write_image,
)
from covp.runtime.profile import Cost, Profile
from covp.runtime.sanitizer import Sanitizer
from covp.runtime.signature import CType, Signature
from covp.runtime.task_queue import TaskQueue
from covp.runtime.transfers import MeteredDevice


class Exclusive:
    """A context that one thread is in; it may enter again.

    Args:
        what: it protects, for the error.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._lock = threading.RLock()
        self._user = 0

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            raise UsageError(
                f"{self._what} is in use by thread {self._name()}; open a session for each thread, "
                "or let one thread make all calls"
            )
        self._user = threading.get_ident()

    def __exit__(self, *error: object) -> None:
        self._lock.release()

    def _name(self) -> str:
        """Return the name of the thread that is inside."""
        names = [one.name for one in threading.enumerate() if one.ident == self._user]
        return names[0] if names else "?"


_WORD = CType("int", "uint32_t", 4)
_Self = TypeVar("_Self", bound="Resident")


class Placed:
    """Bytes of RAM that belong to the host; `Resident.place` makes them.

    They are given back by `free`, or when this object is no longer referenced.

    Attributes:
        address: of the first byte.
        nbytes: how many.
    """

    def __init__(
        self,
        memory: ImageMemory,
        nbytes: int,
        alignment: int,
        what: str,
        offset: int = 0,
        sanitizer: Sanitizer | None = None,
    ) -> None:
        block = memory.ram.allocate(offset + nbytes, alignment, what)
        self.address, self.nbytes = block.address + offset, nbytes
        if sanitizer is not None:
            sanitizer.add_array(self.address, nbytes, what)
        self._release = weakref.finalize(self, _release, memory, block, self.address, sanitizer)
        self._release.atexit = False

    @property
    def alive(self) -> bool:
        """False once they were given back."""
        return bool(self._release.alive)

    def free(self) -> None:
        """Give the bytes back. A second call does nothing."""
        self._release()


def _release(memory: ImageMemory, block: Block, address: int, sanitizer: Sanitizer | None) -> None:
    if sanitizer is not None:
        sanitizer.remove_array(address)
    memory.ram.free(block)


@dataclass(frozen=True, eq=False)
class Snapshot:
    """A state that `Resident.restore` goes back to.

    Attributes:
        owner: whose state it is.
        images: what was loaded; the same has to be there when it is restored.
        state: the device's.
    """

    owner: Resident
    images: tuple[LoadedImage, ...]
    state: object


class ImageWatcher(Protocol):
    """Looks at what is loaded in a session; see `Resident.image_watchers`."""

    def loaded(self, image: LoadedImage) -> None:
        """React to an image that was loaded into the memory."""
        ...

    def leaving(self) -> None:
        """React before an image leaves the memory, or the device is released."""
        ...


class Resident:
    """The ground of tensors and modules: memory, the task queue, and the runtime's own image.

    Args:
        platform, device, toolchain, strict, timeout, sanitize, ubsan: as for `covp.Session`,
            which is one.

    Attributes:
        ubsan: whether its C is compiled with undefined-behaviour checks.
        device: what the platform runs on.
        io: the device, with its transfers counted.
        image_memory: which bytes of the target are in use.
        sanitizer: checks the memory accesses of calls; None without ``sanitize``.
        queue: the calls that wait.
        images: everything that is loaded, the runtime first.
        image_watchers: who looks at what is loaded.
        counted: the functions that `run` counts, while the device's phases are those.
        latest: the profile of the latest inference; None before the first.
        in_use: the context of a thread that uses the session; others get a UsageError.
    """

    def __init__(
        self,
        platform: Platform | str | Path,
        device: str | LowLevelDevice = "virtual",
        toolchain: str = "zig",
        strict: bool = False,
        timeout: float | None = None,
        sanitize: bool = False,
        ubsan: bool = False,
    ) -> None:
        self.platform = load_platform(platform)
        self.toolchain = get_toolchain(toolchain, self.platform.core)
        if timeout is not None:
            demand_seconds("timeout", timeout)
        self.strict = strict
        self.ubsan = ubsan
        self.image_memory = ImageMemory(self.platform, MARGIN if sanitize else 0)
        runtime = place_runtime(self.toolchain, self.platform, self.image_memory, ubsan)
        self.images: list[LoadedImage] = []
        self.exports = runtime_exports(runtime)
        self.latest: Profile | None = None
        self.counted: set[int] = set()
        self.image_watchers: list[ImageWatcher] = []
        self._open = True
        self.in_use = Exclusive(f"the session on {self.platform.name}")
        self.device = open_device(device, self.platform)
        self.io = MeteredDevice(self.device)
        self.sanitizer = self._sanitizer(runtime) if sanitize else None
        self.queue = TaskQueue(
            self.platform, self.io, self.image_memory, runtime, timeout, self.sanitizer
        )
        self.load_image(runtime, "the runtime")

    def _sanitizer(self, runtime: LoadedImage) -> Sanitizer:
        try:
            sanitizer = Sanitizer(self.platform, self.device, self.image_memory.stack)
        except BaseException:
            self._close_device()
            raise
        sanitizer.trust(runtime)
        return sanitizer

    def _close_device(self) -> None:
        if self.device.abilities.closing is not None:
            self.device.abilities.closing.close()

    def __enter__(self: _Self) -> _Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            if self._open and kind is None:
                self.sync()
        finally:
            self.close()

    def close(self) -> None:
        """Let the device go; queued calls are dropped. A second call does nothing.

        Raises:
            UsageError: the device is executing, for another thread; nothing was closed.
        """
        if self._open:
            if self.io.busy:
                raise UsageError(
                    f"the session on {self.platform.name} is in use: a call is running on its "
                    "device; wait for it, or set a timeout"
                )
            for watcher in tuple(self.image_watchers):
                watcher.leaving()
            self._open = False
            self.queue.drop_all()
            self._close_device()

    @property
    def is_open(self) -> bool:
        """False after `close`."""
        return self._open

    def check_open(self) -> None:
        """Raise UsageError after `close`."""
        if not self._open:
            raise UsageError("the session is closed")

    # -- memory -------------------------------------------------------------------------------

    def place(
        self, data: bytes | int, alignment: int = ALIGNMENT, what: str = "data", offset: int = 0
    ) -> Placed:
        """Reserve bytes of RAM for the host's use.

        Args:
            data: the content, or the number of bytes, whose content is then undefined.
            alignment: of the address, a power of two.
            what: names them where they do not fit.
            offset: the address modulo ``alignment``.

        Raises:
            CapacityError: they do not fit the RAM.
        """
        self.check_open()
        nbytes = data if isinstance(data, int) else len(data)
        placed = Placed(self.image_memory, nbytes, alignment, what, offset, self.sanitizer)
        if not isinstance(data, int):
            self.write(placed.address, data)
        return placed

    def read(self, address: int, size: int) -> bytes:
        """Read ``size`` bytes of the target's memory at ``address``; queued calls run first.

        Raises:
            DeviceError: outside the memory.
        """
        demand_count("address", address)
        demand_count("size", size)
        with self.in_use:
            self.sync()
            return self.io.read(address, size) if size else b""

    def write(self, address: int, data: bytes) -> None:
        """Store ``data`` in the target's memory from ``address`` on; queued calls run first.

        Raises:
            DeviceError: outside the memory.
        """
        demand_count("address", address)
        demand("data", data, (bytes, bytearray, memoryview), "bytes")
        with self.in_use:
            self.sync()
            if data:
                self.io.write(address, data)

    def share(self, placed: Placed) -> None:
        """Let any call access these bytes (with `sanitize`), as the user learns their address."""
        if self.sanitizer is not None:
            self.sanitizer.share(placed.address)

    def load_image(self, image: LoadedImage, name: str) -> None:
        """Write a linked image to its place; faults name its code, and it, from then on."""
        write_image(self.io, image.elf)
        if self.device.abilities.names is not None:
            self.device.abilities.names.symbols.add(image.elf.content)
        if self.sanitizer is not None:
            self.sanitizer.add_image(image, name, is_own=not self.images)
        self.images.append(image)
        for watcher in tuple(self.image_watchers):
            watcher.loaded(image)

    def unload_image(self, image: LoadedImage) -> None:
        """Give an image's memory back."""
        for watcher in tuple(self.image_watchers):
            watcher.leaving()
        if self._open and self.device.abilities.names is not None:
            self.device.abilities.names.symbols.remove(image.elf.content)
        self.counted.clear()
        if self.sanitizer is not None:
            self.sanitizer.remove_image(image)
        self.image_memory.release(image)
        self.images.remove(image)

    # -- calls --------------------------------------------------------------------------------

    def call(self, address: int, *arguments: int | float, name: str = "") -> int:
        """Call an address now, after the queued calls.

        Args:
            address: of the function, with the Thumb bit on Arm.
            arguments: in C order; an int is a word of 32 bits (two's complement or an address), a
                float is a float32.
            name: of the function, for errors.

        Returns:
            The word in the first result register.

        Raises:
            UsageError: more arguments than the calling convention passes here.
            DeviceFault: the function faulted.
        """
        what = name or f"0x{address:08x}"
        call = Call(
            Signature(what, (), _WORD), untyped_task(self.platform.core, address, arguments, what)
        )
        with self.in_use:
            self.sync()
            self.queue.run([call])
        return int(call.result() or 0)

    def enqueue(self, call: Call) -> None:
        """Let a call wait for `sync`; with ``strict`` run it."""
        with self.in_use:
            self.queue.add(call)
            if self.strict:
                self.sync()

    def run(self, call: Call, function: int, workspace: Block | None = None) -> Stop:
        """Run a call now, after the queued ones and in an execution of its own.

        Args:
            call: not queued.
            function: its address, in which phase 1 is counted, where the device counts by phase.
            workspace: see `TaskQueue.run`.

        Raises:
            DeviceFault: it faulted.
        """
        with self.in_use:
            if self.queue:
                self.sync()
            if function not in self.counted:
                self._count_inside(function)
            return self.queue.run([call], workspace)

    def _count_inside(self, function: int) -> None:
        """Let phase 1 be the functions that `run` calls: this one, too."""
        self.counted.add(function)
        abilities = self.device.abilities
        if abilities.phases is not None:
            if abilities.causes is not None:
                abilities.causes.explain_cycles(False)
            inside = [(address, 1) for address in self.counted]
            abilities.phases.set_phases([*inside, (self.queue.call_return, 0)])
            if abilities.causes is not None:
                abilities.causes.explain_cycles(True)

    def sync(self) -> Cost:
        """Run the queued calls; their cost together, as far as the device can tell.

        Raises:
            DeviceFault: one of them faulted; it and those after it are dropped.
            UsageError: another thread is using the session.
        """
        self.check_open()
        with self.in_use:
            return Cost.of(self.queue.run_all())

    @property
    def timeout(self) -> float | None:
        """Seconds of host time for what is run together; None is the device's default."""
        return self.queue.timeout

    @timeout.setter
    def timeout(self, seconds: float | None) -> None:
        self.queue.timeout = seconds

    # -- going back ---------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        """Save the state of the device: memory, registers, counters, clock and peripherals.

        Queued calls run first.

        Raises:
            UsageError: the device cannot save its state.
        """
        self.sync()
        ability = self.device.abilities.state
        if ability is None:
            raise UsageError(f"the device of {self.platform.name} cannot save its state")
        return Snapshot(self, tuple(self.images), ability.save_state())

    def restore(self, snapshot: Snapshot) -> None:
        """Go back to a snapshot; queued calls are dropped.

        Tensors that were made since keep their memory, whose content is what it was before them.

        Raises:
            UsageError: it was taken in another session, or with other modules loaded.
        """
        self.check_open()
        demand("snapshot", snapshot, Snapshot, "what Session.snapshot gave")
        ability = self.device.abilities.state
        if snapshot.owner is not self or ability is None:
            raise UsageError("a snapshot can be restored in the session that it was taken in only")
        if snapshot.images != tuple(self.images):
            raise UsageError(
                "the snapshot was taken with other modules loaded; load and unload before it"
            )
        with self.in_use:
            self.queue.drop_all()
            ability.load_state(snapshot.state)
