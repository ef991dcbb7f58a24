"""The flash controller of the STM32F7 (F746): ST RM0385, chapter 3."""

from __future__ import annotations

import bisect
import itertools
from typing import ClassVar

from covp.hardware.registers import Field, Register, RegisterMap
from covp.peripherals._stm32_flash import Stm32Flash

_SECTORS = (32, 32, 32, 32, 128, 256, 256, 256)
"""KB of each (RM0385 table 3)."""
_ENDS = tuple(itertools.accumulate(1024 * size for size in _SECTORS))
_ROW = 16
_PG, _PSIZE, _LOCK = 1 << 0, 8, 1 << 31  # CR's, which every store looks at


class Stm32F7Flash(Stm32Flash):
    """FLASH of the STM32F746: programming clears bits, sectors are erased (RM0385 3.3, 3.7).

    Stores have to be as wide as CR.PSIZE says. Read-out protection and the boot addresses of the
    option bytes have no effect.
    """

    options = ("OPTCR", "OPTCR1")
    locks: ClassVar = {"CR": ("CR", "LOCK"), **dict.fromkeys(options, ("OPTCR", "OPTLOCK"))}
    registers = RegisterMap(
        Register("ACR", 0x00, fields=[
            Field("LATENCY", 0, 4, doc="Wait states."), Field("PRFTEN", 8), Field("ARTEN", 9),
            Field("ARTRST", 11),
        ]),
        Register("KEYR", 0x04, access="wo", on_write="unlock"),
        Register("OPTKEYR", 0x08, access="wo", on_write="unlock_options"),
        Register("SR", 0x0C, on_write="signal", fields=[
            Field("EOP", 0, access="w1c"), Field("OPERR", 1, access="w1c"),
            Field("WRPERR", 4, access="w1c", doc="The sector is write-protected."),
            Field("PGAERR", 5, access="w1c", doc="The store crosses 128 bits."),
            Field("PGPERR", 6, access="w1c", doc="The store is not as wide as PSIZE says."),
            Field("ERSERR", 7, access="w1c", doc="A store to the flash, and PG is not set."),
            Field("BSY", 16, access="ro"),
        ]),
        Register("CR", 0x10, on_write="signal", fields=[
            Field("PG", 0), Field("SER", 1), Field("MER", 2), Field("SNB", 3, 4),
            Field("PSIZE", 8, 2, doc="Stores of 2**PSIZE bytes."),
            Field("STRT", 16, access="wo", on_write="start_erasing"), Field("EOPIE", 24),
            Field("ERRIE", 25), Field("LOCK", 31, access="ro", reset=1, on_write="lock"),
        ]),
        Register("OPTCR", 0x14, fields=[
            Field("OPTLOCK", 0, access="ro", reset=1, on_write="lock_options"),
            Field("OPTSTRT", 1, access="wo", on_write="store_options"),
            Field("BOR_LEV", 2, 2, reset=3), Field("WWDG_SW", 4, reset=1),
            Field("IWDG_SW", 5, reset=1), Field("NRST_STOP", 6, reset=1),
            Field("NRST_STDBY", 7, reset=1), Field("RDP", 8, 8, reset=0xAA),
            Field("NWRP", 16, 8, reset=0xFF, doc="0: the sector is write-protected."),
            Field("IWDG_STDBY", 30, reset=1), Field("IWDG_STOP", 31, reset=1),
        ]),
        Register("OPTCR1", 0x18, fields=[
            Field("BOOT_ADD0", 0, 16, reset=0x0080), Field("BOOT_ADD1", 16, 16, reset=0x0040),
        ]),
    )  # fmt: skip

    def reset(self) -> None:
        """The option bytes are loaded, and locked."""
        super().reset()
        self.set("OPTCR", "OPTLOCK", 1)

    # -- erasing ------------------------------------------------------------------------------

    def start_erasing(self, value: int) -> None:
        """STRT was written: SNB's sector with SER, all of them with MER."""
        sectors: list[int] = []
        if self.get("CR", "SER"):
            sectors = [self.get("CR", "SNB")]
        elif self.get("CR", "MER"):
            sectors = list(range(len(_SECTORS)))
        if self.get("CR", "PG") or any(sector >= len(_SECTORS) for sector in sectors):
            self.refuse("ERSERR")
            return
        if not all(map(self._is_writable, sectors)):
            self.refuse("WRPERR")
            return
        for sector in sectors:
            size = 1024 * _SECTORS[sector]
            self.erase(self.start + _ENDS[sector] - size, size)
        self.finish()

    def _is_writable(self, sector: int) -> bool:
        return bool(self.get("OPTCR", "NWRP") >> sector & 1)

    # -- programming --------------------------------------------------------------------------

    @property
    def is_programming(self) -> bool:
        """CR is unlocked and PG is set."""
        return self.values["CR"] & (_LOCK | _PG) == _PG

    def refuse_store(self) -> None:
        """The control register is not set for it."""
        self.refuse("ERSERR")

    def store(self, address: int, size: int, value: int) -> None:
        """Bits become 0 or stay; see `FlashController.store`."""
        if size != 1 << (self.values["CR"] >> _PSIZE & 3):
            self.refuse("PGPERR")
        elif address % _ROW + size > _ROW:
            self.refuse("PGAERR")
        elif not self._is_writable(bisect.bisect(_ENDS, address - self.start)):
            self.refuse("WRPERR")
        else:
            old = int.from_bytes(self.bus.read(address, size), "little")
            self.bus.program(address, (old & value).to_bytes(size, "little"))
            self.finish()
