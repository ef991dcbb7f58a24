"""`Session`: a device with covp's runtime on it, and everything that is loaded there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec
from numpy.typing import ArrayLike

from covp.base.arguments import demand, demand_each
from covp.chip.platform_file import Platform
from covp.codegen.program import AcceleratorInstance, Program
from covp.compilers.elf import global_names
from covp.compilers.toolchain import SourceText, split_sources
from covp.device.base import LowLevelDevice
from covp.errors import ToolchainError, UsageError
from covp.runtime.accelerators import attach_accelerator, detach_accelerator
from covp.runtime.allocator import RegionUse
from covp.runtime.graph_module import GraphModule
from covp.runtime.hosted_graph import HostedGraph
from covp.runtime.linking import FLASH_SECTIONS, RAM_SECTIONS, LoadedImage, runtime_library
from covp.runtime.module import Module
from covp.runtime.placement import place_program
from covp.runtime.profile import MemoryUse, Profile
from covp.runtime.resident import Resident
from covp.runtime.tensor import DeviceTensor

_M = TypeVar("_M", bound=Module)


class Session(Resident):
    """Loads C code and programs onto a device and runs them.

    Calls are queued and run together when a result is needed (`Call.result`,
    `DeviceTensor.numpy`) or at `sync`; ``strict=True`` runs each at once.

    Args:
        platform: a platform, its name or the path of its YAML file.
        device: what the platform runs on: a name ("virtual" is the emulated core) or a device.
        toolchain: "zig" or "gcc".
        strict: run every call when it is made.
        timeout: seconds of host time that what is run together may take; None is the device's
            default. A program that takes longer faults.
        sanitize: check every load and store (`covp.runtime.sanitizer`): accesses outside the
            arrays that a call was given, its stack and its module's variables are faults, and so
            are uses of memory that was never written. On the virtual device only; code runs several
            times as slowly, with the same counts.
        ubsan: compile all C with the compiler's checks for undefined behaviour: signed overflow,
            shifts, alignment, bounds of arrays, division, null pointers, conversions of floats. The
            first that fails ends the run as a DeviceFault of the kind "undefined behaviour", with
            its line and values. Options of ``flags`` come later, e.g. "-fno-sanitize=shift-base".

    Raises:
        PlatformError, ToolchainError, UsageError, CapacityError: with one line each.
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
        super().__init__(platform, device, toolchain, strict, timeout, sanitize, ubsan)
        self._checks = self.toolchain.undefined_behaviour_checks if ubsan else ()
        self._checks += self.toolchain.apart if sanitize else ()
        self._programs: list[Program] = []
        self._accelerators: dict[int, AcceleratorInstance] = {}

    def tensor(self, array: ArrayLike) -> DeviceTensor:
        """Copy the array into device memory.

        Raises:
            CapacityError: it does not fit the RAM.
            UsageError: the dtype is none a device can hold.
        """
        self.check_open()
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
        self.check_open()
        demand("source", source, (str, Path), "C text or the path of a C file")
        demand_each("flags", flags, str, "an option")
        demand_each("include", include, (str, Path), "the path of a folder")
        text = str(source)
        if isinstance(source, str) and ("\n" in text or "{" in text):
            unit = SourceText("module.c", text)
        else:
            unit = SourceText.read(Path(source))
        folders = [Path(folder).resolve() for folder in include]
        defines = (f"-D{name}={value}" for name, value in self.platform.cache_defines.items())
        options = ("-g", *self._checks, *defines, *flags)
        objects = self.toolchain.compile([unit], include=folders, flags=options)
        module = self._add_library(objects, unit.name)
        module.given = {
            "source": source,
            "flags": tuple(flags),
            "include": tuple(map(str, include)),
        }
        return module

    def load_sources(
        self, files: Mapping[str, str], name: str, *, flags: Sequence[str] = ()
    ) -> Module:
        """Compile several C files and load them as one module.

        Args:
            files: name to text; ``.c`` and ``.S`` files are compiled, ``.h`` files are included.
            name: of the module, for messages.
            flags: further compiler options.

        Raises:
            ToolchainError: the first error as "file.c:12: message".
            CapacityError: a section does not fit; nothing was written then.
        """
        self.check_open()
        demand("files", files, Mapping, "a dictionary of names and texts")
        if not files:
            raise UsageError("files must name at least one C file")
        demand_each("names of files", files, str, "text")
        demand_each("texts of files", files.values(), str, "text")
        demand_each("flags", flags, str, "an option")
        debug = any(flag.startswith("-g") for flag in flags)  # with zig the first one counts
        lines = ("-g1",) if self.ubsan and not debug else ()  # for call stacks
        options = (*lines, *self._checks, *flags)
        objects = self.toolchain.compile(*split_sources(files), flags=options)
        return self._add_library(objects, name)

    def load(self, program: Program, hosted: bool = False) -> GraphModule:
        """Compile a program's C, load it and put its accelerators on the bus.

        Args:
            hosted: the layers and tensors live on the device, the host starts the layers one by
                one; see `HostedGraph`.

        Raises:
            ToolchainError: its C does not compile or link.
            CapacityError: a section does not fit; nothing was written then. The text says which
                region is too small, by how much, and what may help.
            UsageError: it was compiled for another platform, or an address of its accelerators is
                taken by another.
        """
        self.check_open()
        demand("program", program, Program, "what covp.compile gave")
        if msgspec.structs.replace(program.platform, name=self.platform.name) != self.platform:
            raise UsageError(
                f"{program.name} was compiled for {program.platform.name}, "
                f"the session runs {self.platform.name}"
            )
        keep: list[str] = []
        if hosted:
            keep += [layer.wrapper or layer.function for layer in program.layers]
            keep += [program.startup_function, program.keep_function]
        try:
            image = place_program(
                self.image_memory, self.toolchain, program, self.exports, keep, self._checks
            )
        except ToolchainError as error:
            raise _of_driver(error, program) from None
        try:
            for accelerator in program.accelerators:
                self._attach(accelerator)
        except BaseException:
            self._detach(program.accelerators)
            self.image_memory.release(image)
            raise
        kind = HostedGraph if hosted else GraphModule
        module = self._add(kind(self, image, program, self._detach_accelerators))
        self._programs.append(program)
        if program.states:
            self._begin(module)
        return module

    def _begin(self, module: GraphModule) -> None:
        """Give a loaded program's states their initial values; it is unloaded where that faults."""
        try:
            module.reset()
        except BaseException:
            module.unload()
            raise

    def profile(self) -> Profile:
        """Return the cost of the latest inference. Raises UsageError when none has run."""
        if self.latest is None:
            raise UsageError("no program has run yet: load one and call its run()")
        return self.latest

    def memory(self) -> MemoryUse:
        """Return the memory in use now, by the runtime and everything that is loaded."""
        variables = sum(image.bytes_in(RAM_SECTIONS) for image in self.images)
        flash = sum(image.bytes_in((*FLASH_SECTIONS, ".data")) for image in self.images)
        stack = self.image_memory.stack.size
        return MemoryUse(
            flash_bytes=flash,
            ram_bytes=variables + stack,
            arena_bytes=sum(program.arena_bytes for program in self._programs),
            stack_bytes=stack,
            state_bytes=sum(program.state_bytes for program in self._programs),
            tensor_bytes=self.image_memory.ram.used_bytes - variables - stack,
        )

    def regions(self) -> tuple[RegionUse, ...]:
        """Return the use of each memory region, flash first."""
        return self.image_memory.flash.use() + self.image_memory.ram.use()

    def _add_library(self, objects: Sequence[Path], name: str) -> Module:
        """Add all functions of some objects as a module."""
        return self._add(Module(self, self._link(objects, name, global_names(objects)), name))

    def _link(self, objects: Sequence[Path], what: str, keep: Sequence[str]) -> LoadedImage:
        library = runtime_library(self.toolchain)
        return self.image_memory.place(
            self.toolchain, [*objects, library], what, keep=keep, symbols=self.exports
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
        attach_accelerator(hardware, accelerator)
        self._accelerators[accelerator.base] = accelerator

    def _detach(self, accelerators: Sequence[AcceleratorInstance]) -> None:
        """Take accelerators that no loaded program needs any more off the bus."""
        needed = {a.base for program in self._programs for a in program.accelerators}
        for accelerator in accelerators:
            if accelerator.base in self._accelerators and accelerator.base not in needed:
                del self._accelerators[accelerator.base]
                hardware = self.device.abilities.hardware
                if self.is_open and hardware is not None:
                    detach_accelerator(hardware, accelerator)

    def _add(self, module: _M) -> _M:
        try:
            self.sync()
            self.load_image(module.image, module.name)
        except BaseException:
            self.image_memory.release(module.image)
            raise
        return module

    def _detach_accelerators(self, module: Module) -> None:
        """Detach the accelerators of a program whose memory was given back."""
        assert isinstance(module, GraphModule)
        self._programs.remove(module.program)
        self._detach(module.program.accelerators)


def _of_driver(error: ToolchainError, program: Program) -> ToolchainError:
    """Add the accelerator to the compiler's message if it is about its driver."""
    file = str(error).partition(":")[0]
    for accelerator in program.accelerators:
        if file in accelerator.files:
            return ToolchainError(f"driver of accelerator {accelerator.name}: {error}")
    return error
