"""`Sample`: inputs of one inference, with the outputs that are expected."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from covp.graph.graph import Graph
from covp.graph.random_inputs import random_inputs
from covp.graph.reference import run_reference

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Sample:
    """Inputs and the reference's outputs, each in the model's order."""

    inputs: tuple[Array, ...]
    outputs: tuple[Array, ...]

    @staticmethod
    def of(graph: Graph, inputs: Sequence[Array]) -> Sample:
        """These inputs, one per input of the graph, with the outputs of the reference.

        Raises:
            UsageError: number, shape or dtype of the inputs is wrong.
        """
        return Sample(tuple(inputs), tuple(run_reference(graph, inputs)))

    @staticmethod
    def random(graph: Graph, seed: int = 0) -> Sample:
        """The inputs of a graph for a seed, see `random_inputs`."""
        return Sample.of(graph, random_inputs(graph.inputs, seed))
