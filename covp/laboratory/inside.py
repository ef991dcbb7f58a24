"""`inside`: the part of a kernel's call that is the kernel, executed in pieces."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from covp.device.abilities import LONGEST_BLOCK, Abilities, Emulator
from covp.device.base import LowLevelDevice
from covp.device.stop import Stop
from covp.errors import UsageError
from covp.laboratory.buffers import Buffer
from covp.laboratory.kernel import Kernel


@dataclass(frozen=True)
class Span:
    """A kernel that was just entered.

    Attributes:
        device: its core is before the kernel's first instruction.
        start: its address.
        end: where it returns to.
    """

    device: Emulator
    start: int
    end: int

    def forward(self, instructions: int, longest: int = LONGEST_BLOCK) -> int:
        """Run exactly so many instructions from the start, at most to the end; the next pc."""
        return self.device.execute_some(self.start, self.end, instructions, longest)

    def step(self, pc: int) -> int:
        """Run one instruction; the next pc."""
        return self.device.execute_some(pc, self.end, 1)

    def finish(self, pc: int, limit: int) -> Stop:
        """Run from ``pc`` to the end. Raises DeviceFault, also after ``limit`` instructions."""
        return self.device.execute(pc, self.end, max_instructions=limit)


class _Divided(LowLevelDevice):
    """A device that lets ``body`` run the kernel's instructions."""

    def __init__(
        self, device: LowLevelDevice, span: Span, body: Callable[[Span], None], limit: int | None
    ) -> None:
        self._device, self._span, self._body, self._limit = device, span, body, limit

    @property
    def abilities(self) -> Abilities:
        return self._device.abilities

    def read(self, address: int, size: int) -> bytes:
        return self._device.read(address, size)

    def write(self, address: int, data: bytes) -> None:
        self._device.write(address, data)

    def reset(self) -> None:
        self._device.reset()

    def execute(self, entry: int, stop: int, timeout: float | None = None) -> Stop:
        self._span.device.execute(entry, self._span.start, timeout)
        self._body(self._span)
        return self._span.device.execute(self._span.end, stop, timeout, self._limit)


def emulator_of(kernel: Kernel) -> Emulator:
    """Return the device of a kernel. Raises UsageError: its execution cannot be divided."""
    device = kernel.session.device.abilities.emulator
    if device is None:
        raise UsageError(
            f"{kernel.name}: its execution can be divided on a virtual device only; open the "
            'session with device="virtual"'
        )
    return device


@contextmanager
def inside(
    kernel: Kernel, body: Callable[[Span], None], limit: int | None = None
) -> Iterator[None]:
    """Let ``body`` make calls of the kernel in this context, to the end of the span.

    Args:
        kernel: on a virtual device.
        body: executes the kernel's instructions.
        limit: of the instructions after them.

    Raises:
        UsageError: not on a virtual device.
    """
    device = emulator_of(kernel)
    io = kernel.session.io
    span = Span(device, kernel.address, kernel.session.queue.call_return & ~1)
    original, io.device = io.device, _Divided(io.device, span, body, limit)
    try:
        yield
    finally:
        io.device = original


def copies(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Copy the arrays among arguments; the same array twice is the same copy twice."""
    made: dict[int, Any] = {}
    for argument in arguments:
        if id(argument) in made:
            continue
        if isinstance(argument, np.ndarray):
            made[id(argument)] = argument.copy()
        elif isinstance(argument, Buffer):
            made[id(argument)] = Buffer(
                argument.array.copy(),
                argument.name,
                argument.alignment,
                argument.offset,
                argument.written,
            )
    return tuple(made.get(id(argument), argument) for argument in arguments)
