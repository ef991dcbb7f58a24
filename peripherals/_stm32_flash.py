"""What the flash controllers of STM32 have in common: keys, locks, flags, option bytes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from covp.hardware.bus import Bus
from covp.hardware.clock import Clock
from covp.hardware.flash_controller import FlashController
from covp.peripherals._stm32 import Stm32Peripheral

_KEYS = (0x45670123, 0xCDEF89AB)
_OPTION_KEYS = (0x08192A3B, 0x4C5D6E7F)


class Stm32Flash(Stm32Peripheral, FlashController):
    """KEYR and OPTKEYR, locked registers, SR's flags and the interrupt, and what OPTSTRT stores.

    An operation is over with the store that starts it: SR.BSY is always 0. The memory leaves the
    factory erased. ACR is a register without effect: wait states are the platform file's.

    Attributes:
        locks: register to the register and field that lock it; set by a chip's class.
        options: registers that keep option bytes over a reset; set by a chip's class.
    """

    start = 0x08000000
    locks: ClassVar[Mapping[str, tuple[str, str]]]
    options: ClassVar[tuple[str, ...]]

    def __init__(self) -> None:
        self._stored: dict[str, int] = {}
        self._right_keys = {"KEYR": 0, "OPTKEYR": 0}
        super().__init__()

    def attach(self, name: str, bus: Bus, clock: Clock) -> None:
        """The device's flash is the controller's from now on."""
        super().attach(name, bus, clock)
        self._flash = bus.region_at(self.start)
        self.erase(self.start, self.flash_bytes)

    def reset(self) -> None:
        """Locked; the option bytes are loaded."""
        super().reset()
        self.values |= self._stored
        self._right_keys = {"KEYR": 0, "OPTKEYR": 0}

    @property
    def flash_bytes(self) -> int:
        """Size of the flash."""
        return self._flash.bytes

    # -- locks --------------------------------------------------------------------------------

    def write_register(self, offset: int, size: int, value: int) -> None:
        """A store of the core; a locked register ignores it."""
        register = self.registers.at(offset & ~3)
        lock = self.locks.get(register.name) if register is not None else None
        if lock is None or not self.get(*lock):
            super().write_register(offset, size, value)

    def lock(self, value: int) -> None:
        """1 was written to LOCK."""
        self.set("CR", "LOCK", 1)
        self._right_keys["KEYR"] = 0

    def lock_options(self, value: int) -> None:
        """1 was written to OPTLOCK."""
        self.set(*self._option_lock, 1)
        self._right_keys["OPTKEYR"] = 0

    def unlock(self, value: int) -> None:
        """KEYR was written."""
        if self._turns("KEYR", _KEYS, value):
            self.set("CR", "LOCK", 0)

    def unlock_options(self, value: int) -> None:
        """OPTKEYR was written."""
        if self._turns("OPTKEYR", _OPTION_KEYS, value):
            self.set(*self._option_lock, 0)

    def _turns(self, register: str, keys: tuple[int, int], key: int) -> bool:
        """Whether both keys came in order; any other is a bus error, and the last until a reset."""
        number = self._right_keys[register]
        if number >= len(keys) or key != keys[number]:
            self._right_keys[register] = len(keys)
            raise self.fault(
                f"{register} takes its two keys in order, and once: 0x{key:x} is wrong"
            )
        self._right_keys[register] = number + 1
        return number + 1 == len(keys)

    @property
    def _option_lock(self) -> tuple[str, str]:
        return self.locks[self.options[0]]

    # -- option bytes -------------------------------------------------------------------------

    def store_options(self, value: int) -> None:
        """OPTSTRT was written."""
        self._stored = {name: self.values[name] for name in self.options}
        self.finish()

    # -- flags --------------------------------------------------------------------------------

    def finish(self) -> None:
        """An operation was completed."""
        if self.get("CR", "EOPIE"):
            self.set("SR", "EOP", 1)
            self.signal()

    def refuse(self, flag: str) -> None:
        """An operation was rejected: an error flag."""
        self.set("SR", flag, 1)
        if self.get("CR", "ERRIE"):
            self.set("SR", "OPERR", 1)
        self.signal()

    def signal(self, value: int = 0) -> None:
        """SR or CR changed: the interrupt request follows."""
        if not self.values["SR"] and not self.interrupt.level:
            return
        ended = self.get("SR", "EOP") and self.get("CR", "EOPIE")
        failed = self.get("SR", "OPERR") and self.get("CR", "ERRIE")
        if bool(ended or failed) != self.interrupt.level:
            self.interrupt.set(not self.interrupt.level)

    # -- the memory ---------------------------------------------------------------------------

    def erase(self, address: int, size: int) -> None:
        """All bits are 1."""
        self.bus.program(address, b"\xff" * size)
