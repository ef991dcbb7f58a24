"""`BisectBench`: a program whose layers run alone: an arena's content in, another out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.base.closing import Closing
from covp.codegen.program import Program
from covp.device.abilities import Emulator
from covp.device.machine.store_log import StoreLog
from covp.errors import UsageError
from covp.laboratory.target import Target
from covp.runtime.accelerators import attach_accelerator
from covp.runtime.module import Module
from covp.runtime.session import Session
from covp.testing.bisect.layer_files import layer_files, needed_accelerators
from covp.testing.bisect.tensors import Tensors
from covp.testing.bisect.trace import MasterLog, MasterStore, StoreTrace


class BisectBench(Closing):
    """A program on a device of its own until `close`.

    Args:
        program: what `covp.compile` made, its sources and flags changed or not.
        device, toolchain: as for `covp.Session`.
        only: position of the layer that is compiled; None: all of them.

    Attributes:
        tensors: their places.
        name: such as "riscv32 zig", for reports.

    Raises:
        CovpError: as for `Session.load`.
    """

    def __init__(
        self,
        program: Program,
        device: str = "virtual",
        toolchain: str = "zig",
        only: int | None = None,
    ) -> None:
        self.program, self.device, self.toolchain = program, device, toolchain
        self.tensors = Tensors(program)
        self.name = f"{Target(program.platform.name, device)} {toolchain}"
        self.session = Session(program.platform, device, toolchain, strict=True)
        try:
            self._module = self._load(only)
            self._symbols = self._module.image.elf.symbols
            self.arena = self._module.address(program.arena_symbol)
            if program.startup_function in self._symbols:
                self._call(program.startup_function)
            can_restore = self.session.device.abilities.state is not None
            self._fresh = self.session.snapshot() if can_restore else None
        except BaseException:
            self.session.close()
            raise

    def _load(self, only: int | None) -> Module:
        """Load all of the program, or the files of one layer and its accelerators."""
        if only is None:
            return self.session.load(self.program, hosted=True)
        hardware = self.session.device.abilities.hardware
        for accelerator in needed_accelerators(self.program, only):
            if hardware is None:
                raise UsageError(f"device {self.device} cannot be given accelerators; use virtual")
            attach_accelerator(hardware, accelerator)
        files = layer_files(self.program, only)
        flags = ("-g1", *self.program.flags)
        return self.session.load_sources(files, self.program.name, flags=flags)

    def close(self) -> None:
        """Let the device go."""
        self.session.close()

    def _call(self, function: str, *arguments: int) -> None:
        self.session.call(self._symbols[function].value, *arguments, name=function)

    def run(self, position: int, image: bytes) -> bytes:
        """Run one layer on a fresh device; return the arena's content after it.

        Args:
            position: of the layer in the program.
            image: the arena's content before it.

        Raises:
            DeviceFault, AcceleratorError: the layer ended that way.
        """
        if self._fresh is not None:
            self.session.restore(self._fresh)
        self.session.write(self.arena, image)
        layer = self.program.layers[position]
        offsets = (0,) if layer.wrapper else layer.arguments
        self._call(layer.wrapper or layer.function, *(self.arena + offset for offset in offsets))
        return self.session.read(self.arena, self.program.arena_bytes)

    def recompile(self, position: int, *flags: str) -> BisectBench:
        """Compile one of its layers alone for a virtual device, with further options.

        Raises:
            CovpError: it does not compile so, or does not fit.
        """
        program = replace(self.program, flags=(*self.program.flags, *flags))
        return BisectBench(program, "virtual", self.toolchain, only=position)

    def infer(self, inputs: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        """Run an inference as the program drives it, from initial states; return the outputs."""
        program = self.program
        with Session(program.platform, self.device, self.toolchain) as session:
            result = session.load(program).run(*inputs)
        return result if isinstance(result, list) else [result]

    # -- looking on ---------------------------------------------------------------------------

    @property
    def can_watch(self) -> bool:
        """True if the device shows its stores, as the virtual one does."""
        return self.session.device.abilities.emulator is not None

    @cached_property
    def _virtual(self) -> Emulator:
        emulator = self.session.device.abilities.emulator
        assert emulator is not None
        return emulator

    def trace_stores(
        self,
        position: int,
        image: bytes,
        everywhere: bool = False,
        number: int | None = None,
        on_store: Callable[[], None] = lambda: None,
    ) -> StoreTrace:
        """Run a layer and record each store, those of accelerators too.

        Args:
            position, image: as for `run`.
            everywhere: the core's stores to all of the RAM, not to the arena alone.
            number, on_store: as for `StoreLog`.
        """
        first, size = self.arena, self.program.arena_bytes
        if everywhere:
            first, size = self.program.platform.ram.start, self.program.platform.ram.bytes
        log = StoreLog(self._virtual.core, first, size, number=number, on_store=on_store)
        masters: list[tuple[int, MasterStore]] = []
        others: AbstractContextManager[object] = nullcontext()
        if self.program.layers[position].target != "cpu":
            others = self._virtual.board.bus.observe(
                MasterLog(
                    self._virtual,
                    self.program.accelerators,
                    lambda store: masters.append((log.count, store)),
                )
            )
        with log, others:
            self.run(position, image)
        return StoreTrace(log.stores, masters, self.arena, self.program.arena_bytes)

    def of_layer(self, trace: StoreTrace) -> slice:
        """Return which of the core's stores in all of the RAM are the layer's.

        Before and after them the runtime stores what it calls with and what came back.
        """
        call = self.session.images[0].elf.symbols["covp_call"]
        back, end = self.session.queue.call_return & ~1, call.address + call.size
        places = trace.stores["pc"].astype(np.int64) & ~1
        before = np.flatnonzero((places >= call.address) & (places < back))
        after = np.flatnonzero((places >= back) & (places < end))
        first = int(before[-1]) + 1 if before.size else 0
        return slice(first, int(after[0]) if after.size else trace.stores.size)

    def stack_at(
        self, position: int, image: bytes, number: int, everywhere: bool = False
    ) -> tuple[str, ...]:
        """Return the functions active at a store of `trace_stores`, innermost first.

        Args:
            position, image, everywhere: as for `trace_stores`.
            number: of the store.
        """
        found: list[tuple[str, ...]] = []
        device = self._virtual

        def on_store() -> None:
            pc = device.core.read_register("pc")
            found.append(device.board.names.call_stack(pc, device.core.registers()))

        self.trace_stores(position, image, everywhere, number, on_store)
        return found[0] if found else ()

    def place(self, pc: int) -> str:
        """Return "function (file.c:12)" of a code address, the innermost of inlined functions."""
        calls = self._virtual.board.names.symbols.calls(pc & ~self._virtual.core.thumb)
        return calls[0] if calls else f"0x{pc:08x}"
