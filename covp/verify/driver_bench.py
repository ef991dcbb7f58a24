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
from covp.errors import AcceleratorError, CapacityError, UsageError
from covp.graph.graph import Graph, Tensor
from covp.graph.ops import definition
from covp.graph.quantization import multiply_by_quantized_multiplier
from covp.hardware.peripheral import Peripheral
from covp.passes import run_passes
from covp.platform_file import Platform, load_platform
from covp.runtime.session import Session
from covp.verify.bench import FLAGS, Outcome

_GUARD = 0xA5
_ARENA = 64 * 1024
"""Bytes for a layer; half the RAM where that is less."""


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
        self.platform = load_platform(platform)
        ((self.base, irq),) = accelerator_places(self.platform, 1)
        self.session = Session(self.platform, toolchain=toolchain)
        assert isinstance(self.session.device, VirtualDevice)
        self.device = self.session.device
        try:
            self.unit: Any = new_peripheral(backend)
            self.device.attach(self.unit, self.base, backend.name, irq)
            self._load_driver(irq)
            size = min(_ARENA, self.platform.ram.bytes // 2)
            self._arena = self.session.tensor(np.full(size, _GUARD, np.uint8))
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

    def reset(self) -> None:
        """Forget a job that went wrong."""
        assert isinstance(self.unit, Peripheral)
        self.unit.reset()

    def run(self, graph: Graph, inputs: Sequence[NDArray[Any]], gap: int) -> Outcome:
        """As `Bench.run`: only the driver is compiled, references compute the rest."""
        lowered, split = split_graph(run_passes(graph), [self.backend])
        values: dict[int, NDArray[Any]] = {
            id(t): value for t, value in zip(graph.inputs, inputs, strict=True)
        }
        values |= {id(t): t.data for t in lowered.tensors() if t.data is not None}
        offloaded = False
        damage: list[int] = []
        buffers: list[tuple[int, int]] = []
        for placement in split.placements:
            op = placement.ops[-1]
            if placement.match is None:
                given = [None if t is None else values[id(t)] for t in op.inputs]
                results = definition(op.kind).reference(op, given)
            else:
                memory = _LayerMemory(self, gap, values)
                first = () if offloaded else startup_calls(self.backend)
                for step in (*first, *lower_placement(placement)):
                    memory.step(step)
                offloaded = True
                results, more, buffers = memory.finish(op.outputs)
                damage += more
            values |= {id(t): r for t, r in zip(op.outputs, results, strict=True)}
        outputs = [values[id(t)] for t in lowered.outputs] if offloaded else None
        return Outcome(outputs, damage, buffers)

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


class _LayerMemory(ArgumentVisitor[int | float]):
    """The memory of one layer: every buffer between guard bytes."""

    def __init__(self, bench: DriverBench, gap: int, values: dict[int, NDArray[Any]]) -> None:
        super().__init__(f"accelerator {bench.backend.name}")
        self.bench, self.gap, self.values = bench, gap, values
        self.base, self.size = bench.arena()
        self.content = np.full(self.size, _GUARD, np.uint8)
        self._used = 0
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
        raw = np.frombuffer(self.bench.session.read(self.base, self.size), np.uint8)
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
        if start + nbytes + 16 > self.size:
            needed = start + nbytes + 16
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

    def _store(self) -> None:
        """Write all that was placed since to the device, and keep the results there."""
        if self._loaded:
            return
        session = self.bench.session
        present = np.frombuffer(session.read(self.base, self.size), np.uint8)
        fresh = self.content.copy()
        if self._started:
            for start, size in self._written:
                fresh[start : start + size] = present[start : start + size]
        self._started = True
        session.write(self.base, fresh.tobytes())
        self._loaded = True

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
