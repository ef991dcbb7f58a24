"""`CortexMDebug`: a Cortex-M's debug registers, laid over the memory of a virtual device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from covp.device.debug.cortex_m_comparators import BreakpointUnit, WatchpointUnit
from covp.device.debug.cortex_m_control import SCS, DebugControl
from covp.device.debug.cortex_m_ids import CoreIds, core_ids
from covp.device.debug.target import DebugTarget
from covp.errors import DeviceError

ROM_TABLE = 0xE00FF000
_DWT, _FPB = 0xE0001000, 0xE0002000
_PRIVATE_BUS = 0xE0000000
_DBGMCU = 0xE0042000
_PAGE = 0x1000


class _Unit(Protocol):
    """A page of registers."""

    def read(self, offset: int) -> int | None:
        """Return the word at an offset; None: it is the device's."""
        ...

    def write(self, offset: int, value: int) -> bool:
        """Handle a write; return whether it ends here and does not go on to the device."""
        ...


class CortexMDebug:
    """The view of a debug port: memory and peripherals, with the core's debug registers in them.

    Run control goes through DHCSR, DCRSR, DEMCR and so on, as over a real core. One object is
    one debug port: not for several threads at once.

    Args:
        target: the core; not to be closed before this is out of use.
        log: called with a line for each fault of the program.

    Attributes:
        target: as given.
        ids: the core's identification registers.
        control: run control and core registers, for probes that have commands for them.

    Raises:
        DeviceError: the core is not a Cortex-M.
    """

    def __init__(self, target: DebugTarget, log: Callable[[str], None] = lambda line: None) -> None:
        self.target = target
        self.ids = core_ids(target.device.platform)
        watchpoints = WatchpointUnit(
            target, self.ids, lambda offset: self._device_word(_DWT + offset)
        )
        self.control = DebugControl(target, self.ids, watchpoints, log)
        self._units: dict[int, _Unit] = {
            SCS: self.control,
            _DWT: watchpoints,
            _FPB: BreakpointUnit(target, self.ids),
            ROM_TABLE: _RomTable(self.ids),
        }
        if all(base != _DBGMCU for base, _ in target.device.peripherals.values()):
            self._units[_DBGMCU] = _ChipSupport()

    def read(self, address: int, size: int) -> bytes:
        """Read ``size`` bytes from ``address``. Raises DeviceError where a bus access would."""
        self.control.look()
        if not self._touches(address, size):
            return self.target.read_memory(address, size)
        data = bytearray()
        for word in range(address & ~3, address + size, 4):
            data += self._read_word(word).to_bytes(4, "little")
        return bytes(data[address % 4 : address % 4 + size])

    def write(self, address: int, data: bytes) -> None:
        """Store bytes; debug registers take whole words only. Raises DeviceError."""
        self.control.look()
        if not self._touches(address, len(data)) or address % 4 or len(data) % 4:
            self.target.write_memory(address, data)
            return
        for at in range(0, len(data), 4):
            self._write_word(address + at, int.from_bytes(data[at : at + 4], "little"))

    def reset(self) -> None:
        """Reset the system, as a pulse on the reset line does."""
        self.control.reset()

    def _touches(self, address: int, size: int) -> bool:
        return any(page in self._units for page in range(address & -_PAGE, address + size, _PAGE))

    def _read_word(self, address: int) -> int:
        unit = self._units.get(address & -_PAGE)
        value = unit.read(address % _PAGE) if unit is not None else None
        if value is not None:
            return value
        if unit is not None and address >= _PRIVATE_BUS:
            return self._device_word(address)
        return int.from_bytes(self.target.read_memory(address, 4), "little")

    def _write_word(self, address: int, value: int) -> None:
        unit = self._units.get(address & -_PAGE)
        if unit is not None and unit.write(address % _PAGE, value):
            return
        try:
            self.target.write_memory(address, value.to_bytes(4, "little"))
        except DeviceError:
            if unit is None or address < _PRIVATE_BUS:
                raise  # reserved registers of a component ignore writes

    def _device_word(self, address: int) -> int:
        """Read the device's own register; reserved ones of a component read 0."""
        try:
            return int.from_bytes(self.target.read_memory(address, 4), "little")
        except DeviceError:
            return 0


class _RomTable:
    """The table of the debug components' addresses, as in Arm DDI0403E C1.4."""

    def __init__(self, ids: CoreIds) -> None:
        self._component = ids.rom
        # bit 0: there is one, bit 1: 32-bit format
        self._entries = [(base - ROM_TABLE) & 0xFFFFF000 | 3 for base in (SCS, _DWT, _FPB)]

    def read(self, offset: int) -> int | None:
        if offset // 4 < len(self._entries):
            return self._entries[offset // 4]
        if offset == 0xFCC:  # MEMTYPE: system memory is here too
            return 1
        return self._component.register(offset)

    def write(self, offset: int, value: int) -> bool:
        return True


class _ChipSupport:
    """DBGMCU of an STM32 that is not modelled: no identity, and registers that keep their value.

    OpenOCD's files for STM32 set them as soon as they have found the core.
    """

    _KEPT = 4  # CR and up to three registers that freeze timers

    def __init__(self) -> None:
        self._words = dict.fromkeys(range(0, 4 * (self._KEPT + 1), 4), 0)

    def read(self, offset: int) -> int | None:
        return self._words.get(offset)

    def write(self, offset: int, value: int) -> bool:
        if offset in self._words and offset:
            self._words[offset] = value
        return offset in self._words
