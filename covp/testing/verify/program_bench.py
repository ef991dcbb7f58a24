"""`ProgramBench`: an accelerator inside the core; a layer is a program or calls of its driver."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.accelerator.backend import AcceleratorBackend
from covp.accelerator.call import CoreKernel
from covp.base.request import EVERY_MATCH
from covp.chip.platform_file import Platform, load_platform
from covp.codegen.calls import lower_placement
from covp.codegen.generate import generate
from covp.codegen.offload import split_graph
from covp.graph.graph import Graph
from covp.graph.passes import run_passes
from covp.runtime.session import Session
from covp.testing.verify.bench import FLAGS, USUAL, Conditions, Outcome
from covp.testing.verify.bench_device import BenchDevice
from covp.testing.verify.driver_bench import DriverBench
from covp.testing.verify.instruction_log import InstructionLog

_GUARD, _GUARDS = 0xA5, 256


class ProgramBench:
    """Units inside the core: layers of their driver's functions run as on the bus, call by call.

    Layers that are the core's own kernels with more instructions are compiled and loaded, each as
    a program. All instructions are compared with their Python model.
    """

    def __init__(
        self, backend: AcceleratorBackend, platform: str | Platform, toolchain: str = "zig"
    ) -> None:
        self.compiled: set[str] = set()
        self.log = InstructionLog(backend)
        self.backend = copy.copy(backend)
        self.backend.make_peripheral = lambda: self.log.unit  # type: ignore[method-assign]
        self.platform = load_platform(platform)
        with ExitStack() as stack:
            self.session = stack.enter_context(
                Session(self.platform, BenchDevice(self.platform), toolchain=toolchain)
            )
            self.calls = stack.enter_context(DriverBench(self.backend, self.platform, toolchain))
            self._stack = stack.pop_all()

    def __enter__(self) -> ProgramBench:
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    @property
    def rates(self) -> tuple[float, float]:
        """A unit in the core has no jobs."""
        return 0.0, 0.0

    def begin(self) -> None:
        """Begin with a device that has run nothing yet."""
        self.calls.begin()
        self.log.clear()

    def run(
        self, graph: Graph, inputs: Sequence[NDArray[Any]], conditions: Conditions = USUAL
    ) -> Outcome:
        """Run a graph once."""
        _, split = split_graph(run_passes(graph), [self.backend], options=EVERY_MATCH)
        own = [placement for placement in split.placements if placement.match is not None]
        if not any(isinstance(lower_placement(each)[0], CoreKernel) for each in own):
            # as the memory planner aligns them
            outcome = self.calls.run(graph, inputs, replace(conditions, gap=0))
        elif conditions == Conditions(conditions.gap):
            self.log.clear()
            self.compiled.add(graph.ops[-1].kind)
            outcome = self._program(graph, inputs)
        else:
            return Outcome(None, [], [])  # a program has places of its own, and no unit's time
        return replace(outcome, wrong=outcome.wrong or self.log.difference())

    def _program(self, graph: Graph, inputs: Sequence[NDArray[Any]]) -> Outcome:
        """Return two inferences of a program between guards; the second one's result counts."""
        program = generate(graph, self.platform, [self.backend], EVERY_MATCH)
        program = replace(program, flags=(*program.flags, *FLAGS))
        guard = bytes([_GUARD]) * _GUARDS
        below = self.session.place(guard, what="guards")
        module = self.session.load(program)
        above = self.session.place(guard, what="guards")
        try:
            first, result = (_several(module.run(*inputs)) for _ in range(2))
            damage = [
                placed.address + i
                for placed in (below, above)
                for i, byte in enumerate(self.session.read(placed.address, _GUARDS))
                if byte != _GUARD
            ]
        finally:
            module.unload()
            above.free()
            below.free()
        same = all(np.array_equal(a, b, equal_nan=True) for a, b in zip(first, result, strict=True))
        wrong = "" if same else "the same inference gives another result the second time"
        return Outcome(result, damage, [], wrong)


def _several(result: Any) -> list[NDArray[Any]]:
    return result if isinstance(result, list) else [result]
