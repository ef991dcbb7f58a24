"""`ProgramBench`: an accelerator inside the core; a layer is a program or calls of its driver."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

from covp.accelerator.backend import AcceleratorBackend
from covp.accelerator.call import CoreKernel
from covp.codegen.calls import lower_placement
from covp.codegen.compile import compile as compile_program
from covp.codegen.offload import split_graph
from covp.graph.graph import Graph
from covp.passes import run_passes
from covp.platform_file import Platform, load_platform
from covp.runtime.session import Session
from covp.verify.bench import FLAGS, Outcome
from covp.verify.driver_bench import DriverBench
from covp.verify.instruction_log import InstructionLog


class ProgramBench:
    """Units inside the core: layers of their driver's functions run as on the bus, call by call.

    Layers that are the core's own kernels with more instructions are compiled and loaded, each as
    a program. All instructions are compared with their Python model.
    """

    def __init__(
        self, backend: AcceleratorBackend, platform: str | Platform, toolchain: str = "zig"
    ) -> None:
        self.log = InstructionLog(backend)
        self.backend = copy.copy(backend)
        self.backend.make_peripheral = lambda: self.log.unit  # type: ignore[method-assign]
        self.platform = load_platform(platform)
        with ExitStack() as stack:
            self.session = stack.enter_context(Session(self.platform, toolchain=toolchain))
            self.calls = stack.enter_context(DriverBench(self.backend, self.platform, toolchain))
            self._stack = stack.pop_all()

    def __enter__(self) -> ProgramBench:
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def begin(self) -> None:
        """A device that has run nothing yet."""
        self.calls.begin()
        self.log.clear()

    def run(
        self, graph: Graph, inputs: Sequence[NDArray[Any]], gap: int, pace: float = 1.0
    ) -> Outcome:
        """One pass over a graph."""
        _, split = split_graph(run_passes(graph), [self.backend], allow_slower=True)
        own = [placement for placement in split.placements if placement.match is not None]
        if not any(isinstance(lower_placement(each)[0], CoreKernel) for each in own):
            # as the memory planner aligns them
            outcome = self.calls.run(graph, inputs, 0, pace)
        elif pace == 1.0:
            self.log.clear()
            outcome = self._program(graph, inputs)
        else:
            return Outcome(None, [], [])  # a new program finds nothing of an earlier one
        return replace(outcome, wrong=outcome.wrong or self.log.difference())

    def _program(self, graph: Graph, inputs: Sequence[NDArray[Any]]) -> Outcome:
        program = compile_program(
            graph, self.platform, [self.backend], allow_unused=True, allow_slower=True
        )
        program = replace(program, flags=(*program.flags, *FLAGS))
        module = self.session.load(program)
        try:
            result = module.run(*inputs)
        finally:
            module.unload()
        return Outcome(result if isinstance(result, list) else [result], [], [])
