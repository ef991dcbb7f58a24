"""`MeteredDevice`: counts the transfers to and from a device; on a real board each costs time."""

from __future__ import annotations

from dataclasses import dataclass

from covp.device.abilities import Abilities
from covp.device.base import LowLevelDevice
from covp.device.stop import Stop


@dataclass(frozen=True)
class Transfers:
    """Calls of `LowLevelDevice`, each a round trip to the device, and their bytes."""

    reads: int = 0
    writes: int = 0
    executes: int = 0
    bytes_read: int = 0
    bytes_written: int = 0

    @property
    def round_trips(self) -> int:
        """All calls."""
        return self.reads + self.writes + self.executes

    def since(self, before: Transfers) -> Transfers:
        """Return the difference to an earlier state."""
        return Transfers(
            self.reads - before.reads,
            self.writes - before.writes,
            self.executes - before.executes,
            self.bytes_read - before.bytes_read,
            self.bytes_written - before.bytes_written,
        )


class MeteredDevice:
    """A device with a count of its calls.

    Attributes:
        device: the device itself.
        busy: it executes.
    """

    def __init__(self, device: LowLevelDevice) -> None:
        self.device = device
        self.busy = False
        self._reads = self._writes = self._executes = 0
        self._bytes_read = self._bytes_written = 0

    @property
    def transfers(self) -> Transfers:
        """Since this was made."""
        return Transfers(
            self._reads, self._writes, self._executes, self._bytes_read, self._bytes_written
        )

    @property
    def abilities(self) -> Abilities:
        """Abilities of the device; what they do is not metered."""
        return self.device.abilities

    def read(self, address: int, size: int) -> bytes:
        """See `LowLevelDevice.read`; counts the bytes too."""
        self._reads += 1
        self._bytes_read += size
        return self.device.read(address, size)

    def write(self, address: int, data: bytes) -> None:
        """See `LowLevelDevice.write`; counts the bytes too."""
        self._writes += 1
        self._bytes_written += len(data)
        self.device.write(address, data)

    def execute(self, entry: int, stop: int, timeout: float | None = None) -> Stop:
        """See `LowLevelDevice.execute`; counts the execution too."""
        self._executes += 1
        self.busy = True
        try:
            return self.device.execute(entry, stop, timeout)
        finally:
            self.busy = False

    def reset(self) -> None:
        """See `LowLevelDevice.reset`."""
        self.device.reset()
