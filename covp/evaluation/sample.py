"""`Sample`: inputs of one inference, with the outputs that are expected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

from covp.graph.graph import Graph
from covp.graph.random_inputs import probing_inputs, random_inputs
from covp.graph.reference import run_all

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Sample:
    """Inputs and the reference's outputs, each in the model's order.

    Attributes:
        inputs: one array per input.
        outputs: that are expected; none where they are not to be compared.
        tensors: every tensor of the model by name, as the reference computes it; may be empty.
        name: where the inputs come from, for reports.
        seed: of random inputs.
    """

    inputs: tuple[Array, ...]
    outputs: tuple[Array, ...] = ()
    tensors: Mapping[str, Array] = field(default_factory=dict)
    name: str = "given"
    seed: int = 0

    @staticmethod
    def of(graph: Graph, inputs: Sequence[Array], name: str = "given", seed: int = 0) -> Sample:
        """These inputs, one per input of the graph, with the outputs of the reference.

        Args:
            graph: that computes the outputs.
            inputs: one array per input, of its shape and dtype.
            name, seed: see the attributes.

        Raises:
            UsageError: number, shape or dtype of the inputs is wrong.
        """
        values = run_all(graph, inputs)
        outputs = tuple(values[tensor.name] for tensor in graph.outputs)
        return Sample(tuple(inputs), outputs, values, name, seed)

    @staticmethod
    def random(graph: Graph, seed: int = 0) -> Sample:
        """The inputs of a graph for a seed, see `random_inputs`."""
        return Sample.of(graph, random_inputs(graph.inputs, seed), "uniform", seed)

    def unchecked(self) -> Sample:
        """The same inputs, nothing expected."""
        return Sample(self.inputs, name=self.name, seed=self.seed)

    def and_probes(self, graph: Graph) -> list[Sample]:
        """This sample, and the `probing_inputs` of its seed."""
        probes = probing_inputs(graph.inputs, self.seed)
        return [self, *(Sample.of(graph, arrays, n, self.seed) for n, arrays in probes.items())]
