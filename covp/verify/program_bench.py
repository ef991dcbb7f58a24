"""`ProgramBench`: an accelerator inside the core; every layer is a program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

from covp.accelerator.backend import AcceleratorBackend
from covp.codegen.compile import compile as compile_program
from covp.graph.graph import Graph
from covp.platform_file import Platform, load_platform
from covp.runtime.session import Session
from covp.verify.bench import FLAGS, Outcome


class ProgramBench:
    """Compiles and loads a program for each layer: units inside the core have no driver."""

    def __init__(
        self, backend: AcceleratorBackend, platform: str | Platform, toolchain: str = "zig"
    ) -> None:
        self.backend = backend
        self.platform = load_platform(platform)
        self.session = Session(self.platform, toolchain=toolchain)

    def __enter__(self) -> ProgramBench:
        return self

    def __exit__(self, *error: object) -> None:
        self.session.close()

    def begin(self) -> None:
        """Does nothing: a new program finds nothing of an earlier one."""

    def run(
        self, graph: Graph, inputs: Sequence[NDArray[Any]], gap: int, pace: float = 1.0
    ) -> Outcome:
        """One pass over a graph; ``gap`` does not count, as the planner places the buffers."""
        program = compile_program(graph, self.platform, [self.backend], allow_unused=True)
        if all(layer.target == "cpu" for layer in program.layers):
            return Outcome(None, [], [])
        program = replace(program, flags=(*program.flags, *FLAGS))
        module = self.session.load(program)
        try:
            result = module.run(*inputs)
        finally:
            module.unload()
        return Outcome(result if isinstance(result, list) else [result], [], [])
