"""`DriverBench`: an accelerator on the bus of a virtual device, its driver loaded."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.accelerator.backend import AcceleratorBackend, new_peripheral
from covp.accelerator.call import Step
from covp.accelerator.placement import Partition
from covp.accelerator.rtl.unit import RtlUnit
from covp.base.plugins import describe
from covp.base.request import EVERY_MATCH
from covp.chip.platform_file import Platform, load_platform
from covp.codegen.calls import lower_placement, startup_calls
from covp.codegen.offload import accelerator_places, checked_driver, split_graph
from covp.errors import AcceleratorError, CovpError, UsageError
from covp.graph.graph import Graph, Op
from covp.graph.ops import definition
from covp.graph.passes import run_passes
from covp.hardware.clock import Event
from covp.hardware.custom_instruction import InstructionUnit
from covp.hardware.job_unit import JobRecord, JobUnit
from covp.hardware.peripheral import Peripheral
from covp.runtime.linking import ALIGNMENT, RAM_SECTIONS
from covp.runtime.resident import Placed
from covp.runtime.session import Session
from covp.testing.verify.bench import (
    FAR_NAME,
    FLAGS,
    USUAL,
    Conditions,
    LayerOutcome,
    roomy,
    with_far_memory,
)
from covp.testing.verify.bench_device import BenchDevice, Inside
from covp.testing.verify.layer_memory import Area, Areas, GuardedMemory, KeptConstants
from covp.testing.verify.model_layers import run_layer
from covp.testing.verify.throughput import impossible
from covp.testing.verify.watch import CoreWatch, UnitWatch

_ARENA = 512 * 1024
"""Bytes for a layer; half the RAM where that is less. They are the last ones of the RAM."""
_CALLS = 1024
"""Bytes that the session needs for calls."""
_SEED = 0x2545F491
"""Of the pauses of a busy memory, for units as RTL."""
_PREPARED = 16
"""Graphs whose lowered forms are kept for their next runs."""


@dataclass(frozen=True)
class _Prepared:
    """A graph on the accelerator.

    Attributes:
        graph: as it was given, so that its id stays its own.
        lowered: after the passes.
        split: which operators are the accelerator's.
        steps: of each placement that is, by its position.
    """

    graph: Graph
    lowered: Graph
    split: Partition
    steps: dict[int, Sequence[Step]]


class DriverBench:
    """A bench that runs lowered layers call by call and compiles only the driver.

    Operators that stay on the core are computed by their references.

    Attributes:
        jobs: of the latest run, of a unit that keeps records.

    Raises:
        ToolchainError: the driver does not compile, or warns.
    """

    compiled: AbstractSet[str] = frozenset()

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
                self.device.board.add_instructions(
                    backend.name, self.unit.instructions, self.unit.code
                )
            else:
                self.device.attach(self.unit, self.base, backend.name, irq)
            self._load_driver(irq)
            self._arena = self._place_arena()
            self._counts: dict[int, int] = {}
            self._prepared: dict[int, _Prepared] = {}
            self._kept_flash: Area | None = None
            self._kept: KeptConstants | None = None
            self.rates = (0.0, 0.0)
            self.jobs: tuple[JobRecord, ...] = ()
            self.core_watch = CoreWatch(self.device)
            self.watch: UnitWatch | None = None
            if isinstance(self.unit, Peripheral):
                memory = self.device.board.bus.view(*self.arena())
                self.watch = UnitWatch(self.unit, self.arena()[0], memory, lambda: self.own_memory)
            self._fresh = self.session.snapshot()
            self.begin()
        except BaseException:
            self.session.close()
            raise

    def __enter__(self) -> DriverBench:
        return self

    def __exit__(self, *error: object) -> None:
        self.session.close()

    def _load_driver(self, irq: int | None) -> None:
        name = self.backend.name
        files = checked_driver(self.backend, self.base, irq, self.device.platform)
        self.driver = self.session.load_sources(files, f"driver of {name}", flags=("-g1", *FLAGS))

    def _place_arena(self) -> Placed:
        """Place the arena at the end of the RAM."""
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

    def _areas(self) -> Areas:
        """Free memory for a layer: of the RAM, of flash and of the other RAM."""
        base, size = self.arena()
        memory = next(m for m in self.device.board.memories if m.region.holds(base, size))
        near = Area.of(base, memory.slice(base, size), cache=memory.cache)
        far = [m for m in self.device.board.memories if m.region.name == FAR_NAME]
        others = [
            Area.of(m.region.start, m.slice(m.region.start, m.region.bytes), True, m.cache)
            for m in far
        ]
        return Areas(near, self._flash() or near, *(others or [near]))

    def _flash(self) -> Area | None:
        """Free flash; that of constants which stay in place is the same one for a life."""
        if self._kept_flash is not None:
            return self._kept_flash
        end = self.platform.flash.end
        gap = next((g for g in self.session.image_memory.flash.gaps() if g.end == end), None)
        if gap is None:
            return None
        size = min(_ARENA, gap.end - gap.address) & -ALIGNMENT
        return Area.of(gap.end - size, self._own_bytes(gap.end - size, size))

    def _own_bytes(self, address: int, size: int) -> NDArray[np.uint8]:
        memory = next(m for m in self.device.board.memories if m.region.holds(address, size))
        return memory.slice(address, size)

    def begin(self) -> None:
        """Begin with a device that has run nothing yet."""
        self.session.restore(self._fresh)
        self.core_watch.wrong = ""
        if self.watch is not None:
            self.watch.forget()
        self._kept_flash = None
        self._kept = None
        if self.backend.caches_constants:
            self._kept_flash = self._flash()
            self._kept = None if self._kept_flash is None else KeptConstants(self._kept_flash)

    def run(
        self, graph: Graph, inputs: Sequence[NDArray[Any]], conditions: Conditions = USUAL
    ) -> LayerOutcome:
        """Run a graph; only the driver is compiled, references compute the rest."""
        self.core_watch.masked = conditions.masked
        self.jobs = ()
        if self.watch is not None:
            self.watch.pace, self.watch.cycles = conditions.pace, conditions.cycles
            self.watch.skips = conditions.skips
        if isinstance(self.unit, RtlUnit):  # with a slow unit its memory is busy, too
            self.unit.stalls = _SEED if conditions.pace > 1 else 0
        clock = self.device.clock
        woken = self._wake_up() if conditions.wakes else []
        began = clock.now - clock.skipped
        prepared = self._prepare(graph)
        lowered, split = prepared.lowered, prepared.split
        values: dict[int, NDArray[Any]] = {
            id(t): value for t, value in zip(graph.inputs, inputs, strict=True)
        }
        values |= {id(t): t.data for t in lowered.tensors() if t.data is not None}
        damage: list[int] = []
        buffers: list[tuple[int, int]] = []
        offloaded = 0
        wrong = ""
        for number, placement in enumerate(split.placements):
            op = placement.ops[-1]
            if placement.match is None:
                given = [None if t is None else values[id(t)] for t in op.inputs]
                results = definition(op.kind).reference(op, given)
            else:
                first = () if offloaded else startup_calls(self.backend)
                memory = self._memory(offloaded, conditions, values)
                run_layer(self, memory, placement, first, prepared.steps[number])
                self._counts[offloaded] = memory.count
                offloaded += 1
                wrong = (
                    wrong
                    or self._describe_violation()
                    or self._impossible(graph, placement.ops, values)
                )
                results, buffers = memory.results(op.outputs), memory.writable
                damage += memory.damage()
            values |= {id(t): r for t, r in zip(op.outputs, results, strict=True)}
        for event in woken:
            event.cancel()
        reasons = tuple(refusal.reason for refusal in split.refusals if refusal.matched)
        outputs = [values[id(t)] for t in lowered.outputs] if offloaded else None
        spent = clock.now - clock.skipped - began
        return LayerOutcome(outputs, damage, buffers, wrong, reasons, spent)

    def _wake_up(self) -> list[Event]:
        """Schedule spurious ends of WFI: RISC-V and Arm allow them at any time."""
        clock = self.device.clock
        wake = self.device.core.sleep.wake
        return [clock.at(clock.now + 4**n, wake) for n in range(1, 9)]

    def _prepare(self, graph: Graph) -> _Prepared:
        """Lower a graph for the accelerator."""
        known = self._prepared.get(id(graph))
        if known is None:
            lowered, split = split_graph(run_passes(graph), [self.backend], options=EVERY_MATCH)
            steps = {
                number: lower_placement(placement)
                for number, placement in enumerate(split.placements)
                if placement.match is not None
            }
            known = _Prepared(graph, lowered, split, steps)
            if len(self._prepared) >= _PREPARED:
                self._prepared.clear()
            self._prepared[id(graph)] = known
        return known

    def _memory(
        self, number: int, conditions: Conditions, values: dict[int, NDArray[Any]]
    ) -> GuardedMemory:
        return GuardedMemory(
            f"accelerator {self.backend.name}",
            self._areas(),
            conditions,
            values,
            self._counts.get(number, 1),
            self._kept,
        )

    def _impossible(self, graph: Graph, ops: Sequence[Op], values: dict[int, NDArray[Any]]) -> str:
        """Return what is impossible about the latest jobs; keep the highest of their rates.

        Their models' own time counts.
        """
        if not isinstance(self.unit, JobUnit):
            return ""
        jobs = tuple(self.unit.jobs)
        self.unit.forget_jobs()
        self.jobs += jobs
        for job in jobs:
            cycles = max(1, job.timing.cycles)
            moved = job.traffic.nbytes or job.stored
            rates = (job.macs or 0) / cycles, moved / cycles
            self.rates = max(self.rates[0], rates[0]), max(self.rates[1], rates[1])
        stated = {op.name: definition(op.kind).macs(op) for op in graph.ops}
        return impossible(self.backend, ops, stated, values, jobs)

    def _describe_violation(self) -> str:
        """Say which rule driver or unit have broken so far."""
        if self.core_watch.wrong or self.watch is None:
            return self.core_watch.wrong
        if self.watch.is_busy:
            return "the driver returned while the unit was busy"
        if self.watch.wrong:
            return self.watch.wrong
        if self.unit.interrupt.level:
            return "the driver returned without acknowledging the interrupt: its line is still up"
        return ""

    def arena(self) -> tuple[int, int]:
        """Return address and size of the memory that layers are placed in."""
        return self._arena.address, self._arena.nbytes

    def call(self, function: str, arguments: Sequence[int | float]) -> None:
        """Call a driver function; floats are single-precision. Raises DeviceFault."""
        image = self.driver.image.elf
        if function not in image.symbols:
            raise AcceleratorError(
                f"accelerator {self.backend.name}: its driver defines no function {function}"
            )
        address = image.symbols[function].value
        end = self.session.queue.call_return
        self.device.inside = Inside(address, end, partial(self.core_watch.over, function))
        try:
            self.session.call(address, *arguments, name=function)
        except UsageError as error:
            raise AcceleratorError(f"accelerator {self.backend.name}: {error}") from None
        except CovpError:
            raise
        except Exception as error:
            raise AcceleratorError(
                f"accelerator {self.backend.name}: its hardware model raised {describe(error)}"
            ) from error
        finally:
            self.device.inside = None

    def scribble(self) -> None:
        """Overwrite the stack, of which nothing is in use between two calls."""
        stack = self.session.image_memory.stack
        self._own_bytes(stack.address, stack.size)[:] = 0x5A

    @property
    def own_memory(self) -> list[tuple[int, int]]:
        """Pairs (address, bytes) of the driver's variables and of the stack in use."""
        blocks = [self.driver.image.blocks[name] for name in RAM_SECTIONS]
        top = self.session.image_memory.stack.end
        sp = self.device.core.read_register("sp")
        return [*((block.address, block.size) for block in blocks), (sp, top - sp)]
