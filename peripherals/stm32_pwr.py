"""Power control of STM32: voltage scaling and over-drive, ready as soon as they are requested."""

from __future__ import annotations

from covp.hardware.registers import Field, Register, RegisterMap
from covp.peripherals._stm32 import Stm32Peripheral

SYSCFG = 0x58000400  # of the H743


class L4Pwr(Stm32Peripheral):
    """PWR of the STM32L4+ (ST RM0432 5.4).

    Low-power modes and pull resistors are registers without effect. SR2.VOSF is always 0: the
    regulator's output is there at once.
    """

    registers = RegisterMap(
        Register("CR1", 0x00, on_write="regulate", fields=[
            Field("LPMS", 0, 3), Field("RRSTP", 4), Field("DBP", 8),
            Field("VOS", 9, 2, reset=1, doc="1: up to 120 MHz, 2: up to 26 MHz."),
            Field("LPR", 14, doc="Low-power run: SR2.REGLPF follows."),
        ]),
        Register("CR2", 0x04), Register("CR3", 0x08, reset=0x8000), Register("CR4", 0x0C),
        Register("SR1", 0x10, access="ro"),
        Register("SR2", 0x14, fields=[
            Field("REGLPS", 8, access="ro", reset=1), Field("REGLPF", 9, access="ro"),
            Field("VOSF", 10, access="ro"), Field("PVDO", 11, 5, access="ro"),
        ]),
        Register("SCR", 0x18, access="wo"),
        *(Register(f"PUCR{port}", 0x20 + 8 * n) for n, port in enumerate("ABCDEFGHI")),
        *(Register(f"PDCR{port}", 0x24 + 8 * n) for n, port in enumerate("ABCDEFGHI")),
        Register("CR5", 0x80, fields=[
            Field("R1MODE", 8, reset=1, doc="0: boost mode, needed above 80 MHz."),
        ]),
    )  # fmt: skip

    def regulate(self, value: int) -> None:
        """CR1 was written."""
        self.set("SR2", "REGLPF", self.get("CR1", "LPR"))


class F7Pwr(Stm32Peripheral):
    """PWR of the STM32F746 (ST RM0385 4.4). Low-power modes are registers without effect."""

    registers = RegisterMap(
        Register("CR1", 0x00, on_write="regulate", fields=[
            Field("LPDS", 0), Field("PDDS", 1), Field("CSBF", 3, access="wo"), Field("PVDE", 4),
            Field("PLS", 5, 3), Field("DBP", 8), Field("FPDS", 9), Field("LPUDS", 10),
            Field("MRUDS", 11), Field("ADCDC1", 13),
            Field("VOS", 14, 2, reset=3, doc="3: scale 1, for the highest frequencies."),
            Field("ODEN", 16, doc="Over-drive, needed above 180 MHz: CSR1.ODRDY follows."),
            Field("ODSWEN", 17, doc="Switch to over-drive, when it is ready."),
            Field("UDEN", 18, 2),
        ]),
        Register("CSR1", 0x04, fields=[
            Field("WUIF", 0, access="ro"), Field("SBF", 1, access="ro"),
            Field("PVDO", 2, access="ro"), Field("BRR", 3, access="ro"), Field("EIWUP", 8),
            Field("BRE", 9), Field("VOSRDY", 14, access="ro", reset=1),
            Field("ODRDY", 16, access="ro"), Field("ODSWRDY", 17, access="ro"),
            Field("UDRDY", 18, 2, access="w1c"),
        ]),
        Register("CR2", 0x08), Register("CSR2", 0x0C),
    )  # fmt: skip

    def regulate(self, value: int) -> None:
        """CR1 was written."""
        is_on = self.get("CR1", "ODEN")
        self.set("CSR1", "ODRDY", is_on)
        self.set("CSR1", "ODSWRDY", is_on & self.get("CR1", "ODSWEN"))


class H7Pwr(Stm32Peripheral):
    """PWR of the STM32H743 (ST RM0433, "PWR registers"). Low-power modes have no effect.

    The supply is chosen by the first store to CR3 after a power-up, which clears SCUEN.
    """

    registers = RegisterMap(
        Register("CR1", 0x00, reset=0xF000C000),
        Register("CSR1", 0x04, access="ro", fields=[
            Field("PVDO", 4), Field("ACTVOSRDY", 13, reset=1), Field("ACTVOS", 14, 2, reset=1),
            Field("AVDO", 16),
        ]),
        Register("CR2", 0x08),
        Register("CR3", 0x0C, fields=[
            Field("BYPASS", 0), Field("LDOEN", 1, reset=1), Field("SCUEN", 2, access="ro", reset=1),
            Field("VBE", 8), Field("VBRS", 9), Field("USB33DEN", 24), Field("USBREGEN", 25),
            Field("USB33RDY", 26, access="ro"),
        ]),
        Register("CPUCR", 0x10),
        Register("D3CR", 0x18, on_write="regulate", fields=[
            Field("VOSRDY", 13, access="ro", reset=1),
            Field("VOS", 14, 2, reset=1, doc="3: scale 1, for the highest frequencies."),
        ]),
        Register("WKUPCR", 0x20, access="wo"), Register("WKUPFR", 0x24, access="ro"),
        Register("WKUPEPR", 0x28),
    )  # fmt: skip

    def write_register(self, offset: int, size: int, value: int) -> None:
        """A store of the core."""
        old, is_open = self.values["CR3"], self.get("CR3", "SCUEN")
        super().write_register(offset, size, value)
        if offset == self.registers["CR3"].offset:
            self.set("CR3", "SCUEN", 0)
            if not is_open:
                self.values["CR3"] = self.values["CR3"] & ~3 | old & 3

    def regulate(self, value: int) -> None:
        """D3CR was written; 0 is reserved, and with over-drive (SYSCFG) the voltage stays."""
        syscfg = self.bus.registers_at(SYSCFG)
        boosted = isinstance(syscfg, Stm32Peripheral) and syscfg.get("PWRCR", "ODEN")
        if boosted or not self.get("D3CR", "VOS"):
            self.set("D3CR", "VOS", self.get("CSR1", "ACTVOS"))
        self.set("CSR1", "ACTVOS", self.get("D3CR", "VOS"))
