"""Clocks of the STM32F7 (F746): oscillators, PLLs and gates as in ST RM0385, chapter 5."""

from __future__ import annotations

from collections.abc import Iterator

from covp.hardware.registers import Field, Register, RegisterMap
from covp.peripherals._stm32 import Rcc

_PWR, _FLASH = 0x40007000, 0x40023C00
_SCALES = {
    1: (144_000_000, 144_000_000), 2: (168_000_000, 180_000_000), 3: (180_000_000, 216_000_000),
}  # fmt: skip
"""PWR_CR1.VOS to the fastest HCLK without and with over-drive."""


class Stm32F7Rcc(Rcc):
    """RCC of the STM32F746 (RM0385 5.3)."""

    ready = (
        ("CR", "HSION", "HSIRDY"),
        ("CR", "HSEON", "HSERDY"),
        ("CR", "PLLON", "PLLRDY"),
        ("CR", "PLLI2SON", "PLLI2SRDY"),
        ("CR", "PLLSAION", "PLLSAIRDY"),
        ("BDCR", "LSEON", "LSERDY"),
        ("CSR", "LSION", "LSIRDY"),
    )
    sources = ("HSI", "HSE", "PLL")
    pll_sources = ("HSI", "HSE")
    registers = RegisterMap(
        Register("CR", 0x00, on_write="settle", fields=[
            Field("HSION", 0, reset=1), Field("HSIRDY", 1, access="ro", reset=1),
            Field("HSITRIM", 3, 5, reset=0x10), Field("HSICAL", 8, 8, access="ro"),
            Field("HSEON", 16), Field("HSERDY", 17, access="ro"), Field("HSEBYP", 18),
            Field("CSSON", 19),
            Field("PLLON", 24), Field("PLLRDY", 25, access="ro"),
            Field("PLLI2SON", 26), Field("PLLI2SRDY", 27, access="ro"),
            Field("PLLSAION", 28), Field("PLLSAIRDY", 29, access="ro"),
        ]),
        Register("PLLCFGR", 0x04, on_write="settle", reset=0x20000000, fields=[
            Field("PLLM", 0, 6, reset=16), Field("PLLN", 6, 9, reset=192), Field("PLLP", 16, 2),
            Field("PLLSRC", 22), Field("PLLQ", 24, 4, reset=4),
        ]),
        Register("CFGR", 0x08, on_write="settle", fields=[
            Field("SW", 0, 2), Field("SWS", 2, 2, access="ro"), Field("HPRE", 4, 4),
            Field("PPRE1", 10, 3), Field("PPRE2", 13, 3), Field("RTCPRE", 16, 5),
            Field("MCO1", 21, 2), Field("I2SSRC", 23), Field("MCO1PRE", 24, 3),
            Field("MCO2PRE", 27, 3), Field("MCO2", 30, 2),
        ]),
        Register("CIR", 0x0C, fields=[
            Field("FLAGS", 0, 8, access="ro"), Field("ENABLE", 8, 7),
            Field("CLEAR", 16, 8, access="wo"),
        ]),
        Register("AHB1RSTR", 0x10), Register("AHB2RSTR", 0x14), Register("AHB3RSTR", 0x18),
        Register("APB1RSTR", 0x20), Register("APB2RSTR", 0x24),
        Register("AHB1ENR", 0x30, reset=0x00100000), Register("AHB2ENR", 0x34),
        Register("AHB3ENR", 0x38), Register("APB1ENR", 0x40), Register("APB2ENR", 0x44),
        Register("AHB1LPENR", 0x50, reset=0x7EF7B7FF),
        Register("AHB2LPENR", 0x54, reset=0x000000F1),
        Register("AHB3LPENR", 0x58, reset=0x00000003),
        Register("APB1LPENR", 0x60, reset=0xFFFFCBFF),
        Register("APB2LPENR", 0x64, reset=0x04F77F33),
        Register("BDCR", 0x70, on_write="settle", fields=[
            Field("LSEON", 0), Field("LSERDY", 1, access="ro"), Field("LSEBYP", 2),
            Field("LSEDRV", 3, 2), Field("RTCSEL", 8, 2), Field("RTCEN", 15), Field("BDRST", 16),
        ]),
        Register("CSR", 0x74, on_write="settle", fields=[
            Field("LSION", 0), Field("LSIRDY", 1, access="ro"),
            Field("RMVF", 24, access="wo", on_write="clear_reset_flags"),
            Field("RESET_FLAGS", 25, 7, access="ro", reset=0x07, doc="After a power-up."),
        ]),
        Register("SSCGR", 0x80), Register("PLLI2SCFGR", 0x84, reset=0x24003000),
        Register("PLLSAICFGR", 0x88, reset=0x24003000), Register("DCKCFGR1", 0x8C),
        Register("DCKCFGR2", 0x90),
    )  # fmt: skip

    def limits(self) -> Iterator[tuple[str, int, int, str]]:
        """RM0385 3.3.2 (wait states at 2.7 V and more) and 4.1.4 (voltage scaling)."""
        scale = self.field_at(_PWR, "CR1", "VOS")
        if scale is not None:
            is_over = self.field_at(_PWR, "CSR1", "ODSWRDY")
            slow, fast = _SCALES[max(scale, 1)]
            most, why = fast if is_over else slow, f"PWR_CR1.VOS = {scale}, ODSWRDY = {is_over}"
            yield "HCLK", self.core_hz, most, why
        latency = self.field_at(_FLASH, "ACR", "LATENCY")
        if latency is not None:
            most = 30_000_000 * (1 + latency)
            yield "HCLK", self.core_hz, most, f"FLASH_ACR.LATENCY = {latency}"

    def pll_hz(self, source_hz: int) -> int:
        """PLLCLK = source / M * N / P, P in 2, 4, 6, 8 (RM0385 5.3.2)."""
        m, n = self.get("PLLCFGR", "PLLM"), self.get("PLLCFGR", "PLLN")
        return source_hz * n // max(m, 1) // (2 + 2 * self.get("PLLCFGR", "PLLP"))
