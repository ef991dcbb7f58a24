"""`ModelLayer`: a layer of a real model as a case of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.accelerator.backend import AcceleratorBackend
from covp.base.request import EVERY_MATCH, Shapes
from covp.codegen.offload import split_graph
from covp.errors import UsageError
from covp.graph.graph import Graph, Op, Tensor
from covp.graph.models import load_model
from covp.graph.passes import run_passes
from covp.testing.tensors import filled

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
