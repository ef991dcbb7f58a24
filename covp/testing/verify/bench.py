"""`VerifyBench`: runs layers on an accelerator; `LayerOutcome`: the end of one run."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec
from numpy.typing import NDArray

from covp.accelerator.backend import AcceleratorBackend
from covp.chip.platform_file import FIRST, Platform, Region
from covp.graph.graph import Graph

FLAGS = ("-Wall", "-Wextra", "-Werror", "-O2")
"""Compiler flags for the driver: a warning is an error."""


ROOM = 640 * 1024
"""Bytes of RAM that a bench adds to a platform's: memory of an emulated device costs nothing."""


FAR = 256 * 1024
"""Bytes of a RAM of its own that a bench adds, where addresses are free."""
FAR_NAME = "far_ram"
_FAR_PLACES = (0xA0A40000, 0x60A40000, 0x30A40000)


def roomy(platform: Platform) -> Platform:
    """Return a platform's first core with more RAM, where addresses are free."""
    platform = platform.for_core(FIRST)
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


def with_far_memory(platform: Platform) -> Platform:
    """Return a platform with another RAM far away from the first one, where addresses are free."""
    used = [(region.start, region.end) for region in platform.memory]
    used += [(peripheral.base, peripheral.base + FAR) for peripheral in platform.peripherals]
    if platform.accelerators is not None:
        used.append((platform.accelerators.base, platform.accelerators.base + ROOM))
    for start in _FAR_PLACES:
        if all(end <= start or start + FAR <= low for low, end in used):
            cached = next((region.caches for region in platform.cached_ram), ())
            far = Region(FAR_NAME, "ram", start, FAR, caches=cached)
            return msgspec.structs.replace(platform, memory=(*platform.memory, far))
    return platform


@dataclass(frozen=True)
class Conditions:
    """The conditions of a run: the place of a layer's buffers, and the time of its jobs.

    Attributes:
        gap: unused elements before each buffer in memory, so that its alignment varies.
        pace: factor on the time of a unit on the bus.
        cycles: of each job in place of the model's; None: as the model says.
        skips: a read of STATUS waits for the end of the job, else it may show a busy unit.
        last: number of the buffer, modulo their count, that is at the very end of the memory; None:
            all follow one another.
        apart: constants are in flash, and some tensors in another RAM.
        far: which of them, a bit for each in their order, modulo 4.
        halves: the layer is begun, other memory is overwritten, and its end is waited for, where
            the driver has functions for that (`AcceleratorBackend.overlaps`).
        wakes: the core wakes from WFI now and then for no reason, as it may.
        masked: interrupts are masked when the driver is called.
    """

    gap: int = 0
    pace: float = 1.0
    cycles: int | None = None
    skips: bool = True
    last: int | None = None
    apart: bool = False
    far: int = 0b1010
    halves: bool = False
    wakes: bool = False
    masked: bool = False

    def __str__(self) -> str:
        parts = [f"a unit that takes {self.pace:g} x the time"] if self.pace != 1 else []
        parts += [f"jobs of {self.cycles} cycles"] if self.cycles is not None else []
        parts += [] if self.skips else ["each read of STATUS shows what is"]
        parts += ["a buffer at the end of the memory"] if self.last is not None else []
        parts += ["constants in flash, tensors in two memories"] if self.apart else []
        parts += ["begun and ended in two calls"] if self.halves else []
        parts += ["a WFI that also ends for no reason"] if self.wakes else []
        parts += ["interrupts masked before"] if self.masked else []
        return ", ".join(parts)


USUAL = Conditions()
"""All buffers in one memory, and the time of the model."""


@dataclass(frozen=True)
class LayerOutcome:
    """The end of one layer's run.

    Attributes:
        outputs: None where the accelerator rejected all of it.
        damage: addresses outside the output that changed.
        buffers: (address, bytes) of all that the layer writes; the outputs' last.
        wrong: a rule between driver and unit that was broken, though the outputs may be right.
        reasons: why the accelerator rejected operators.
        spent: cycles in which the core executed instructions, drivers' alone.
    """

    outputs: list[NDArray[Any]] | None
    damage: list[int]
    buffers: list[tuple[int, int]]
    wrong: str = ""
    reasons: tuple[str, ...] = ()
    spent: int = 0


class VerifyBench(Protocol):
    """A device with one accelerator: a context manager that closes it.

    Attributes:
        backend: the accelerator's.
        platform: of the device.
        rates: the most MACs, and bytes, per cycle of any job so far, by its model.
        compiled: kinds of which a layer so far had to be compiled, which takes long.
    """

    @property
    def compiled(self) -> AbstractSet[str]: ...

    backend: AcceleratorBackend
    platform: Platform

    @property
    def rates(self) -> tuple[float, float]: ...

    def __enter__(self) -> VerifyBench: ...

    def __exit__(self, *error: object) -> None: ...

    def begin(self) -> None:
        """Go back to a device that has run nothing yet."""
        ...

    def run(
        self, graph: Graph, inputs: Sequence[NDArray[Any]], conditions: Conditions = USUAL
    ) -> LayerOutcome:
        """Run a graph once, on the device as earlier runs since `begin` have left it.

        Args:
            graph: all that the accelerator rejects is computed by the reference or on the core.
            inputs: one array per input, of its shape and dtype.
            conditions: places of the buffers and time of the unit.

        Raises:
            CapacityError: the layer is too large.
            CovpError: anything else, a fault of the driver included.
        """
        ...
