"""The flash controller of the STM32L4+ (L4R5): ST RM0432, chapter 3."""

from __future__ import annotations

from typing import ClassVar

from covp.hardware.registers import Field, Register, RegisterMap
from covp.peripherals._stm32_flash import Stm32Flash

_ERRORS = ("PROGERR", "WRPERR", "PGAERR", "SIZERR", "PGSERR", "MISERR", "FASTERR")
_BLANK = b"\xff" * 8
_PAGE = 0x1000
_FIRST_AREAS, _SECOND_AREAS = ("WRP1AR", "WRP1BR"), ("WRP2AR", "WRP2BR")
_OPTR = 0xFFEFF8AA  # production value: two banks, read protection level 0


def _area(name: str, offset: int) -> Register:
    """Write-protected pages, from START to END; none where START is greater (the reset value)."""
    return Register(name, offset, fields=[Field("START", 0, 8, reset=0xFF), Field("END", 16, 8)])


class Stm32L4Flash(Stm32Flash):
    """FLASH of the STM32L4+: double words with ECC, pages of 4 KB in two banks (RM0432 3.3, 3.7).

    A double word is programmed by two stores of words, the lower address first. It has to be
    erased, or all of its bits are cleared: the ECC bits beside it can be written once. With
    OPTR.DBANK = 0 pages are 8 KB. Fast programming (FSTPG) takes double words as PG does. Read-out
    protection (RDP, PCROP) has no effect.
    """

    options = ("OPTR", "PCROP1SR", "PCROP1ER", "WRP1AR", "WRP1BR", "PCROP2SR", "PCROP2ER",
               "WRP2AR", "WRP2BR")  # fmt: skip
    locks: ClassVar = {"CR": ("CR", "LOCK"), **dict.fromkeys(options, ("CR", "OPTLOCK"))}
    registers = RegisterMap(
        Register("ACR", 0x00, fields=[
            Field("LATENCY", 0, 4, doc="Wait states."), Field("PRFTEN", 8),
            Field("ICEN", 9, reset=1), Field("DCEN", 10, reset=1), Field("ICRST", 11),
            Field("DCRST", 12), Field("RUN_PD", 13), Field("SLEEP_PD", 14),
        ]),
        Register("PDKEYR", 0x04, access="wo"),
        Register("KEYR", 0x08, access="wo", on_write="unlock"),
        Register("OPTKEYR", 0x0C, access="wo", on_write="unlock_options"),
        Register("SR", 0x10, on_write="signal", fields=[
            Field("EOP", 0, access="w1c"), Field("OPERR", 1, access="w1c"),
            Field("PROGERR", 3, access="w1c", doc="The double word was not erased."),
            Field("WRPERR", 4, access="w1c", doc="The page is write-protected."),
            Field("PGAERR", 5, access="w1c", doc="The words are not one double word's."),
            Field("SIZERR", 6, access="w1c", doc="A byte or a halfword was stored."),
            Field("PGSERR", 7, access="w1c", doc="PG is not set, or an error flag is."),
            Field("MISERR", 8, access="w1c"), Field("FASTERR", 9, access="w1c"),
            Field("RDERR", 14, access="w1c"), Field("OPTVERR", 15, access="w1c"),
            Field("BSY", 16, access="ro"), Field("PEMPTY", 17, access="w1c"),
        ]),
        Register("CR", 0x14, on_write="signal", fields=[
            Field("PG", 0), Field("PER", 1), Field("MER1", 2), Field("PNB", 3, 8),
            Field("BKER", 11), Field("MER2", 15),
            Field("STRT", 16, access="wo", on_write="start_erasing"),
            Field("OPTSTRT", 17, access="wo", on_write="store_options"), Field("FSTPG", 18),
            Field("EOPIE", 24), Field("ERRIE", 25), Field("RDERRIE", 26),
            Field("OBL_LAUNCH", 27, access="wo"),
            Field("OPTLOCK", 30, access="ro", reset=1, on_write="lock_options"),
            Field("LOCK", 31, access="ro", reset=1, on_write="lock"),
        ]),
        Register("ECCR", 0x18),
        Register("OPTR", 0x20, reset=_OPTR),
        Register("PCROP1SR", 0x24, reset=0xFFFFFFFF), Register("PCROP1ER", 0x28),
        _area("WRP1AR", 0x2C), _area("WRP1BR", 0x30),
        Register("PCROP2SR", 0x44, reset=0xFFFFFFFF), Register("PCROP2ER", 0x48),
        _area("WRP2AR", 0x4C), _area("WRP2BR", 0x50),
        Register("CFGR", 0x130),
    )  # fmt: skip

    def reset(self) -> None:
        """Nothing of a double word is there."""
        super().reset()
        self._lower: tuple[int, int] | None = None

    # -- geometry -----------------------------------------------------------------------------

    @property
    def _banks(self) -> int:
        return 2 if self.values["OPTR"] >> 22 & 1 else 1

    @property
    def _page_bytes(self) -> int:
        return _PAGE * (3 - self._banks)

    def _is_protected(self, page: int) -> bool:
        """Whether a page, counted from the flash's start, lies in a WRP area (RM0432 3.5.3)."""
        bank, number = divmod(page, self.flash_bytes // self._page_bytes // self._banks)
        names: tuple[str, ...] = (*_FIRST_AREAS, *_SECOND_AREAS)
        if self._banks == 2:
            names = _SECOND_AREAS if bank else _FIRST_AREAS
        return any(self.get(name, "START") <= number <= self.get(name, "END") for name in names)

    # -- erasing ------------------------------------------------------------------------------

    def start_erasing(self, value: int) -> None:
        """STRT was written: PER's page, or the banks of MER1 and MER2."""
        if self.get("CR", "PG") or self._has_failed:
            self.refuse("PGSERR")
            return
        bank = self.flash_bytes // 2
        pages: list[int] = []
        if self.get("CR", "PER"):
            second = self._banks == 2 and self.get("CR", "BKER")
            pages = [self.get("CR", "PNB") + (bank // _PAGE if second else 0)]
        else:
            pages_of_bank = bank // self._page_bytes
            for number, field in enumerate(("MER1", "MER2")):
                if self.get("CR", field):
                    pages += range(number * pages_of_bank, (number + 1) * pages_of_bank)
        if any(map(self._is_protected, pages)):
            self.refuse("WRPERR")
            return
        for page in pages:
            self.erase(self.start + page * self._page_bytes, self._page_bytes)
        self.finish()

    # -- programming --------------------------------------------------------------------------

    @property
    def _has_failed(self) -> bool:
        return any(self.get("SR", flag) for flag in _ERRORS)

    @property
    def is_programming(self) -> bool:
        """CR is unlocked and PG or FSTPG is set."""
        asked = self.get("CR", "PG") or self.get("CR", "FSTPG")
        return bool(asked and not self.get("CR", "LOCK"))

    def refuse_store(self) -> None:
        """PG is not set."""
        self.refuse("PGSERR")

    def store(self, address: int, size: int, value: int) -> None:
        """A word is kept until its double word is complete; see `FlashController.store`."""
        lower, self._lower = self._lower, None
        erasing = any(self.get("CR", field) for field in ("PER", "MER1", "MER2"))
        if erasing or self._has_failed:
            self.refuse("PGSERR")
        elif size < 4:
            self.refuse("SIZERR")
        elif size == 8 and address % 8 == 0:
            self._program(address, value)
        elif size == 4 and address % 8 == 0 and lower is None:
            self._lower = (address, value)
        elif size == 4 and lower is not None and address == lower[0] + 4:
            self._program(lower[0], value << 32 | lower[1])
        else:
            self.refuse("PGAERR")

    def _program(self, address: int, value: int) -> None:
        """A double word."""
        if self._is_protected((address - self.start) // self._page_bytes):
            self.refuse("WRPERR")
        elif value and self.bus.read(address, 8) != _BLANK:
            self.refuse("PROGERR")
        else:
            self.bus.program(address, value.to_bytes(8, "little"))
            self.finish()
