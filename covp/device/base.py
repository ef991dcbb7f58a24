"""`LowLevelDevice`: a core and its memory, the four calls that every device has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from covp.device.abilities import Abilities
from covp.errors import DeviceFault

if TYPE_CHECKING:
    from covp.device.stop import Stop


class LowLevelDevice(Protocol):
    """A core and its memory.

    Addresses are the core's; ``read`` and ``write`` act as a debugger does: they may write flash.
    """

    @property
    def abilities(self) -> Abilities:
        """The device's further abilities; a derived class has none by default."""
        return Abilities()

    def read(self, address: int, size: int) -> bytes:
        """Return ``size`` bytes from ``address``. Raises DeviceError outside the memory."""
        ...

    def write(self, address: int, data: bytes) -> None:
        """Store ``data`` from ``address`` on; code that already ran there is forgotten."""
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


def is_device(value: object) -> bool:
    """Return whether a user's object has the members of a `LowLevelDevice`."""
    members = ("read", "write", "execute", "reset", "abilities")
    return all(hasattr(value, member) for member in members)


def name_fault(fault: DeviceFault, device: LowLevelDevice) -> DeviceFault:
    """Add the symbol, source line and callers of its pc to a fault, where the device knows them."""
    names = device.abilities.names
    return fault if names is None else names.explain(fault)
