"""The clock generators of SiFive's FE310 (HiFive1): power, reset, clock and interrupt (PRCI).

Registers: SiFive FE310-G002 Manual v19p05, chapter 6.
"""

from __future__ import annotations

from covp.hardware.peripheral import Peripheral
from covp.hardware.registers import Field, Register, RegisterMap

_HFXOSC = 16_000_000  # the crystal of the board
_HFROSC = 72_000_000  # the ring oscillator as trimmed, section 6.3
_REFERENCE = range(6_000_000, 12_000_001)  # of the PLL, section 6.5
_VCO = range(384_000_000, 768_000_001)


class SifivePrci(Peripheral):
    """Ring oscillator, crystal oscillator and PLL; all are ready at once.

    The emulated core's clock is the platform's, whatever is set here; `core_hertz` says what a
    real core would run at.
    """

    ignores_reserved = True
    registers = RegisterMap(
        Register(
            "HFROSCCFG",
            0x00,
            fields=[
                Field("DIV", 0, 6, reset=4),
                Field("TRIM", 16, 5, reset=16),
                Field("EN", 30, reset=1),
                Field("RDY", 31, access="ro", reset=1),
            ],
            on_write="update",
        ),
        Register(
            "HFXOSCCFG",
            0x04,
            fields=[Field("EN", 30, reset=1), Field("RDY", 31, access="ro", reset=1)],
            on_write="update",
        ),
        Register(
            "PLLCFG",
            0x08,
            fields=[
                Field("R", 0, 3, reset=1),
                Field("F", 4, 6, reset=31),
                Field("Q", 10, 2, reset=3),
                Field("SEL", 16),
                Field("REFSEL", 17, reset=1),
                Field("BYPASS", 18, reset=1),
                Field("LOCK", 31, access="ro", reset=1),
            ],
            on_write="update",
        ),
        Register("PLLOUTDIV", 0x0C, fields=[Field("DIV", 0, 6), Field("BY1", 8, reset=1)]),
        Register("PROCMONCFG", 0xF0),
    )

    def update(self, value: int) -> None:
        """A generator was configured: it is ready, the PLL where its frequencies are valid."""
        self.set("HFROSCCFG", "RDY", self.get("HFROSCCFG", "EN"))
        self.set("HFXOSCCFG", "RDY", self.get("HFXOSCCFG", "EN"))
        self.set("PLLCFG", "LOCK", int(self._vco() is not None))

    @property
    def core_hertz(self) -> float:
        """Of the core and the bus. 0: the clock that is selected does not run."""
        if not self.get("PLLCFG", "SEL"):
            return self._ring
        source = self._pll_input
        if not self.get("PLLCFG", "BYPASS"):
            vco = self._vco()
            source = 0 if vco is None else vco / 2 ** self.get("PLLCFG", "Q")
        if self.get("PLLOUTDIV", "BY1"):
            return source
        return source / (2 * (self.get("PLLOUTDIV", "DIV") + 1))

    @property
    def _ring(self) -> float:
        divided = _HFROSC / (self.get("HFROSCCFG", "DIV") + 1)
        return divided if self.get("HFROSCCFG", "EN") else 0

    @property
    def _pll_input(self) -> float:
        if not self.get("PLLCFG", "REFSEL"):
            return self._ring
        return _HFXOSC if self.get("HFXOSCCFG", "EN") else 0

    def _vco(self) -> float | None:
        """The PLL's own frequency; None where it cannot lock."""
        reference = self._pll_input / (self.get("PLLCFG", "R") + 1)
        vco = reference * 2 * (self.get("PLLCFG", "F") + 1)
        valid = _REFERENCE.start <= reference < _REFERENCE.stop and (
            _VCO.start <= vco < _VCO.stop and self.get("PLLCFG", "Q")
        )
        return vco if valid else None
