"""What ST writes into a chip: its unique number, the size of its flash; an empty OTP area."""

from __future__ import annotations

from covp.hardware.bus import Bus
from covp.hardware.clock import Clock
from covp.hardware.registers import RegisterMap
from covp.peripherals._stm32 import Stm32Peripheral

_UID = b"covp virtual"
_FLASH_START = 0x08000000


class SystemMemory(Stm32Peripheral):
    """Read-only words beside the flash (RM0432 58, RM0385 41, RM0433 61); the rest is erased.

    Args:
        uid: offset of the unique device identifier, 96 bits.
        flash_size: offset of the flash size in KB, 16 bits.
        package: offset of the package number, 16 bits, here 0; None: it is elsewhere (H7).
    """

    size = 0x800
    registers = RegisterMap()

    def __init__(self, uid: int, flash_size: int, package: int | None = None) -> None:
        self._places = (uid, flash_size, *(() if package is None else (package,)))
        if not all(0 <= place <= self.size - len(_UID) for place in self._places):
            raise ValueError(f"uid, flash_size and package must be offsets below 0x{self.size:x}")
        self._content = b""
        super().__init__()

    def attach(self, name: str, bus: Bus, clock: Clock) -> None:
        """The size is that of the device's flash."""
        super().attach(name, bus, clock)
        kilobytes = bus.region_at(_FLASH_START).bytes // 1024
        content = bytearray(b"\xff" * self.size)
        for place, data in zip(
            self._places, (_UID, kilobytes.to_bytes(2, "little"), bytes(2)), strict=False
        ):
            content[place : place + len(data)] = data
        self._content = bytes(content)

    def read_register(self, offset: int, size: int) -> int:
        """The value of a load of the core."""
        return int.from_bytes(self._content[offset : offset + size], "little")
