"""`Bench`: runs layers on an accelerator; `Outcome`: the end of one run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec
from numpy.typing import NDArray

from covp.accelerator.backend import AcceleratorBackend
from covp.graph.graph import Graph
from covp.platform_file import Platform

FLAGS = ("-Wall", "-Wextra", "-Werror", "-O2")
"""Of the compiler, for the driver: a warning is an error."""


ROOM = 640 * 1024
"""Bytes of RAM that a bench adds to a platform's: memory of an emulated device costs nothing."""


def roomy(platform: Platform) -> Platform:
    """A platform with more RAM, as far as nothing else is at those addresses."""
    ram = platform.ram
    taken = [region.start for region in platform.memory]
    taken += [peripheral.base for peripheral in platform.peripherals]
    if platform.accelerators is not None:
        taken.append(platform.accelerators.base)
    limit = min((start for start in taken if start > ram.start), default=1 << 32)
    size = max(ram.bytes, min(ram.bytes + ROOM, limit - ram.start))
    larger = msgspec.structs.replace(ram, size=size)
    memory = tuple(larger if region is ram else region for region in platform.memory)
    return msgspec.structs.replace(platform, memory=memory)


@dataclass(frozen=True)
class Outcome:
    """The end of one layer's run.

    Attributes:
        outputs: None where the accelerator rejected all of it.
        damage: addresses outside the output that changed.
        buffers: (address, bytes) of all that the layer writes; the outputs' last.
        wrong: a rule between driver and unit that was broken, though the outputs may be right.
        reasons: why the accelerator rejected operators.
    """

    outputs: list[NDArray[Any]] | None
    damage: list[int]
    buffers: list[tuple[int, int]]
    wrong: str = ""
    reasons: tuple[str, ...] = ()


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

    def begin(self) -> None:
        """Go back to a device that has run nothing yet."""
        ...

    def run(
        self, graph: Graph, inputs: Sequence[NDArray[Any]], gap: int, pace: float = 1.0
    ) -> Outcome:
        """One pass over a graph, on the device as earlier passes since `begin` have left it.

        Args:
            graph: all that the accelerator rejects is computed by the reference or on the core.
            inputs: one array per input, of its shape and dtype.
            gap: unused elements before each buffer in memory, so that its alignment varies.
            pace: factor on the time of a unit on the bus; but for 1 the buffers are at the end of
                memory.

        Raises:
            CapacityError: the layer is too large.
            CovpError: anything else, a fault of the driver included.
        """
        ...
