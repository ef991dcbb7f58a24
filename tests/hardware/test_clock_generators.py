"""Clock generators: the frequency that their registers stand for, in the manuals' own examples."""

from __future__ import annotations

import pytest

from covp.peripherals.sifive_prci import SifivePrci

HFROSC, HFXOSC, PLL, OUT = 0, 4, 8, 12
SEL, REFSEL, BYPASS, LOCK = 1 << 16, 1 << 17, 1 << 18, 1 << 31


@pytest.mark.parametrize(
    ("pll", "out", "hertz"),
    [
        (None, None, 14_400_000),  # FE310-G002 6.3: after reset, 72 MHz / 5
        (SEL | REFSEL | BYPASS, 0x100, 16_000_000),  # the crystal
        (SEL | REFSEL | 1 | 39 << 4 | 1 << 10, 0x100, 320_000_000),
        (SEL | REFSEL | 1 | 31 << 4 | 1 << 10, 0x100, 256_000_000),
        (SEL | REFSEL | 1 | 31 << 4 | 3 << 10, 0x001, 16_000_000),
        (SEL | REFSEL | 1 | 49 << 4 | 1 << 10, 0x100, 0),  # 800 MHz in the PLL
        (SEL | REFSEL | 0 | 23 << 4 | 1 << 10, 0x100, 0),  # 16 MHz into it
        (REFSEL | 1 | 39 << 4 | 1 << 10, 0x100, 14_400_000),  # not selected
    ],
)
def test_fe310(pll: int | None, out: int | None, hertz: int) -> None:
    prci = SifivePrci()
    if pll is not None and out is not None:
        prci.write_register(OUT, 4, out)
        prci.write_register(PLL, 4, pll)
        locked = prci.read_register(PLL, 4) & LOCK
        assert bool(locked) == (bool(hertz) and not pll & BYPASS)
    assert prci.core_hertz == hertz
    prci.write_register(HFXOSC, 4, 0)
    assert prci.read_register(HFXOSC, 4) == 0
    if pll is not None and pll & SEL:
        assert prci.core_hertz == 0
