"""System configuration and debug support of STM32, as far as start-up code and debuggers look."""

from __future__ import annotations

from covp.hardware.registers import Field, Register, RegisterMap
from covp.peripherals._stm32 import Stm32Peripheral, is_clocked

_H7_PWR, _H7_APB4ENR = 0x58024800, 0x580244F4
_EXTICR = [Register(f"EXTICR{n + 1}", 0x08 + 4 * n) for n in range(4)]


class L4Syscfg(Stm32Peripheral):
    """SYSCFG of the STM32L4+ (ST RM0432 9.2); registers without effect."""

    size = 0x30
    registers = RegisterMap(
        Register("MEMRMP", 0x00),
        Register("CFGR1", 0x04, reset=0x7C000001),
        *_EXTICR,
        Register("SCSR", 0x18, fields=[Field("SRAM2ER", 0), Field("SRAM2BSY", 1, access="ro")]),
        Register("CFGR2", 0x1C), Register("SWPR", 0x20), Register("SKR", 0x24, access="wo"),
        Register("SWPR2", 0x28),
    )  # fmt: skip


class F7Syscfg(Stm32Peripheral):
    """SYSCFG of the STM32F746 (ST RM0385 7.2); the compensation cell is ready when it is on."""

    registers = RegisterMap(
        Register("MEMRMP", 0x00), Register("PMC", 0x04), *_EXTICR,
        Register("CMPCR", 0x20, on_write="compensate", fields=[
            Field("CMP_PD", 0), Field("READY", 8, access="ro"),
        ]),
    )  # fmt: skip

    def compensate(self, value: int) -> None:
        """CMPCR was written."""
        self.set("CMPCR", "READY", self.get("CMPCR", "CMP_PD"))


class H7Syscfg(Stm32Peripheral):
    """SYSCFG of the STM32H743 (ST RM0433, "SYSCFG register description"), behind a clock gate."""

    registers = RegisterMap(
        Register("PMCR", 0x04), *_EXTICR,
        Register("CCCSR", 0x20, on_write="compensate", fields=[
            Field("EN", 0), Field("CS", 1), Field("READY", 8, access="ro"), Field("HSLV", 16),
        ]),
        Register("CCVR", 0x24, access="ro"), Register("CCCR", 0x28),
        Register("PWRCR", 0x2C, fields=[
            Field("ODEN", 0, on_write="boost", doc="Over-drive: with scale 1, VOS0."),
        ]),
        Register("PKGR", 0x124, access="ro"),
    )  # fmt: skip

    def has_clock(self, offset: int) -> bool:
        """SYSCFGEN."""
        return is_clocked(self, _H7_APB4ENR, 1)

    def compensate(self, value: int) -> None:
        """CCCSR was written."""
        self.set("CCCSR", "READY", self.get("CCCSR", "EN"))

    def boost(self, value: int) -> None:
        """ODEN was set, which only scale 1 and the LDO allow."""
        pwr = self.bus.registers_at(_H7_PWR)
        if isinstance(pwr, Stm32Peripheral) and (
            pwr.get("CSR1", "ACTVOS") != 3 or not pwr.get("CR3", "LDOEN")
        ):
            self.set("PWRCR", "ODEN", 0)


class Dbgmcu(Stm32Peripheral):
    """DBGMCU (ST RM0385 40.16, RM0432 57.14, RM0433 60.5): who the chip is; freezing has no effect.

    Args:
        idcode: device and revision.
    """

    registers = RegisterMap(
        Register("IDCODE", 0x00, access="ro"), Register("CR", 0x04),
        *(Register(f"FREEZE{n}", 0x08 + 4 * n) for n in range(3)),
    )  # fmt: skip

    def __init__(self, idcode: int) -> None:
        self._idcode = idcode
        super().__init__()

    def reset(self) -> None:
        """A debugger's settings outlive a reset."""
        kept = {name: value for name, value in self.values.items() if value}
        super().reset()
        self.values |= {**kept, "IDCODE": self._idcode}


class H7Dbgmcu(Dbgmcu):
    """DBGMCU of the STM32H743 and, 12 KB on, the control of its trace funnel (SWTF)."""

    size = 0x4000
    registers = RegisterMap(
        Register("IDCODE", 0x00, access="ro"), Register("CR", 0x04),
        Register("APB3FZ1", 0x34), Register("APB1LFZ1", 0x3C), Register("APB2FZ1", 0x4C),
        Register("APB4FZ1", 0x54), Register("SWTF_CTRL", 0x3000),
    )  # fmt: skip
