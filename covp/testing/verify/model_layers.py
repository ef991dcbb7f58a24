"""`ModelLayer`: a layer of a real model as a case of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from covp.accelerator.backend import AcceleratorBackend
from covp.accelerator.call import CCall, Requantize, Step
from covp.accelerator.partition import Placement
from covp.base.request import EVERY_MATCH, Shapes
from covp.codegen.offload import split_graph
from covp.codegen.parts import overlapping_call
from covp.errors import AcceleratorError, UsageError
from covp.graph.graph import Graph, Op, Tensor
from covp.graph.models import load_model
from covp.graph.passes import run_passes
from covp.graph.quantization import multiply_by_quantized_multiplier
from covp.runtime.session import Session
from covp.testing.tensors import filled
from covp.testing.verify.layer_memory import GuardedMemory
from covp.testing.verify.watch import UnitWatch


class Driven(Protocol):
    """A device with a driver: see `covp.testing.verify.driver_bench.DriverBench`."""

    session: Session
    watch: UnitWatch | None

    def call(self, function: str, arguments: Sequence[int | float]) -> None:
        """Call a driver function."""
        ...

    def scribble(self) -> None:
        """Overwrite the unused stack."""
        ...


def run_layer(
    bench: Driven,
    memory: GuardedMemory,
    placement: Placement,
    first: Sequence[CCall],
    steps: Sequence[Step],
) -> None:
    """Execute calls; where the conditions say so, the one that can be is cut into its two halves.

    Args:
        bench: with the driver.
        memory: of the layer.
        placement: of its operators.
        first: calls before it.
        steps: of the layer.

    Raises:
        AcceleratorError: a step is for the compiler.
        DeviceFault: of the driver.
    """
    halves = overlapping_call(placement, steps) if memory.conditions.halves else None
    for call in first:
        _step(bench, memory, call)
    for number, step in enumerate(steps):
        if halves is not None and number == halves[0]:
            assert isinstance(step, CCall)
            _in_halves(bench, memory, step, *halves[1:])
        else:
            _step(bench, memory, step)


def _step(bench: Driven, memory: GuardedMemory, step: Step) -> None:
    if isinstance(step, Requantize):
        _requantize(bench, memory, step)
    elif isinstance(step, CCall):
        _call(bench, memory, step, step.function)
    else:
        raise AcceleratorError(f"{memory.where}: covp verify cannot execute {step!r}")


def _call(bench: Driven, memory: GuardedMemory, step: CCall, function: str) -> None:
    arguments = memory.render(step)
    memory.store()
    with _watch_stores(bench, memory):
        bench.call(function, arguments)


@contextmanager
def _watch_stores(bench: Driven, memory: GuardedMemory) -> Iterator[None]:
    """Compare the unit's stores with what the layer may write."""
    watch = bench.watch
    if watch is None:
        yield
        return
    watch.used, watch.writable = memory.near_bytes, memory.writable
    try:
        yield
    finally:
        watch.writable = None


def _in_halves(bench: Driven, memory: GuardedMemory, step: CCall, begin: str, end: str) -> None:
    """Begin, let others use the memory that is not the layer's, and wait for the end."""
    _call(bench, memory, step, begin)
    if bench.watch is not None:
        bench.watch.demand_complete(begin)
    memory.scribble()
    bench.scribble()
    with _watch_stores(bench, memory):
        bench.call(end, ())


def _requantize(bench: Driven, memory: GuardedMemory, step: Requantize) -> None:
    """Compute the core's part of the work by the reference."""
    session = bench.session
    raw = session.read(memory.address(step.sums), 4 * step.output.size)
    sums = np.frombuffer(raw, np.int32).reshape(-1, step.multiplier.size)
    scaled = multiply_by_quantized_multiplier(sums, step.multiplier, step.shift)
    result = np.clip(scaled + step.zero_point, *step.clamp).astype(np.int8)
    target = int(memory.value(step.output))
    memory.store()
    session.write(target, result.tobytes())


_Shapes = tuple[tuple[str, tuple[int, ...]], ...]


@lru_cache(maxsize=16)
def _model(name: str, shapes: _Shapes = ()) -> Graph:
    return run_passes(load_model(name, dict(shapes)))


@dataclass(frozen=True)
class ModelLayer:
    """Operators of a model that an accelerator computes as one.

    Attributes:
        model: a path, or a name of the zoo.
        layers: names of the operators, as `covp run --profile` prints them.
        seed: of the inputs.
        gap: unused elements before each buffer in memory.
        shapes: names and shapes of the inputs that the model leaves open.
    """

    model: str
    layers: tuple[str, ...]
    seed: int = 0
    gap: int = 0
    shapes: _Shapes = ()

    @property
    def kind(self) -> str:
        """Kind of the last operator."""
        return self._ops()[-1].kind

    def _ops(self) -> list[Op]:
        found = [op for op in _model(self.model, self.shapes).ops if op.name in self.layers]
        if len(found) != len(self.layers):
            raise UsageError(f"{self.model} has no layers {', '.join(self.layers)}")
        return found

    def graph(self) -> Graph:
        """Return the operators alone; what they read from outside are its inputs."""
        ops = self._ops()
        made = {id(tensor) for op in ops for tensor in op.outputs}
        inputs: dict[int, Tensor] = {}
        for op in ops:
            for tensor in op.inputs:
                if tensor is not None and not tensor.constant and id(tensor) not in made:
                    inputs.setdefault(id(tensor), tensor)
        return Graph(ops[-1].name, list(inputs.values()), list(ops[-1].outputs), ops)

    def inputs(self) -> list[NDArray[Any]]:
        """Return random values."""
        rng = np.random.default_rng(self.seed)
        return [filled(tensor, rng) for tensor in self.graph().inputs]


def model_layers(
    name: str, backend: AcceleratorBackend, seed: int = 0, shapes: Shapes | None = None
) -> Iterator[ModelLayer]:
    """Yield the layers of a model that an accelerator accepts; those of one form once.

    Args:
        name: a path, or a name of the zoo.
        backend: of the accelerator.
        seed: of the first layer's inputs.
        shapes: of inputs that the model leaves open.

    Raises:
        UsageError: neither a file nor a name of the zoo.
        ModelError: the file cannot be read.
    """
    fixed = tuple((key, tuple(shape)) for key, shape in (shapes or {}).items())
    graph = _model(name, fixed)
    known = {op.name for op in graph.ops}
    _, split = split_graph(graph, [backend], options=EVERY_MATCH)
    seen = set()
    for position, placement in enumerate(split.placements):
        names = tuple(op.name for op in placement.ops if op.name in known)
        if placement.match is None or not names:
            continue
        form = repr(
            [
                (op.kind, op.attributes, [None if t is None else t.shape for t in op.inputs])
                for op in placement.ops
            ]
        )
        if form not in seen:
            seen.add(form)
            yield ModelLayer(name, names, seed + position, position % 8, fixed)
