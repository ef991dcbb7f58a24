"""Consecutive inferences of a network with states that show each state in the outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.errors import UsageError
from covp.evaluation import Build, Sample
from covp.graph.equality import differences
from covp.graph.graph import Graph
from covp.graph.reference import run_all, states_after
from covp.runtime.session import Session

Array = NDArray[Any]
_States = Mapping[str, Array]

FEWEST, MOST = 3, 16
"""Inferences of a sequence."""


@dataclass(frozen=True, eq=False)
class Frame:
    """One inference: inputs and outputs in the model's order."""

    inputs: Sequence[Array]
    outputs: Sequence[Array]


def golden_frames(build: Build, first: Sample, device: str) -> tuple[Frame, ...]:
    """Return inferences one after the other from the initial states, with the device's outputs.

    There are at least three, and further ones until an output shows each state that is not kept,
    or that is taken for another one; sixteen at most.

    Args:
        build: of a network with states.
        first: the first inference; the others' inputs are random.
        device: as for `Session`.

    Raises:
        UsageError: an output is not the reference's.
    """
    frames = []
    program = build.program
    with Session(program.platform, device=device, toolchain=build.toolchain) as session:
        module = session.load(program)
        for number, sample in enumerate(_samples(build.graph, first)):
            found = module.run(*sample.inputs)
            outputs = tuple(found) if isinstance(found, list) else (found,)
            pairs = zip(outputs, sample.outputs, strict=True)
            wrong = sum(differences(got, wanted).size for got, wanted in pairs)
            if wrong:
                raise UsageError(
                    f"{build.model}: {wrong} output elements of inference {number + 1} of a "
                    "sequence are not the reference's; covp run says more"
                )
            frames.append(Frame(sample.inputs, outputs))
    return tuple(frames)


def _samples(graph: Graph, first: Sample) -> Iterator[Sample]:
    """Yield the reference's inferences, until each wrong way to keep states has shown."""
    states: _States = {}
    wrong = {name: (change, states) for name, change in _mistakes(graph).items()}
    for number in range(MOST):
        inputs = Sample.random(graph, first.seed + number).inputs if number else first.inputs
        sample = Sample.of(graph, inputs, "sequence", first.seed + number, states)
        yield sample
        values = sample.tensors
        left = {}
        for name, (change, own) in wrong.items():
            seen = run_all(graph, inputs, own)
            if all(np.array_equal(seen[t.name], values[t.name]) for t in graph.outputs):
                left[name] = (change, change(states_after(graph, seen)))
        wrong, states = left, states_after(graph, values)
        if number + 1 >= FEWEST and not wrong:
            return


def _mistakes(graph: Graph) -> dict[str, Callable[[_States], _States]]:
    """Return wrong ways to keep states: one is reset before each inference, or two are swapped."""

    def forget(name: str, initial: Array) -> Callable[[_States], _States]:
        return lambda states: {**states, name: initial}

    def exchange(one: str, other: str) -> Callable[[_States], _States]:
        return lambda states: {**states, one: states[other], other: states[one]}

    found = {state.name: forget(state.name, state.initial) for state in graph.states}
    for one, other in combinations(graph.states, 2):
        if (one.before.shape, one.before.dtype) == (other.before.shape, other.before.dtype):
            found[f"{one.name}, {other.name}"] = exchange(one.name, other.name)
    return found
