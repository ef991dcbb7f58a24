"""Clocks of the STM32H7 (H743): oscillators, PLLs and gates as in ST RM0433, "RCC"."""

from __future__ import annotations

from collections.abc import Iterator

from covp.hardware.registers import Field, Register, RegisterMap
from covp.peripherals._stm32 import Rcc

_PWR, _FLASH, _SYSCFG = 0x58024800, 0x52002000, 0x58000400
_FASTEST = (240_000_000, 200_000_000, 150_000_000, 100_000_000)
"""HCLK by voltage scale; the core may be twice, an APB half as fast (DS12110 rev. 5, 6.3.1)."""
_WAITS_MHZ = ((70, 140, 210, 225, 240), (70, 140, 210), (55, 110, 165), (45, 90, 135))
"""By voltage scale the fastest HCLK of 0, 1 ... wait states (RM0433 table 17)."""
_REFERENCES = ((1e6, 2e6), (2e6, 4e6), (4e6, 8e6), (8e6, 16e6))
_VCO = ((192e6, 960e6), (150e6, 420e6))  # of revision V (DS12110 6.3.11)


def _pll(number: int, offset: int) -> list[Register]:
    """Dividers of a PLL, less one."""
    return [
        Register(f"PLL{number}DIVR", offset, on_write="settle", fields=[
            Field("N", 0, 9, reset=0x80), Field("P", 9, 7, reset=1), Field("Q", 16, 7, reset=1),
            Field("R", 24, 7, reset=1),
        ]),
        Register(f"PLL{number}FRACR", offset + 4, on_write="settle", fields=[Field("N", 3, 13)]),
    ]  # fmt: skip


def _gates() -> Iterator[Register]:
    """Resets, clocks and clocks in sleep of the buses."""
    buses = ("AHB3", "AHB1", "AHB2", "AHB4", "APB3", "APB1L", "APB1H", "APB2", "APB4")
    for suffix, offset in (("RSTR", 0x7C), ("ENR", 0xD4), ("LPENR", 0xFC)):
        yield from (Register(bus + suffix, offset + 4 * n) for n, bus in enumerate(buses))


