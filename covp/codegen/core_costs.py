"""`SimulatedCosts`: cycles of operators on the core, from programs of the core alone that run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from covp.accelerator.call import Requantize
from covp.accelerator.placement import Partition, Placement
from covp.base.c_names import c_name
from covp.chip.platform_file import Platform
from covp.codegen.aliases import aliases
from covp.codegen.assembly import assemble
from covp.codegen.calls import CallFile
from covp.codegen.layer import LayerCode
from covp.codegen.program import Program
from covp.errors import ModelError
from covp.graph.graph import Graph, Op, Tensor
from covp.graph.pattern import Match

Emit = Callable[[Op, str], LayerCode]
"""Gives the C of an operator on the core, under a function name."""
Measure = Callable[[Program], Sequence[int | None] | None]
"""Gives the cycles of each layer of a program; None where it does not fit, compile or run."""


def layer_function(prefix: str, index: int, op: Op) -> str:
    """Return the name of the C function of the layer with an index."""
    return f"{prefix}_{index:02d}_{c_name(op.kind)}"


@dataclass(frozen=True)
class SimulatedCosts:
    """`CoreCosts` of the very kernels that a program gets, with their neighbours.

    The whole graph runs on the core, so that values, caches and memories are those of the program.
    What does not fit the platform as a whole is measured in halves, down to single layers.

    Attributes:
        prefix: of the C functions.
        platform: whose core it is.
        emit: writes the kernels.
        measure: runs a program.
    """

    prefix: str
    platform: Platform
    emit: Emit
    measure: Measure

    def operators(self, graph: Graph) -> dict[Op, int | None]:
        """Return the cycles of each operator; None for those that the core has no kernel for."""
        free = aliases(graph)
        costs = {op: 0 if op in free else None for op in graph.ops}
        layers = []
        for index, op in enumerate(graph.ops):
            if op not in free:
                try:
                    layers.append(self.emit(op, layer_function(self.prefix, index, op)))
                except ModelError:  # a pass of an accelerator made the operator
                    continue
        whole = len(layers) + len(free) == len(graph.ops)
        found = self._cycles(graph, layers, whole)
        return costs | dict(zip((layer.op for layer in layers), found, strict=True))

    def requantizations(self, steps: Sequence[Requantize]) -> list[int | None]:
        """Return the cycles of each step; all read the same sums, which need the memory of one."""
        most = max(step.output.size for step in steps)
        sums = Tensor("sums", (1, most), np.dtype(np.int32))
        layers = [self._requantization(step, sums, index) for index, step in enumerate(steps)]
        ops = [layer.op for layer in layers]
        return self._cycles(Graph(self.prefix, [sums], [ops[-1].output], ops), layers, True)

    def _requantization(self, step: Requantize, sums: Tensor, index: int) -> LayerCode:
        """Return a step as a layer."""
        made = step.output
        output = Tensor(f"output_{index}", made.shape, made.dtype, made.quantization)
        op = Op("QUANTIZE", f"requantization_{index}", [sums], [output])
        function = f"{self.prefix}_requantization_{index:02d}"
        file = CallFile(op, self.platform.core, "the core")
        match = Match("", (op,), {}, (sums,), (output,))
        arguments = file.function(function, match, [replace(step, sums=sums, output=output)])
        return LayerCode(op, function, file.source(), arguments)

    def _cycles(
        self, graph: Graph, layers: Sequence[LayerCode], whole: bool = False
    ) -> list[int | None]:
        if not layers:
            return []
        part = graph if whole else _part_of(graph, layers)
        split = Partition(tuple(Placement((op,)) for op in part.ops), ())
        found = self.measure(assemble(part, part, self.platform, [], split, layers))
        if found is not None:
            return [*found]
        if len(layers) == 1:
            return [None]
        middle = len(layers) // 2
        return self._cycles(graph, layers[:middle]) + self._cycles(graph, layers[middle:])


def _part_of(graph: Graph, layers: Sequence[LayerCode]) -> Graph:
    """Return the operators of some layers; what others write or a state holds is an input."""
    free, own = aliases(graph), {layer.op for layer in layers}
    made: set[int] = set()
    ops: list[Op] = []
    for op in graph.ops:
        if op in own or (op in free and id(op.input(0)) in made):
            ops.append(op)
            made |= {id(tensor) for tensor in op.outputs}
    read = {id(t): t for op in ops for t in op.inputs if t is not None and not t.constant}
    inputs = [tensor for key, tensor in read.items() if key not in made]
    outputs = [t for op in ops for t in op.outputs if id(t) not in read or graph.is_result(t)]
    return Graph(graph.name, inputs, outputs, ops)
