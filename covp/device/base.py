"""What covp needs of a core, however it is reached: four calls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Stop:
    """Why and where `LowLevelDevice.execute` came back.

    Attributes:
        pc: address of the next instruction, equal to the ``stop`` that was asked for.
        instructions: retired in this call, exact; None where the device cannot count.
        cycles: estimated (virtual) or measured (hardware counter) core cycles; None where unknown.
        seconds: measured run time of the program itself; None where the device cannot tell.
    """

    pc: int
    instructions: int | None = None
    cycles: int | None = None
    seconds: float | None = None


class LowLevelDevice(Protocol):
    """A core and its memory.

    Addresses are the core's; ``read`` and ``write`` act as a debugger does: they may write flash.
    """

    def read(self, address: int, size: int) -> bytes:
        """``size`` bytes from ``address``. Raises DeviceError outside the memory."""
        ...

    def write(self, address: int, data: bytes) -> None:
        """Store bytes at ``address``; code that already ran there is forgotten."""
        ...

    def execute(self, entry: int, stop: int, timeout: float | None = None) -> Stop:
        """Run from ``entry`` until the pc reaches ``stop``.

        ``timeout`` is in seconds of host time; None means the device's default.
        Raises DeviceFault when the program faults or the time is over.
        """
        ...

    def reset(self) -> None:
        """Put the core and the peripherals into their reset state; memory is kept."""
        ...
