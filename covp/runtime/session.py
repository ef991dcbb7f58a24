"""`Session`: a device with covp's runtime on it, and everything that is loaded there."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from numpy.typing import ArrayLike

from covp.device.base import LowLevelDevice
from covp.errors import UsageError
from covp.platform_file import Platform, load_platform
from covp.runtime.abi import TASK_BYTES
from covp.runtime.devices import open_device
from covp.runtime.elf import ElfImage
from covp.runtime.image import DONE, ENTRY, QUEUE, place_runtime, runtime_exports
from covp.runtime.linking import ImageMemory, LoadedImage, write_image
from covp.runtime.module import Call, Module
from covp.runtime.tensor import DeviceTensor
from covp.toolchain import Source, get_toolchain

_MAX_TASKS = 64


class Session:
    """Loads C code and programs onto a device and runs them.

    Calls are queued and run together when a result is asked for (`Call.result`,
    `DeviceTensor.numpy`) or at `sync`; ``strict=True`` runs each at once.

    Args:
        platform: a platform, its name or the path of its YAML file.
        device: what the platform runs on; "virtual" is the emulated core.
        toolchain: "zig" or "gcc".
        strict: run every call when it is made.

    Raises:
        PlatformError, ToolchainError, UsageError, CapacityError: with one line each.
    """

    def __init__(
        self,
        platform: Platform | str | Path,
        device: str = "virtual",
        toolchain: str = "zig",
        strict: bool = False,
    ) -> None:
        self.platform = load_platform(platform)
        self.toolchain = get_toolchain(toolchain, self.platform.core)
        self.strict = strict
        self._memory = ImageMemory(self.platform)
        self._queue: list[Call] = []
        self._modules: list[Module] = []
        self._open = True
        self._runtime = place_runtime(self.toolchain, self.platform, self._memory)
        self._exports = runtime_exports(self._runtime)
        self.device: LowLevelDevice = open_device(device, self.platform)
        self._write(self._runtime)

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._open and kind is None:
            self.sync()
        self.close()

    def close(self) -> None:
        """Let the device go; queued calls are dropped. A second call does nothing."""
        if self._open:
            self._open = False
            for call in self._queue:
                call._drop()
            close = getattr(self.device, "close", None)
            if close is not None:
                close()

    def tensor(self, array: ArrayLike) -> DeviceTensor:
        """A copy of the array in device memory.

        Raises:
            CapacityError: it does not fit the RAM.
            UsageError: the dtype is none a device can hold.
        """
        self._check_open()
        return DeviceTensor(self, array)

    def load_c(
        self,
        source: str | Path,
        *,
        flags: Sequence[str] = (),
        include: Sequence[str | Path] = (),
    ) -> Module:
        """Compile C and load it beside what is there.

        Args:
            source: the path of a C file, or C text (anything that holds a line break or a brace).
            flags: further compiler options, e.g. ("-DN=3",).
            include: folders for ``#include``.

        Raises:
            ToolchainError: the first error as "file.c:12: message".
            CapacityError: a section does not fit; nothing was written then.
        """
        self._check_open()
        text = str(source)
        if isinstance(source, str) and ("\n" in text or "{" in text):
            unit = Source("module.c", text)
        else:
            unit = Source.read(Path(source))
        folders = [Path(folder).resolve() for folder in include]
        objects = self.toolchain.compile([unit], include=folders, flags=("-g", *flags))
        keep = sorted(_global_names(objects))
        image = self._memory.place(
            self.toolchain, objects, unit.name, keep=keep, symbols=self._exports
        )
        return self._add(Module(self, image, unit.name))

    def sync(self) -> None:
        """Run the queued calls.

        Raises:
            DeviceFault: one of them faulted; it and those behind it are dropped.
        """
        self._check_open()
        while self._queue:
            batch, self._queue = self._queue[:_MAX_TASKS], self._queue[_MAX_TASKS:]
            self._run(batch)

    def _run(self, batch: Sequence[Call]) -> None:
        size = len(batch) * TASK_BYTES
        block = self._memory.ram.allocate(size, 16, f"the queue of {len(batch)} calls")
        completed = 0
        queue = self._runtime.elf.symbols[QUEUE].address
        try:
            space = max(self._memory.ram.gaps(), key=lambda gap: gap.size)
            self.device.write(block.address, b"".join(call.task.pack() for call in batch))
            header = (block.address, len(batch), 0, space.address, space.size)
            self.device.write(queue, struct.pack("<5I", *header))
            try:
                self.device.execute(self._symbol(ENTRY), self._symbol(DONE))
            finally:
                (completed,) = struct.unpack("<I", self.device.read(queue + 8, 4))
                tasks = self.device.read(block.address, size)
                for position, call in enumerate(batch[:completed]):
                    call._finish(*struct.unpack_from("<II", tasks, position * TASK_BYTES + 8))
        except BaseException:
            for call in [*batch[completed:], *self._queue]:
                call._drop()
            self._queue.clear()
            raise
        finally:
            self._memory.ram.free(block)

    def _symbol(self, name: str) -> int:
        return self._runtime.elf.symbols[name].address

    def _enqueue(self, call: Call) -> None:
        self._queue.append(call)
        if self.strict:
            self.sync()

    def _add(self, module: Module) -> Module:
        try:
            self.sync()
            self._write(module.image)
        except BaseException:
            self._memory.release(module.image)
            raise
        self._modules.append(module)
        return module

    def _unload(self, module: Module) -> None:
        if self._open:
            self.sync()
        self._memory.release(module.image)
        self._modules.remove(module)

    def _write(self, image: LoadedImage) -> None:
        write_image(self.device, image.elf)
        add_debug_info = getattr(self.device, "add_debug_info", None)
        if add_debug_info is not None:
            add_debug_info(image.elf.content)

    def _check_open(self) -> None:
        if not self._open:
            raise UsageError("the session is closed")


def _global_names(objects: Sequence[Path]) -> set[str]:
    return {
        symbol.name
        for path in objects
        for symbol in ElfImage(path.read_bytes()).symbols.values()
        if symbol.visible
    }