class Stm32H7Rcc(Rcc):
    """RCC of the STM32H743; a PLL that runs keeps its source, dividers and ranges."""

    ready = (
        ("CR", "HSION", "HSIRDY"),
        ("CR", "CSION", "CSIRDY"),
        ("CR", "HSI48ON", "HSI48RDY"),
        ("CR", "HSEON", "HSERDY"),
        ("CR", "PLLON", "PLLRDY"),
        ("CR", "PLL2ON", "PLL2RDY"),
        ("CR", "PLL3ON", "PLL3RDY"),
        ("BDCR", "LSEON", "LSERDY"),
        ("CSR", "LSION", "LSIRDY"),
    )
    sources = ("HSI", "CSI", "HSE", "PLL")
    pll_field = ("PLLCKSELR", "PLLSRC")
    pll_sources = ("HSI", "CSI", "HSE", "")
    registers = RegisterMap(
        Register("CR", 0x00, on_write="settle", fields=[
            Field("HSION", 0, reset=1), Field("HSIKERON", 1),
            Field("HSIRDY", 2, access="ro", reset=1), Field("HSIDIV", 3, 2),
            Field("HSIDIVF", 5, access="ro", reset=1), Field("CSION", 7),
            Field("CSIRDY", 8, access="ro"), Field("CSIKERON", 9), Field("HSI48ON", 12),
            Field("HSI48RDY", 13, access="ro"), Field("D1CKRDY", 14, access="ro"),
            Field("D2CKRDY", 15, access="ro"), Field("HSEON", 16),
            Field("HSERDY", 17, access="ro"), Field("HSEBYP", 18), Field("HSECSSON", 19),
            Field("PLLON", 24, doc="PLL1ON."), Field("PLLRDY", 25, access="ro", doc="PLL1RDY."),
            Field("PLL2ON", 26), Field("PLL2RDY", 27, access="ro"),
            Field("PLL3ON", 28), Field("PLL3RDY", 29, access="ro"),
        ]),
        Register("HSICFGR", 0x04, reset=0x40000000), Register("CRRCR", 0x08, access="ro"),
        Register("CSICFGR", 0x0C, reset=0x20000000),
        Register("CFGR", 0x10, on_write="settle", fields=[
            Field("SW", 0, 3), Field("SWS", 3, 3, access="ro"), Field("STOPWUCK", 6),
            Field("STOPKERWUCK", 7), Field("RTCPRE", 8, 6), Field("HRTIMSEL", 14),
            Field("TIMPRE", 15), Field("MCO1PRE", 18, 4), Field("MCO1", 22, 3),
            Field("MCO2PRE", 25, 4), Field("MCO2", 29, 3),
        ]),
        Register("D1CFGR", 0x18, on_write="settle", fields=[
            Field("HPRE", 0, 4), Field("D1PPRE", 4, 3), Field("D1CPRE", 8, 4),
        ]),
        Register("D2CFGR", 0x1C, on_write="settle", fields=[
            Field("D2PPRE1", 4, 3), Field("D2PPRE2", 8, 3),
        ]),
        Register("D3CFGR", 0x20, on_write="settle", fields=[Field("D3PPRE", 4, 3)]),
        Register("PLLCKSELR", 0x28, on_write="settle", fields=[
            Field("PLLSRC", 0, 2), Field("DIVM1", 4, 6, reset=32), Field("DIVM2", 12, 6, reset=32),
            Field("DIVM3", 20, 6, reset=32),
        ]),
        Register("PLLCFGR", 0x2C, on_write="settle", fields=[
            Field("PLL1FRACEN", 0), Field("PLL1VCOSEL", 1), Field("PLL1RGE", 2, 2),
            Field("PLL2", 4, 4), Field("PLL3", 8, 4), Field("DIVP1EN", 16, reset=1),
            Field("DIVEN", 17, 8, reset=0xFF),
        ]),
        *_pll(1, 0x30), *_pll(2, 0x38), *_pll(3, 0x40),
        Register("D1CCIPR", 0x4C), Register("D2CCIP1R", 0x50), Register("D2CCIP2R", 0x54),
        Register("D3CCIPR", 0x58),
        Register("CIER", 0x60), Register("CIFR", 0x64, access="ro"),
        Register("CICR", 0x68, access="wo"),
        Register("BDCR", 0x70, on_write="settle", fields=[
            Field("LSEON", 0), Field("LSERDY", 1, access="ro"), Field("LSEBYP", 2),
            Field("LSEDRV", 3, 2), Field("LSECSSON", 5), Field("LSECSSD", 6, access="ro"),
            Field("RTCSEL", 8, 2), Field("RTCEN", 15), Field("BDRST", 16),
        ]),
        Register("CSR", 0x74, on_write="settle", fields=[
            Field("LSION", 0), Field("LSIRDY", 1, access="ro"),
        ]),
        Register("GCR", 0xA0), Register("D3AMR", 0xA8),
        Register("RSR", 0xD0, fields=[
            Field("RMVF", 16, access="wo", on_write="clear_reset_flags"),
            Field("RESET_FLAGS", 17, 15, access="ro", reset=0x74, doc="After a power-up."),
        ]),
        *_gates(),
    )  # fmt: skip

    def write_register(self, offset: int, size: int, value: int) -> None:
        """A store of the core."""
        register = self.registers.at(offset & ~3)
        locked = ("PLLCKSELR", "PLLCFGR", "PLL1DIVR")
        if register is None or register.name not in locked or not self.get("CR", "PLLON"):
            super().write_register(offset, size, value)

    def clear_reset_flags(self, value: int) -> None:
        """RSR.RMVF was written."""
        self.set("RSR", "RESET_FLAGS", 0)

    def limits(self) -> Iterator[tuple[str, int, int, str]]:
        """Of core, buses and flash by the voltage, which is VOS0 in scale 1 with over-drive."""
        vos = self.field_at(_PWR, "CSR1", "ACTVOS")
        if vos is None:
            return
        boosted = self.field_at(_SYSCFG, "PWRCR", "ODEN") or 0
        scale, why = 4 - vos - boosted, f"PWR_D3CR.VOS = {vos}, SYSCFG_PWRCR.ODEN = {boosted}"
        most = _FASTEST[scale]
        yield "the core", self.core_hz, 2 * most, why
        yield "HCLK", self.hclk_hz, most, why
        for number in (1, 2):  # 64 MHz is what they have after reset
            yield f"PCLK{number}", self.bus_hz(number), max(most // 2, 64_000_000), why
        latency = self.field_at(_FLASH, "ACR", "LATENCY")
        if latency is not None:
            waits = _WAITS_MHZ[scale]
            fastest = 1_000_000 * waits[min(latency, len(waits) - 1)]
            yield "HCLK", self.hclk_hz, fastest, f"FLASH_ACR.LATENCY = {latency}"

    # -- frequencies --------------------------------------------------------------------------

    @property
    def core_hz(self) -> int:
        """The core's and its caches'."""
        return self.system_hz // self.divisor("D1CFGR", "D1CPRE")

    @property
    def hclk_hz(self) -> int:
        """HCLK, of the AXI bus, the flash and the memories but the TCM."""
        return self.core_hz // self.divisor("D1CFGR", "HPRE")

    def bus_hz(self, number: int) -> int:
        """PCLK of APB 1 or 2."""
        return self.hclk_hz // self.divisor("D2CFGR", f"D2PPRE{number}")

    def hsi_hz(self) -> int:
        """64 MHz, divided."""
        return 64_000_000 >> self.get("CR", "HSIDIV")

    def _vco_hz(self, source_hz: int) -> float:
        factor = 1 + self.get("PLL1DIVR", "N")
        fraction = self.get("PLL1FRACR", "N") / 8192 if self.get("PLLCFGR", "PLL1FRACEN") else 0
        return source_hz / (self.get("PLLCKSELR", "DIVM1") or float("inf")) * (factor + fraction)

    @property
    def pll_locks(self) -> bool:
        """Reference and VCO are in the ranges that are set; P is even."""
        source = self._hz(self._pll_source)
        reference = source / (self.get("PLLCKSELR", "DIVM1") or float("inf"))
        least, most = _REFERENCES[self.get("PLLCFGR", "PLL1RGE")]
        low, high = _VCO[self.get("PLLCFGR", "PLL1VCOSEL")]
        return (
            least <= reference <= most
            and low <= self._vco_hz(source) <= high
            and self.get("PLL1DIVR", "P") % 2 == 1
        )

    def pll_hz(self, source_hz: int) -> int:
        """Source / M * N / P; 0 while DIVP1EN is not set."""
        if not self.get("PLLCFGR", "DIVP1EN"):
            return 0
        return int(self._vco_hz(source_hz) / (1 + self.get("PLL1DIVR", "P")))
