"""The pins of STM32F7, H7 and L4+: all ports, one after the other.

Registers: ST RM0432 (STM32L4+) 8.4, RM0385 (STM32F74x) 6.4, RM0433 (STM32H743), "GPIO registers".
"""

from __future__ import annotations

from collections.abc import Callable

from covp.hardware.registers import Register, RegisterMap
from covp.peripherals._stm32 import Stm32Peripheral, is_clocked

_PORTS = "ABCDEFGHIJK"
_SPACING = 0x400
_OUTPUT, _ALTERNATE, _ANALOG = 1, 2, 3  # of MODER
# Of the debug port's pins: PA13 to PA15, PB3 and PB4.
_DEBUG_MODES = {"A": (0xFC000000, 0xA8000000), "B": (0x000003C0, 0x00000280)}
_DEBUG_RESETS = {
    "A": {"OSPEEDR": 0x0C000000, "PUPDR": 0x64000000},
    "B": {"OSPEEDR": 0x000000C0, "PUPDR": 0x00000100},
}


def _port(letter: str, base: int) -> list[Register]:
    resets = _DEBUG_RESETS.get(letter, {})
    return [
        Register(f"{letter}_MODER", base),
        Register(f"{letter}_OTYPER", base + 0x04),
        Register(f"{letter}_OSPEEDR", base + 0x08, reset=resets.get("OSPEEDR", 0)),
        Register(f"{letter}_PUPDR", base + 0x0C, reset=resets.get("PUPDR", 0)),
        Register(f"{letter}_IDR", base + 0x10, access="ro"),
        Register(f"{letter}_ODR", base + 0x14),
        Register(f"{letter}_BSRR", base + 0x18, access="wo"),
        Register(f"{letter}_LCKR", base + 0x1C),
        Register(f"{letter}_AFRL", base + 0x20),
        Register(f"{letter}_AFRH", base + 0x24),
        Register(f"{letter}_BRR", base + 0x28, access="wo"),
    ]


class Stm32Gpio(Stm32Peripheral):
    """Ports A to K. Levels in and out work; locks, pull resistors and strengths are kept only.

    Args:
        analog: pins are analog after reset (L4+, H7), not inputs (F7).
        clock: address of RCC's register whose bits 0, 1 ... give the ports A, B ... their clock.
        on_output: called with the port's letter, the pin and its level whenever an output changes.
    """

    size = _SPACING * len(_PORTS)
    registers = RegisterMap(
        *(r for n, letter in enumerate(_PORTS) for r in _port(letter, _SPACING * n))
    )

    def __init__(
        self,
        analog: bool = False,
        clock: int | None = None,
        on_output: Callable[[str, int, bool], None] | None = None,
    ) -> None:
        self.analog, self.on_output, self._enable = analog, on_output, clock
        super().__init__()

    def reset(self) -> None:
        """As after power-on; nothing drives the pins."""
        super().reset()
        for letter in _PORTS:
            debug, modes = _DEBUG_MODES.get(letter, (0, 0))
            self.values[f"{letter}_MODER"] = modes | (~debug & 0xFFFFFFFF if self.analog else 0)
        self._inputs = dict.fromkeys(_PORTS, 0)
        self._outputs = dict.fromkeys(_PORTS, 0)

    # -- outside ------------------------------------------------------------------------------

    def drive(self, port: str, pin: int, level: bool) -> None:
        """Something outside puts ``pin`` of ``port``, a letter, to a level."""
        self._inputs[port] = self._inputs[port] & ~(1 << pin) | level << pin

    def outputs(self, port: str) -> int:
        """The levels of a port's outputs, one bit each; 0 for other pins."""
        return self.values[f"{port}_ODR"] & self._pins(port, _OUTPUT)

    def alternate(self, port: str, pin: int) -> int | None:
        """The number of a pin's alternate function; None where it has another mode."""
        if not self._pins(port, _ALTERNATE) >> pin & 1:
            return None
        register = "AFRL" if pin < 8 else "AFRH"
        return self.values[f"{port}_{register}"] >> 4 * (pin % 8) & 15

    def _pins(self, port: str, mode: int) -> int:
        modes = self.values[f"{port}_MODER"]
        return sum(1 << pin for pin in range(16) if modes >> 2 * pin & 3 == mode)

    # -- registers ----------------------------------------------------------------------------

    def has_clock(self, offset: int) -> bool:
        """Whether the port is switched on in RCC."""
        return is_clocked(self, self._enable, offset // _SPACING)

    def write_register(self, offset: int, size: int, value: int) -> None:
        """A store of the core."""
        super().write_register(offset, size, value)
        port = _PORTS[offset // _SPACING]
        if offset % _SPACING & ~3 in (0x18, 0x28):
            self._set(port, self.values[f"{port}_BSRR"], self.values[f"{port}_BRR"])
        self._report(port)

    def read_register(self, offset: int, size: int) -> int:
        """A load of the core; analog pins read 0."""
        if offset % _SPACING & ~3 == 0x10:
            port = _PORTS[offset // _SPACING]
            others = ~self._pins(port, _OUTPUT) & ~self._pins(port, _ANALOG)
            self.values[f"{port}_IDR"] = self.outputs(port) | self._inputs[port] & others
        return super().read_register(offset, size)

    def _set(self, port: str, set_reset: int, reset: int) -> None:
        """BSRR: the upper half clears, and where both halves are 1 the pin is set (8.4.7)."""
        levels = self.values[f"{port}_ODR"] & ~(set_reset >> 16) & ~reset
        self.values[f"{port}_ODR"] = (levels | set_reset) & 0xFFFF
        self.values[f"{port}_BSRR"] = self.values[f"{port}_BRR"] = 0

    def _report(self, port: str) -> None:
        changed = self._outputs[port] ^ self.outputs(port)
        self._outputs[port] = self.outputs(port)
        for pin in range(16):
            if changed >> pin & 1 and self.on_output is not None:
                self.on_output(port, pin, bool(self._outputs[port] >> pin & 1))
