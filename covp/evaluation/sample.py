"""`Sample`: inputs of one inference, with the outputs that are expected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from numpy.typing import NDArray

from covp.graph.graph import Graph, Streaming
from covp.graph.random_inputs import probing_inputs, random_inputs
from covp.graph.reference import run_all, states_after

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Sample:
    """Inputs and the reference's outputs, each in the model's order.

    Attributes:
        inputs: one array per input.
        outputs: that are expected; none where they are not to be compared.
        states: what the states are before the inference, by name; those left out have their initial
            values.
        tensors: every tensor of the model by name, as the reference computes it; may be empty.
        name: where the inputs come from, for reports.
        seed: of random inputs.
    """

    inputs: tuple[Array, ...]
    outputs: tuple[Array, ...] = ()
    tensors: Mapping[str, Array] = field(default_factory=dict)
    name: str = "given"
    seed: int = 0
    states: Mapping[str, Array] = field(default_factory=dict)

    @staticmethod
    def of(
        graph: Graph,
        inputs: Sequence[Array],
        name: str = "given",
        seed: int = 0,
        states: Mapping[str, Array] | None = None,
    ) -> Sample:
        """Return these inputs, one per input of the graph, with the outputs of the reference.

        Args:
            graph: that computes the outputs.
            inputs: one array per input, of its shape and dtype.
            name, seed, states: see the attributes.

        Raises:
            UsageError: number, shape or dtype of the inputs is wrong.
        """
        values = run_all(graph, inputs, states or {})
        outputs = tuple(values[tensor.name] for tensor in graph.outputs)
        return Sample(tuple(inputs), outputs, values, name, seed, states or {})

    @staticmethod
    def random(graph: Graph, seed: int = 0) -> Sample:
        """Return the inputs of a graph for a seed, see `random_inputs`."""
        return Sample.of(graph, random_inputs(graph.inputs, seed, graph.ops), "uniform", seed)

    def unchecked(self) -> Sample:
        """Return the same inputs, nothing expected."""
        return Sample(self.inputs, name=self.name, seed=self.seed, states=self.states)

    def and_probes(self, graph: Graph) -> list[Sample]:
        """This sample, and the `probing_inputs` of its seed.

        With states a second inference, too; of a graph on a stream the one that completes a window,
        with the outputs of the plain network.
        """
        probes = probing_inputs(graph.inputs, self.seed, graph.ops)
        samples = [Sample.of(graph, arrays, n, self.seed) for n, arrays in probes.items()]
        stream = [] if graph.streaming is None else [_of_stream(graph, graph.streaming, self.seed)]
        return [self, *self._next(graph), *stream, *samples]

    def _next(self, graph: Graph) -> list[Sample]:
        """Return the same inputs again, after this inference; nothing without states."""
        if not graph.states:
            return []
        values = self.tensors or run_all(graph, self.inputs, self.states)
        after, name = states_after(graph, values), f"{self.name}, again"
        return [Sample.of(graph, self.inputs, name, self.seed, after)]


def _of_stream(graph: Graph, streaming: Streaming, seed: int) -> Sample:
    """Return the inference with which a window of random rows is complete."""
    from covp.graph.passes.streaming.windows import end_of_window  # its rules know many operators

    end = end_of_window(graph, streaming, seed)
    sample = Sample.of(graph, [end.rows], "end of a window", seed, end.states)
    return replace(sample, outputs=tuple(end.values[tensor.name] for tensor in graph.outputs))
