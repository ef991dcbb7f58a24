"""`Session`: a device with covp's runtime on it, and everything that is loaded there."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from numpy.typing import ArrayLike

from covp.device.base import LowLevelDevice
from covp.errors import ToolchainError, UsageError
from covp.hardware.custom_instruction import InstructionUnit
from covp.platform_file import Platform, load_platform
from covp.program import AcceleratorInstance, Program
from covp.runtime.devices import open_device
from covp.runtime.elf import global_names
from covp.runtime.graph_module import GraphModule
from covp.runtime.hosted_graph import HostedGraph
from covp.runtime.image import place_runtime, runtime_exports, runtime_library
from covp.runtime.linking import (
    FLASH_SECTIONS,
    RAM_SECTIONS,
    ImageMemory,
    LoadedImage,
    write_image,
)
from covp.runtime.module import Call, Module
from covp.runtime.profile import Cost, MemoryUse, Profile
from covp.runtime.task_queue import TaskQueue
from covp.runtime.tensor import DeviceTensor
from covp.runtime.transfers import MeteredDevice
from covp.toolchain import Source, get_toolchain

_M = TypeVar("_M", bound=Module)


class Session:
    """Loads C code and programs onto a device and runs them.

    Calls are queued and run together when a result is asked for (`Call.result`,
    `DeviceTensor.numpy`) or at `sync`; ``strict=True`` runs each at once.

    Args:
        platform: a platform, its name or the path of its YAML file.
        device: what the platform runs on; "virtual" is the emulated core.
        toolchain: "zig" or "gcc".
        strict: run every call when it is made.
        timeout: seconds of host time that what is run together may take; None is the device's
            default. A program that takes longer faults.

    Raises:
        PlatformError, ToolchainError, UsageError, CapacityError: with one line each.
    """

    def __init__(
        self,
        platform: Platform | str | Path,
        device: str = "virtual",
        toolchain: str = "zig",
        strict: bool = False,
        timeout: float | None = None,
    ) -> None:
        self.platform = load_platform(platform)
        self.toolchain = get_toolchain(toolchain, self.platform.core)
        self.strict = strict
        self._memory = ImageMemory(self.platform)
        self._modules: list[Module] = []
        self._accelerators: dict[int, AcceleratorInstance] = {}
        self._last_run: GraphModule | None = None
        self._open = True
        self._runtime = place_runtime(self.toolchain, self.platform, self._memory)
        self._exports = runtime_exports(self._runtime)
        self.device: LowLevelDevice = open_device(device, self.platform)
        self._io = MeteredDevice(self.device)
        self._queue = TaskQueue(self.platform, self._io, self._memory, self._runtime, timeout)
        self._write(self._runtime)

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
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
            if self._io.busy:
                raise UsageError(
                    f"the session on {self.platform.name} is in use: a call is running on its "
                    "device; wait for it, or set a timeout"
                )
            self._open = False
            self._queue.drop_all()
            if self.device.abilities.closing is not None:
                self.device.abilities.closing.close()

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
        image = self._place(objects, unit.name, global_names(objects))
        return self._add(Module(self, image, unit.name))

    def load(self, program: Program, hosted: bool = False) -> GraphModule:
        """Compile a program's C, load it and put its accelerators on the bus.

        Args:
            hosted: the layers and tensors live on the device, the host starts the layers one by
                one; see `HostedGraph`.

        Raises:
            ToolchainError: its C does not compile or link.
            CapacityError: a section does not fit; nothing was written then.
            UsageError: it was compiled for another platform, or an address of its accelerators is
                taken by another.
        """
        self._check_open()
        if program.platform != self.platform:
            raise UsageError(
                f"{program.name} was compiled for {program.platform.name}, "
                f"the session runs {self.platform.name}"
            )
        sources = [
            Source(n, text) for n, text in program.sources.items() if n.endswith((".c", ".S"))
        ]
        headers = {n: text for n, text in program.sources.items() if n.endswith(".h")}
        try:
            objects = self.toolchain.compile(sources, headers, flags=("-g1", *program.flags))
        except ToolchainError as error:
            raise _of_driver(error, program) from None
        keep = [program.run_function, program.arena_symbol]
        if hosted:
            keep += [layer.function for layer in program.layers]
            keep += filter(None, [program.startup_function])
        image = self._place(objects, program.name, keep)
        try:
            for accelerator in program.accelerators:
                self._attach(accelerator)
        except BaseException:
            self._detach(program.accelerators)
            self._memory.release(image)
            raise
        kind = HostedGraph if hosted else GraphModule
        return self._add(kind(self, image, program))

    def profile(self) -> Profile:
        """The cost of the latest inference. Raises UsageError when none has run."""
        if self._last_run is None:
            raise UsageError("no program has run yet: load one and call its run()")
        return self._last_run.profile()

    def memory(self) -> MemoryUse:
        """What the runtime and all that is loaded take of the memory now."""
        images = [self._runtime, *(module.image for module in self._modules)]
        variables = sum(image.bytes_in(RAM_SECTIONS) for image in images)
        flash = sum(image.bytes_in((*FLASH_SECTIONS, ".data")) for image in images)
        graphs = [module for module in self._modules if isinstance(module, GraphModule)]
        stack = self._memory.stack.size
        return MemoryUse(
            flash_bytes=flash,
            ram_bytes=variables + stack,
            arena_bytes=sum(graph.program.arena_bytes for graph in graphs),
            stack_bytes=stack,
            tensor_bytes=self._memory.ram.used_bytes - variables - stack,
        )

    @property
    def timeout(self) -> float | None:
        """Seconds of host time for what is run together; None is the device's default."""
        return self._queue.timeout

    @timeout.setter
    def timeout(self, seconds: float | None) -> None:
        self._queue.timeout = seconds

    def sync(self) -> Cost:
        """Run the queued calls; what they cost together, as far as the device can tell.

        Raises:
            DeviceFault: one of them faulted; it and those behind it are dropped.
        """
        self._check_open()
        return Cost.of(self._queue.run_all())

    def _symbol(self, name: str) -> int:
        return self._runtime.elf.symbols[name].address

    def _enqueue(self, call: Call) -> None:
        self._queue.add(call)
        if self.strict:
            self.sync()

    def _place(self, objects: Sequence[Path], what: str, keep: Sequence[str]) -> LoadedImage:
        library = runtime_library(self.toolchain)
        return self._memory.place(
            self.toolchain, [*objects, library], what, keep=keep, symbols=self._exports
        )

    def _attach(self, accelerator: AcceleratorInstance) -> None:
        """Put an accelerator on the bus, unless the same one is there from another program."""
        present = self._accelerators.get(accelerator.base)
        where = f"{accelerator.name} at 0x{accelerator.base:08x}"
        if present is not None:
            if present.is_like(accelerator):
                return
            same = (present.name, present.spec) == (accelerator.name, accelerator.spec)
            other = "another class" if same else present.spec
            raise UsageError(f"{where}: {other} is there already; load it in another session")
        hardware = self.device.abilities.hardware
        if hardware is None:
            raise UsageError(f"{where}: this device cannot be given accelerators; use virtual")
        model = accelerator.make()
        if isinstance(model, InstructionUnit):
            hardware.add_instructions(accelerator.name, model.instructions)
        else:
            hardware.attach(model, accelerator.base, accelerator.name, accelerator.irq)
        self._accelerators[accelerator.base] = accelerator

    def _detach(self, accelerators: Sequence[AcceleratorInstance]) -> None:
        """Take accelerators that no loaded program needs any more off the bus."""
        graphs = [module for module in self._modules if isinstance(module, GraphModule)]
        needed = {a.base for graph in graphs for a in graph.program.accelerators}
        for accelerator in accelerators:
            if accelerator.base in self._accelerators and accelerator.base not in needed:
                del self._accelerators[accelerator.base]
                hardware = self.device.abilities.hardware
                if not self._open or hardware is None:
                    continue
                if accelerator.name in hardware.peripherals:
                    hardware.detach(accelerator.name)
                else:
                    hardware.remove_instructions(accelerator.name)

    def _add(self, module: _M) -> _M:
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
            if self.device.abilities.names is not None:
                self.device.abilities.names.remove_debug_info(module.image.elf.content)
        self._memory.release(module.image)
        self._modules.remove(module)
        if isinstance(module, GraphModule):
            self._detach(module.program.accelerators)

    def _write(self, image: LoadedImage) -> None:
        write_image(self._io, image.elf)
        if self.device.abilities.names is not None:
            self.device.abilities.names.add_debug_info(image.elf.content)

    def _check_open(self) -> None:
        if not self._open:
            raise UsageError("the session is closed")


def _of_driver(error: ToolchainError, program: Program) -> ToolchainError:
    """The compiler's message, with the accelerator whose driver it is about."""
    file = str(error).partition(":")[0]
    for accelerator in program.accelerators:
        if file in accelerator.files:
            return ToolchainError(f"driver of accelerator {accelerator.name}: {error}")
    return error
