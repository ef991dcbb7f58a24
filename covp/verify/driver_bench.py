"""`DriverBench`: an accelerator on the bus of a virtual device, its driver loaded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.accelerator.argument_visitor import ArgumentVisitor
from covp.accelerator.backend import AcceleratorBackend, new_peripheral
from covp.accelerator.call import CCall, Constant, RegisterImage, Requantize, TensorSlice, Workspace
from covp.codegen.calls import lower_placement, startup_calls
from covp.codegen.offload import accelerator_places, checked_driver, split_graph
from covp.device.virtual import VirtualDevice
from covp.errors import AcceleratorError, CapacityError, CovpError, UsageError
from covp.graph.graph import Graph, Tensor
from covp.graph.ops import definition
from covp.graph.quantization import multiply_by_quantized_multiplier
from covp.hardware.custom_instruction import InstructionUnit
from covp.hardware.peripheral import Peripheral
from covp.passes import run_passes
from covp.platform_file import Platform, load_platform
from covp.plugins import describe
from covp.runtime.linking import ALIGNMENT
from covp.runtime.resident import Placed
from covp.runtime.session import Session
from covp.verify.bench import FLAGS, Outcome, roomy
from covp.verify.watch import Watch

_GUARD = 0xA5
_ARENA = 512 * 1024
"""Bytes for a layer; half the RAM where that is less. They are the last ones of the RAM."""
_CALLS = 1024
"""Bytes that the session needs for calls."""


class DriverBench:
    """Runs lowered layers call by call, without compiling anything but the driver.

    Operators that stay on the core are computed by their references.

    Raises:
        ToolchainError: the driver does not compile, or warns.
    """

    def __init__(
        self, backend: AcceleratorBackend, platform: str | Platform, toolchain: str = "zig"
    ) -> None:
        self.backend = backend
        self.platform = roomy(load_platform(platform))
        ((self.base, irq),) = accelerator_places(self.platform, 1)
        self.session = Session(self.platform, toolchain=toolchain)
        assert isinstance(self.session.device, VirtualDevice)
        self.device = self.session.device
        try:
            self.unit: Any = new_peripheral(backend)
            if isinstance(self.unit, InstructionUnit):
                self.device.add_instructions(backend.name, self.unit.instructions)
            else:
                self.device.attach(self.unit, self.base, backend.name, irq)
            self._load_driver(irq)
            self._arena = self._place_arena()
            self.memory = self.device.bus.view(*self.arena())
            self._unused: dict[int, int] = {}
            self.watch: Watch | None = None
            if isinstance(self.unit, Peripheral):
                self.watch = Watch(self.unit, *self.arena())
            self._fresh = self.session.snapshot()
        except BaseException:
            self.session.close()
            raise

    def __enter__(self) -> DriverBench:
        return self

    def __exit__(self, *error: object) -> None:
        self.session.close()

    def _load_driver(self, irq: int | None) -> None:
        name = self.backend.name
        files = checked_driver(self.backend, self.base, irq)
        self.driver = self.session.load_sources(files, f"driver of {name}", flags=("-g1", *FLAGS))

    def _place_arena(self) -> Placed:
        """The end of the RAM."""
        ram = self.platform.ram
        rest = self.session.image_memory.ram.gaps()
        gap = next(gap for gap in reversed(rest) if gap.end == ram.end)
        free = gap.end - -(-gap.address // ALIGNMENT) * ALIGNMENT
        size = min(_ARENA, ram.bytes // 2, free - _CALLS) & -ALIGNMENT
        filler = self.session.place(free - size, what="the memory before the layers'")
        try:
            return self.session.place(size, what="the layers' memory")
        finally:
            filler.free()  # calls need some

    def begin(self) -> None:
        """A device that has run nothing yet."""
        self.session.restore(self._fresh)
        if self.watch is not None:
            self.watch.forget()

    def run(
        self, graph: Graph, inputs: Sequence[NDArray[Any]], gap: int, pace: float = 1.0
    ) -> Outcome:
        """As `Bench.run`: only the driver is compiled, references compute the rest."""
        if self.watch is not None:
            self.watch.pace = pace
        lowered, split = split_graph(run_passes(graph), [self.backend], allow_slower=True)
        values: dict[int, NDArray[Any]] = {
            id(t): value for t, value in zip(graph.inputs, inputs, strict=True)
        }
        values |= {id(t): t.data for t in lowered.tensors() if t.data is not None}
        damage: list[int] = []
        buffers: list[tuple[int, int]] = []
        offloaded = 0
        wrong = ""
        for placement in split.placements:
            op = placement.ops[-1]
            if placement.match is None:
                given = [None if t is None else values[id(t)] for t in op.inputs]
                results = definition(op.kind).reference(op, given)
            else:
                first = () if offloaded else startup_calls(self.backend)
                memory = _LayerMemory(self, gap, values, self._offset(offloaded, pace))
                for step in (*first, *lower_placement(placement)):
                    memory.step(step)
                self._unused[offloaded] = memory.unused
                offloaded += 1
                wrong = wrong or self._watched()
                results, more, buffers = memory.finish(op.outputs)
                damage += more
            values |= {id(t): r for t, r in zip(op.outputs, results, strict=True)}
        reasons = tuple(refusal.reason for refusal in split.refusals if refusal.matched)
        outputs = [values[id(t)] for t in lowered.outputs] if offloaded else None
        return Outcome(outputs, damage, buffers, wrong, reasons)

    def _offset(self, index: int, pace: float) -> int:
        """Of a layer in the arena: its start, or so that the last buffer is at its end."""
        return 0 if pace == 1.0 else self._unused.get(index, 0) & ~15

    def _watched(self) -> str:
        """A rule that driver or unit have broken so far."""
        if self.watch is None:
            return ""
        if self.watch.is_busy:
            return "the driver returned while the unit was busy"
        if self.watch.wrong:
            return self.watch.wrong
        if self.unit.interrupt.level:
            return "the driver returned without acknowledging the interrupt: its line is still up"
        return ""

    def arena(self) -> tuple[int, int]:
        """Address and bytes of the memory that layers are placed in."""
        return self._arena.address, self._arena.nbytes

    def call(self, function: str, arguments: Sequence[int | float]) -> None:
        """Call a driver function; floats are single-precision. Raises DeviceFault."""
        image = self.driver.image.elf
        if function not in image.symbols:
            raise AcceleratorError(
                f"accelerator {self.backend.name}: its driver defines no function {function}"
            )
        try:
            self.session.call(image.symbols[function].value, *arguments, name=function)
        except UsageError as error:
            raise AcceleratorError(f"accelerator {self.backend.name}: {error}") from None
        except CovpError:
            raise
        except Exception as error:
            raise AcceleratorError(
                f"accelerator {self.backend.name}: its hardware model raised {describe(error)}"
            ) from error


class _LayerMemory(ArgumentVisitor[int | float]):
    """The memory of one layer: every buffer between guard bytes."""

    def __init__(
        self, bench: DriverBench, gap: int, values: dict[int, NDArray[Any]], offset: int
    ) -> None:
        super().__init__(f"accelerator {bench.backend.name}")
        self.bench, self.gap, self.values = bench, gap, values
        self.base, self.size = bench.arena()
        self.content = np.full(self.size, _GUARD, np.uint8)
        self._used = offset
        self._addresses: dict[int, int] = {}
        self._started = self._loaded = False
        self._written: list[tuple[int, int]] = []

    def step(self, step: CCall | Requantize | Any) -> None:
        """Execute one step of the lowered layer."""
        if isinstance(step, Requantize):
            self._requantize(step)
            return
        if not isinstance(step, CCall):
            raise AcceleratorError(
                f"accelerator {self.bench.backend.name}: covp verify cannot execute {step!r}"
            )
        arguments = [self.value(given) for given in step.arguments]
        self._store()
        self.bench.call(step.function, arguments)

    def finish(
        self, outputs: Sequence[Tensor]
    ) -> tuple[list[NDArray[Any]], list[int], list[tuple[int, int]]]:
        """The results, the damaged addresses and the buffers of an `Outcome`."""
        raw = self.bench.memory.copy()
        expected = self.content.copy()
        results = []
        for tensor in outputs:
            start = self._addresses[id(tensor)] - self.base
            data = raw[start : start + tensor.nbytes]
            results.append(data.view(tensor.dtype).reshape(tensor.shape).copy())
        for start, size in self._written:
            expected[start : start + size] = raw[start : start + size]
        damage = [self.base + int(i) for i in np.flatnonzero(raw != expected)]
        return results, damage, [(self.base + start, size) for start, size in self._written]

    def number(self, value: int | float) -> int | float:
        """Itself."""
        return value

    def tensor(self, tensor: Tensor) -> int:
        """The address of its values, or of room for them."""
        value = self.values.get(id(tensor))
        data = None if value is None else np.ascontiguousarray(value, tensor.dtype)
        return self._place(tensor, tensor.nbytes, tensor.dtype.itemsize, data)

    def constant(self, constant: Constant) -> int:
        """The address of its values."""
        return self._place(constant, constant.data.nbytes, 4, constant.data)

    def workspace(self, workspace: Workspace) -> int:
        """The address of room for it."""
        return self._place(workspace, workspace.nbytes, 16, None)

    def slice(self, part: TensorSlice) -> int:
        """The address of its first element."""
        whole = part.whole
        size = whole.dtype.itemsize if isinstance(whole, Tensor) else 1
        return int(self.value(whole)) + part.offset * size

    def image(self, image: RegisterImage) -> int:
        """The address of its words."""
        words = [int(self.value(word)) & 0xFFFFFFFF for _, word in image.words]
        data = np.array(words, np.uint32)
        return self._place(image, data.nbytes, 4, data)

    def _place(self, owner: object, nbytes: int, align: int, data: NDArray[Any] | None) -> int:
        """Memory after guard bytes, at an alignment of just ``align`` where ``gap`` is odd."""
        start = -(-(self._used + 16) // 16) * 16 + self.gap * align
        if start + nbytes > self.size:
            needed = start + nbytes
            raise CapacityError(
                f"a layer of {needed} bytes or more does not fit the {self.size} bytes for layers",
                needed,
                self.size,
            )
        self._used = start + nbytes
        self._addresses[id(owner)] = self.base + start
        if data is None:
            self._written.append((start, nbytes))
        else:
            self.content[start : start + nbytes] = np.frombuffer(data.tobytes(), np.uint8)
        self._loaded = False
        return self.base + start

    @property
    def unused(self) -> int:
        """Bytes from the end of the last buffer to the end of the memory."""
        return self.size - self._used

    def _store(self) -> None:
        """Write all that was placed since to the device, and keep the results there."""
        if self._loaded:
            return
        memory = self.bench.memory
        kept = self._written if self._started else []
        present = [memory[start : start + size].copy() for start, size in kept]
        memory[:] = self.content
        for (start, size), data in zip(kept, present, strict=True):
            memory[start : start + size] = data
        self._started = self._loaded = True
        if self.bench.watch is not None:
            self.bench.watch.used = self._used

    def _requantize(self, step: Requantize) -> None:
        """The core's part of the work, computed by the reference."""
        session = self.bench.session
        raw = session.read(self._addresses[id(step.sums)], 4 * step.output.size)
        sums = np.frombuffer(raw, np.int32).reshape(-1, step.multiplier.size)
        scaled = multiply_by_quantized_multiplier(sums, step.multiplier, step.shift)
        result = np.clip(scaled + step.zero_point, *step.clamp).astype(np.int8)
        target = int(self.value(step.output))
        self._store()
        session.write(target, result.tobytes())
