"""`DriverBench`: an accelerator on the bus of a virtual device, its driver loaded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.accelerator.argument_visitor import ArgumentVisitor
from covp.accelerator.backend import AcceleratorBackend, new_peripheral
from covp.accelerator.call import CCall, Constant, RegisterImage, Requantize, TensorSlice, Workspace
from covp.codegen.calls import lower_placement, startup_calls
from covp.codegen.offload import accelerator_places, checked_driver, split_graph
from covp.errors import AcceleratorError, CapacityError, CovpError, UsageError
from covp.graph.graph import Graph, Tensor
from covp.graph.ops import definition
from covp.graph.quantization import multiply_by_quantized_multiplier
from covp.hardware.custom_instruction import InstructionUnit
from covp.hardware.job_unit import JobRecord, JobUnit
from covp.hardware.peripheral import Peripheral
from covp.passes import run_passes
from covp.platform_file import Platform, load_platform
from covp.plugins import describe
from covp.runtime.linking import ALIGNMENT
from covp.runtime.resident import Placed
from covp.runtime.session import Session
from covp.verify.bench import (
    FAR_NAME,
    FLAGS,
    USUAL,
    Conditions,
    Outcome,
    roomy,
    with_far_memory,
)
from covp.verify.bench_device import BenchDevice
from covp.verify.watch import Watch

_GUARD = 0xA5
_ARENA = 512 * 1024
"""Bytes for a layer; half the RAM where that is less. They are the last ones of the RAM."""
_CALLS = 1024
"""Bytes that the session needs for calls."""


@dataclass(eq=False)
class _Area:
    """Memory that buffers are placed in.

    Attributes:
        base: address of its first byte.
        memory: the device's own bytes.
        content: that are written to it before a call.
        used: bytes from its start that buffers take.
        top: bytes from its start to the buffer at its end, or to its end.
    """

    base: int
    memory: NDArray[np.uint8]
    content: NDArray[np.uint8]
    used: int = 0
    top: int = 0

    @classmethod
    def of(cls, base: int, memory: NDArray[np.uint8]) -> _Area:
        """Free memory of guard bytes."""
        return cls(base, memory, np.full(memory.size, _GUARD, np.uint8), top=memory.size)

    def place(self, nbytes: int, align: int, gap: int, at_end: bool) -> int:
        """The offset of a buffer after guard bytes.

        Args:
            nbytes: of the buffer.
            align: of its elements.
            gap: unused elements before it.
            at_end: it ends where the memory does, as far as its alignment allows.

        Raises:
            CapacityError: it does not fit.
        """
        if at_end:
            start = (self.memory.size - nbytes) // align * align
            end, self.top = self.used, min(self.top, start)
        else:
            start = -(-(self.used + 16) // 16) * 16 + gap * align
            end = self.used = start + nbytes
        if end + 16 > self.top and not (end <= self.top == self.memory.size):
            needed = end + self.memory.size - self.top
            raise CapacityError(
                f"a layer of {needed} bytes or more does not fit the {self.memory.size} bytes for "
                "layers",
                needed,
                self.memory.size,
            )
        return start


class DriverBench:
    """Runs lowered layers call by call, without compiling anything but the driver.

    Operators that stay on the core are computed by their references.

    Attributes:
        jobs: of the latest run, of a unit that keeps records.

    Raises:
        ToolchainError: the driver does not compile, or warns.
    """

    def __init__(
        self, backend: AcceleratorBackend, platform: str | Platform, toolchain: str = "zig"
    ) -> None:
        self.backend = backend
        self.platform = roomy(load_platform(platform))
        ((self.base, irq),) = accelerator_places(self.platform, 1)
        self.device = BenchDevice(with_far_memory(self.platform))
        self.session = Session(self.platform, self.device, toolchain=toolchain)
        try:
            self.unit: Any = new_peripheral(backend)
            if isinstance(self.unit, InstructionUnit):
                self.device.add_instructions(backend.name, self.unit.instructions)
            else:
                self.device.attach(self.unit, self.base, backend.name, irq)
            self._load_driver(irq)
            self._arena = self._place_arena()
            self._counts: dict[int, int] = {}
            self.rates = (0.0, 0.0)
            self.jobs: tuple[JobRecord, ...] = ()
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

    def areas(self) -> list[_Area]:
        """Free memory for a layer: of the RAM, of flash and far away; the first where none is."""
        found = [_Area.of(self._arena.address, self.device.bus.view(*self.arena()))]
        flash = self.platform.flash
        gap = next((g for g in self.session.image_memory.flash.gaps() if g.end == flash.end), None)
        if gap is not None:
            size = min(_ARENA, gap.end - gap.address) & -ALIGNMENT
            found.append(_Area.of(gap.end - size, self._own_bytes(gap.end - size, size)))
        else:
            found.append(found[0])
        far = [m for m in self.device.memories if m.region.name == FAR_NAME]
        found += [
            _Area.of(m.region.start, m.slice(m.region.start, m.region.bytes)) for m in far
        ] or [found[0]]
        return found

    def _own_bytes(self, address: int, size: int) -> NDArray[np.uint8]:
        memory = next(m for m in self.device.memories if m.region.holds(address, size))
        return memory.slice(address, size)

    def begin(self) -> None:
        """A device that has run nothing yet."""
        self.session.restore(self._fresh)
        if self.watch is not None:
            self.watch.forget()

    def run(
        self, graph: Graph, inputs: Sequence[NDArray[Any]], conditions: Conditions = USUAL
    ) -> Outcome:
        """As `Bench.run`: only the driver is compiled, references compute the rest."""
        if self.watch is not None:
            self.watch.pace, self.watch.cycles = conditions.pace, conditions.cycles
            self.watch.skips = conditions.skips
        clock = self.device.clock
        began = clock.now - clock.skipped
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
                memory = _LayerMemory(self, conditions, values, self._counts.get(offloaded, 1))
                for step in (*first, *lower_placement(placement)):
                    memory.step(step)
                self._counts[offloaded] = memory.count
                offloaded += 1
                wrong = wrong or self._watched()
                results, more, buffers = memory.finish(op.outputs)
                damage += more
            values |= {id(t): r for t, r in zip(op.outputs, results, strict=True)}
        self._rate()
        reasons = tuple(refusal.reason for refusal in split.refusals if refusal.matched)
        outputs = [values[id(t)] for t in lowered.outputs] if offloaded else None
        spent = clock.now - clock.skipped - began
        return Outcome(outputs, damage, buffers, wrong, reasons, spent)

    def _rate(self) -> None:
        """Keep the highest rates of jobs; their models' own time counts."""
        if not isinstance(self.unit, JobUnit):
            return
        self.jobs = tuple(self.unit.jobs)
        for job in self.jobs:
            cycles = max(1, job.timing.cycles)
            moved = job.traffic.nbytes or job.stored
            rates = (job.macs or 0) / cycles, moved / cycles
            self.rates = max(self.rates[0], rates[0]), max(self.rates[1], rates[1])
        self.unit.forget_jobs()

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
        self,
        bench: DriverBench,
        conditions: Conditions,
        values: dict[int, NDArray[Any]],
        count: int,
    ) -> None:
        super().__init__(f"accelerator {bench.backend.name}")
        self.bench, self.conditions, self.values = bench, conditions, values
        self.near, self.flash, self.far = bench.areas()
        self.areas = {id(area): area for area in (self.near, self.flash, self.far)}.values()
        self.count = 0
        last = conditions.last
        self._last = -1 if last is None else last % max(1, count)
        self._addresses: dict[int, int] = {}
        self._started = self._loaded = False
        self._written: list[tuple[_Area, int, int]] = []

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
        read = self.bench.session.read
        results = []
        for tensor in outputs:
            data = np.frombuffer(read(self._addresses[id(tensor)], tensor.nbytes), tensor.dtype)
            results.append(data.reshape(tensor.shape).copy())
        for area, start, size in self._written:
            area.content[start : start + size] = area.memory[start : start + size]
        damage: list[int] = []
        for area in self._touched():
            if not np.array_equal(area.memory, area.content):
                changed = np.flatnonzero(area.memory != area.content)
                damage += [area.base + int(i) for i in changed]
        return results, damage, [(area.base + start, size) for area, start, size in self._written]

    def number(self, value: int | float) -> int | float:
        """Itself."""
        return value

    def tensor(self, tensor: Tensor) -> int:
        """The address of its values, or of room for them."""
        value = self.values.get(id(tensor))
        data = None if value is None else np.ascontiguousarray(value, tensor.dtype)
        area = self.near
        if self.conditions.apart:
            area = self.flash if tensor.constant else (self.near, self.far)[self.count % 2]
        return self._place(tensor, tensor.nbytes, tensor.dtype.itemsize, data, area)

    def constant(self, constant: Constant) -> int:
        """The address of its values."""
        data = constant.data
        return self._place(constant, data.nbytes, 4, data, self._constants())

    def workspace(self, workspace: Workspace) -> int:
        """The address of room for it."""
        return self._place(workspace, workspace.nbytes, 16, None, self.near)

    def slice(self, part: TensorSlice) -> int:
        """The address of its first element."""
        whole = part.whole
        size = whole.dtype.itemsize if isinstance(whole, Tensor) else 1
        return int(self.value(whole)) + part.offset * size

    def image(self, image: RegisterImage) -> int:
        """The address of its words."""
        words = [int(self.value(word)) & 0xFFFFFFFF for _, word in image.words]
        data = np.array(words, np.uint32)
        return self._place(image, data.nbytes, 4, data, self._constants())

    def _constants(self) -> _Area:
        return self.flash if self.conditions.apart else self.near

    def _place(
        self, owner: object, nbytes: int, align: int, data: NDArray[Any] | None, area: _Area
    ) -> int:
        """Memory after guard bytes, at an alignment of just ``align`` where the gap is odd."""
        at_end = self.count == self._last
        self.count += 1
        if area is self.far and nbytes + 512 > area.top - area.used:
            area = self.near
        start = area.place(nbytes, align, self.conditions.gap, at_end)
        self._addresses[id(owner)] = area.base + start
        if data is None:
            self._written.append((area, start, nbytes))
        else:
            area.content[start : start + nbytes] = np.frombuffer(data.tobytes(), np.uint8)
        self._loaded = False
        return area.base + start

    def _touched(self) -> list[_Area]:
        """The memories whose content counts."""
        return list(self.areas) if self.conditions.apart else [self.near]

    def _store(self) -> None:
        """Write all that was placed since to the device, and keep the results there."""
        if self._loaded:
            return
        kept = self._written if self._started else []
        present = [area.memory[start : start + size].copy() for area, start, size in kept]
        for area in self._touched():
            area.memory[:] = area.content
        for (area, start, size), data in zip(kept, present, strict=True):
            area.memory[start : start + size] = data
        self._started = self._loaded = True
        if self.bench.watch is not None:
            ends = self.near.top < self.near.memory.size
            self.bench.watch.used = self.near.memory.size if ends else self.near.used

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
