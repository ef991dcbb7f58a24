"""`run_layer`: the steps of one layer, on the device of a `DriverBench`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

import numpy as np

from covp.accelerator.call import CCall, Requantize, Step
from covp.accelerator.partition import Placement
from covp.codegen.parts import overlapping_call
from covp.errors import AcceleratorError
from covp.graph.quantization import multiply_by_quantized_multiplier
from covp.runtime.session import Session
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
