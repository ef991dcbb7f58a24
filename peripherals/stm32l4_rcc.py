"""Clocks of the STM32L4+ (L4R5): oscillators, PLLs and gates as in ST RM0432, chapter 6."""

from __future__ import annotations

from collections.abc import Iterator

from covp.hardware.registers import Field, Register, RegisterMap
from covp.peripherals._stm32 import Rcc

_PWR, _FLASH = 0x40007000, 0x40022000

_MSI_KHZ = (100, 200, 400, 800, 1000, 2000, 4000, 8000, 16000, 24000, 32000, 48000)


def _pll(name: str, offset: int) -> Register:
    """A PLL's configuration; PLLSRC and PLLM are the main one's."""
    fields = [
        Field("PLLSRC", 0, 2), Field("PLLM", 4, 4), Field("PLLN", 8, 7, reset=0x10),
        Field("PLLPEN", 16), Field("PLLP", 17), Field("PLLQEN", 20), Field("PLLQ", 21, 2),
        Field("PLLREN", 24), Field("PLLR", 25, 2), Field("PLLPDIV", 27, 5),
    ]  # fmt: skip
    return Register(name, offset, fields=fields, on_write="settle")


class Stm32L4Rcc(Rcc):
    """RCC of the STM32L4+ (RM0432 6.4)."""

    ready = (
        ("CR", "MSION", "MSIRDY"),
        ("CR", "HSION", "HSIRDY"),
        ("CR", "HSEON", "HSERDY"),
        ("CR", "PLLON", "PLLRDY"),
        ("CR", "PLLSAI1ON", "PLLSAI1RDY"),
        ("CR", "PLLSAI2ON", "PLLSAI2RDY"),
        ("BDCR", "LSEON", "LSERDY"),
        ("CSR", "LSION", "LSIRDY"),
        ("CRRCR", "HSI48ON", "HSI48RDY"),
    )
    sources = ("MSI", "HSI", "HSE", "PLL")
    pll_sources = ("", "MSI", "HSI", "HSE")
    registers = RegisterMap(
        Register("CR", 0x00, on_write="settle", fields=[
            Field("MSION", 0, reset=1), Field("MSIRDY", 1, access="ro", reset=1),
            Field("MSIPLLEN", 2), Field("MSIRGSEL", 3), Field("MSIRANGE", 4, 4, reset=6),
            Field("HSION", 8), Field("HSIKERON", 9), Field("HSIRDY", 10, access="ro"),
            Field("HSIASFS", 11),
            Field("HSEON", 16), Field("HSERDY", 17, access="ro"), Field("HSEBYP", 18),
            Field("CSSON", 19),
            Field("PLLON", 24), Field("PLLRDY", 25, access="ro"),
            Field("PLLSAI1ON", 26), Field("PLLSAI1RDY", 27, access="ro"),
            Field("PLLSAI2ON", 28), Field("PLLSAI2RDY", 29, access="ro"),
        ]),
        Register("ICSCR", 0x04, fields=[
            Field("MSICAL", 0, 8, access="ro"), Field("MSITRIM", 8, 8),
            Field("HSICAL", 16, 8, access="ro"), Field("HSITRIM", 24, 7, reset=0x40),
        ]),
        Register("CFGR", 0x08, on_write="settle", fields=[
            Field("SW", 0, 2), Field("SWS", 2, 2, access="ro"), Field("HPRE", 4, 4),
            Field("PPRE1", 8, 3), Field("PPRE2", 11, 3), Field("STOPWUCK", 15),
            Field("MCOSEL", 24, 4), Field("MCOPRE", 28, 3),
        ]),
        _pll("PLLCFGR", 0x0C), _pll("PLLSAI1CFGR", 0x10), _pll("PLLSAI2CFGR", 0x14),
        Register("CIER", 0x18), Register("CIFR", 0x1C, access="ro"),
        Register("CICR", 0x20, access="wo"),
        Register("AHB1RSTR", 0x28), Register("AHB2RSTR", 0x2C), Register("AHB3RSTR", 0x30),
        Register("APB1RSTR1", 0x38), Register("APB1RSTR2", 0x3C), Register("APB2RSTR", 0x40),
        Register("AHB1ENR", 0x48, reset=0x100), Register("AHB2ENR", 0x4C),
        Register("AHB3ENR", 0x50),
        Register("APB1ENR1", 0x58, reset=0x400), Register("APB1ENR2", 0x5C),
        Register("APB2ENR", 0x60),
        Register("AHB1SMENR", 0x68, reset=0x00031307),
        Register("AHB2SMENR", 0x6C, reset=0x005477FF),
        Register("AHB3SMENR", 0x70, reset=0x00000301),
        Register("APB1SMENR1", 0x78, reset=0xF3FECC3F),
        Register("APB1SMENR2", 0x7C, reset=0x00000023),
        Register("APB2SMENR", 0x80, reset=0x01677801),
        Register("CCIPR", 0x88),
        Register("BDCR", 0x90, on_write="settle", fields=[
            Field("LSEON", 0), Field("LSERDY", 1, access="ro"), Field("LSEBYP", 2),
            Field("LSEDRV", 3, 2), Field("LSECSSON", 5), Field("LSECSSD", 6, access="ro"),
            Field("RTCSEL", 8, 2), Field("RTCEN", 15), Field("BDRST", 16),
            Field("LSCOEN", 24), Field("LSCOSEL", 25),
        ]),
        Register("CSR", 0x94, on_write="settle", fields=[
            Field("LSION", 0), Field("LSIRDY", 1, access="ro"), Field("MSISRANGE", 8, 4, reset=6),
            Field("RMVF", 23, access="wo", on_write="clear_reset_flags"),
            Field("RESET_FLAGS", 24, 8, access="ro", reset=0x0C, doc="After a power-up."),
        ]),
        Register("CRRCR", 0x98, on_write="settle", fields=[
            Field("HSI48ON", 0), Field("HSI48RDY", 1, access="ro"),
            Field("HSI48CAL", 7, 9, access="ro"),
        ]),
        Register("CCIPR2", 0x9C), Register("DLYCFGR", 0xA4),
    )  # fmt: skip

    def limits(self) -> Iterator[tuple[str, int, int, str]]:
        """RM0432 3.3.3 (wait states) and 5.1.8 (ranges of the voltage)."""
        is_low = self.field_at(_PWR, "CR1", "VOS") == 2
        if is_low:
            yield "HCLK", self.core_hz, 26_000_000, "PWR_CR1.VOS = 2"
        elif self.field_at(_PWR, "CR5", "R1MODE"):
            yield "HCLK", self.core_hz, 80_000_000, "PWR_CR5.R1MODE = 1"
        latency = self.field_at(_FLASH, "ACR", "LATENCY")
        if latency is not None:
            step = 8_000_000 if is_low else 20_000_000
            most = 26_000_000 if is_low and latency > 1 else step * (1 + latency)
            yield "HCLK", self.core_hz, most, f"FLASH_ACR.LATENCY = {latency}"

    def msi_hz(self) -> int:
        """As MSIRANGE says, or MSISRANGE as long as MSIRGSEL is 0 (RM0432 6.2.3)."""
        chosen = self.get("CR", "MSIRGSEL")
        number = self.get("CR", "MSIRANGE") if chosen else self.get("CSR", "MSISRANGE")
        return 1000 * _MSI_KHZ[min(number, len(_MSI_KHZ) - 1)]

    def pll_hz(self, source_hz: int) -> int:
        """PLLCLK = source / M * N / R (RM0432 6.4.4); 0 while PLLREN is not set."""
        if not self.get("PLLCFGR", "PLLREN"):
            return 0
        m, n = 1 + self.get("PLLCFGR", "PLLM"), self.get("PLLCFGR", "PLLN")
        return source_hz * n // m // (2 + 2 * self.get("PLLCFGR", "PLLR"))
