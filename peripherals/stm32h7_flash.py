"""The flash controller of the STM32H743 (ST RM0433, chapter 4), as far as clocks need it."""

from __future__ import annotations

from covp.hardware.registers import Field, Register, RegisterMap
from covp.peripherals._stm32 import Stm32Peripheral


class Stm32H7Flash(Stm32Peripheral):
    """FLASH: the access control register. The flash is written as memory, not by its registers."""

    registers = RegisterMap(
        Register("ACR", 0x00, fields=[
            Field("LATENCY", 0, 4, reset=7, doc="Wait states, of the AXI bus's clock."),
            Field("WRHIGHFREQ", 4, 2, reset=3, doc="Delay of programming."),
        ]),
    )  # fmt: skip
