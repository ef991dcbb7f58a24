"""Many inferences: on a device, or by the reference, each sample from the state after loading."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from covp.base.closing import Closing
from covp.building.builder import Build
from covp.graph.batches import run_batch
from covp.graph.graph import Graph
from covp.runtime.session import Session

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Inferred:
    """Results of inferences on some samples.

    Attributes:
        outputs: after the last step, (samples, *shape) of each output.
        cycles: of each inference, (samples, steps); None where they are not counted.
    """

    outputs: list[Array]
    cycles: Array | None = None


class Inference(Protocol):
    """Interface of what computes inferences."""

    def run(self, inputs: Sequence[Array]) -> Inferred:
        """Return the outputs of samples.

        Args:
            inputs: (samples, steps, *shape) of each input of the model.
        """
        ...

    def close(self) -> None:
        """Let go what computes."""
        ...


class OnReference(Closing):
    """The bit-exact reference in numpy.

    Args:
        graph: what is computed.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    def run(self, inputs: Sequence[Array]) -> Inferred:
        """Return the reference's outputs of samples, see `Inference.run`."""
        states: dict[str, Array] = {}
        for step in range(inputs[0].shape[1]):
            outputs, states = run_batch(self._graph, [array[:, step] for array in inputs], states)
        return Inferred(outputs)

    def close(self) -> None:
        """Do nothing: nothing is held."""


class OnDevice(Closing):
    """A build that stays loaded on a device.

    Where the device can save its state each sample begins from that after loading, with its
    memories, caches and accelerators, so cycles do not depend on the samples before; on others only
    the program's states are reset.

    Args:
        build: what runs.
        device: as for `Session`.
    """

    def __init__(self, build: Build, device: str = "virtual") -> None:
        self._build = build
        self._session = Session(build.platform, device=device, toolchain=build.toolchain)
        try:
            self._module = self._session.load(build.program)
            has_state = self._session.device.abilities.state is not None
            self._fresh = self._session.snapshot() if has_state else None
        except BaseException:
            self._session.close()
            raise

    def run(self, inputs: Sequence[Array]) -> Inferred:
        """Return the device's outputs of samples, see `Inference.run`."""
        samples, steps = inputs[0].shape[:2]
        found: list[list[Array]] = []
        cycles: list[int | None] = []
        for sample in range(samples):
            if self._fresh is not None:
                self._session.restore(self._fresh)
            elif self._build.program.states:
                self._module.reset()
            for step in range(steps):
                result = self._module.run(*(array[sample, step] for array in inputs))
                cycles.append(self._session.profile().cycles)
            found.append(result if isinstance(result, list) else [result])
        outputs = [np.stack(parts) for parts in zip(*found, strict=True)]
        counted = None if None in cycles else np.array(cycles, np.int64).reshape(samples, steps)
        return Inferred(outputs, counted)

    def close(self) -> None:
        """Let the device go."""
        self._session.close()
