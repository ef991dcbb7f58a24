"""`Bench`: runs layers on an accelerator; `Outcome`: the end of one run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from numpy.typing import NDArray

from covp.accelerator.backend import AcceleratorBackend
from covp.graph.graph import Graph
from covp.platform_file import Platform

FLAGS = ("-Wall", "-Wextra", "-Werror", "-O2")
"""Of the compiler, for the driver: a warning is an error."""


@dataclass(frozen=True)
class Outcome:
    """The end of one layer's run.

    Attributes:
        outputs: None where the accelerator rejected all of it.
        damage: addresses outside the output that changed.
        buffers: (address, bytes) of all that the layer writes; the outputs' last.
    """

    outputs: list[NDArray[Any]] | None
    damage: list[int]
    buffers: list[tuple[int, int]]


class Bench(Protocol):
    """A device with one accelerator: a context manager that closes it.

    Attributes:
        backend: the accelerator's.
        platform: of the device.
    """

    backend: AcceleratorBackend
    platform: Platform

    def __enter__(self) -> Bench: ...

    def __exit__(self, *error: object) -> None: ...

    def reset(self) -> None:
        """Forget a job that went wrong."""
        ...

    def run(self, graph: Graph, inputs: Sequence[NDArray[Any]], gap: int) -> Outcome:
        """One pass over a graph.

        Args:
            graph: all that the accelerator rejects is computed by the reference or on the core.
            inputs: one array per input, of its shape and dtype.
            gap: unused elements before each buffer in memory, so that its alignment varies.

        Raises:
            CapacityError: the layer is too large.
            CovpError: anything else, a fault of the driver included.
        """
        ...
