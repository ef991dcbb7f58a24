"""What models of ST's microcontrollers share: reserved bits, parts of words, clock trees."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from covp.hardware.peripheral import Peripheral

_AHB_DIVISORS = (2, 4, 8, 16, 64, 128, 256, 512)
_APB_DIVISORS = (2, 4, 8, 16)


def is_clocked(model: Peripheral, register: int | None, bit: int = 0) -> bool:
    """Whether a ``bit`` of RCC's enable ``register``, an address, is set; None: it has no gate."""
    if register is None:
        return True
    with model.bus.uncounted():
        return bool(model.bus.load(register, 4) >> bit & 1)


class Stm32Peripheral(Peripheral):
    """A peripheral that answers as ST's silicon: a vendor's start-up code never faults.

    Reserved bits and words, read-only and write-only registers ignore the wrong access (a load
    gives 0), and so do all without a clock; registers can be accessed as words, halfwords and
    bytes. Nothing depends on time: what takes silicon a while (an oscillator's start, a page's
    erasure) is done at once.
    """

    size = 0x400

    def has_clock(self, offset: int) -> bool:
        """Whether RCC lets the bus's clock through to the register at an ``offset``."""
        return True

    def read_register(self, offset: int, size: int) -> int:
        """The value of a load of the core."""
        register = self.registers.at(offset & ~3)
        if register is None or register.access == "wo" or not self.has_clock(offset):
            return 0
        word = super().read_register(register.offset, 4)
        return word >> 8 * (offset & 3) & (1 << 8 * size) - 1

    def write_register(self, offset: int, size: int, value: int) -> None:
        """A store of the core."""
        register = self.registers.at(offset & ~3)
        if register is None or register.access == "ro" or not self.has_clock(offset):
            return
        shift = 8 * (offset & 3)
        written = ((1 << 8 * size) - 1) << shift
        kept = self.values[register.name] & ~written & ~register.cleared_by_ones
        word = value << shift & written | kept
        super().write_register(register.offset, 4, word & register.defined_bits)

    def needs_exact_time(self, offset: int, is_store: bool) -> bool:
        """Never."""
        return False


class Rcc(Stm32Peripheral):
    """Reset and clock control: what is switched on is ready, and SWS follows SW if that is ready.

    As in silicon the PLL is ready only if its source is, the external oscillator only where the
    board has one, and the system clock's source cannot be switched off. A core clock that is too
    fast for the flash's wait states or the voltage is a fault. Clock gates
    have an effect on peripherals that look at them (`is_clocked`); reset requests and interrupt
    flags are registers without effect.

    Args:
        hse_hz: frequency of the board's external oscillator; 0: it has none.

    A chip's class sets:
        ready: what is ready when it is on: a register and its two fields.
        sources: what CFGR.SW selects, by value: "MSI", "HSI", "HSE" or "PLL".
        pll_field: register and field that select the PLL's source.
        pll_sources: what it selects, by value; "" for nothing.
    """

    ready: ClassVar[Sequence[tuple[str, str, str]]]
    sources: ClassVar[Sequence[str]]
    pll_field: ClassVar[tuple[str, str]] = ("PLLCFGR", "PLLSRC")
    pll_sources: ClassVar[Sequence[str]]

    def __init__(self, hse_hz: int = 0) -> None:
        self._hse_hz = hse_hz
        super().__init__()

    # -- called by on_write -------------------------------------------------------------------

    def settle(self, value: int) -> None:
        """An oscillator or the PLL was switched, or the system clock's source selected."""
        in_use = self.sources[self.get("CFGR", "SWS")]
        for clock in (in_use, self._pll_source if in_use == "PLL" else ""):
            if clock:
                self.set("CR", f"{clock}ON", 1)
        for register, on, ready in self.ready:
            works = on != "HSEON" or self._hse_hz > 0
            self.set(register, ready, int(works and self.get(register, on)))
        if not (self._is_ready(self._pll_source) and self.pll_locks):
            self.set("CR", "PLLRDY", 0)
        wanted = self.get("CFGR", "SW")
        if wanted < len(self.sources) and self._is_ready(self.sources[wanted]):
            self.set("CFGR", "SWS", wanted)
        self._check_limits()

    def _check_limits(self) -> None:
        """Raises DeviceFault: silicon would read wrong instructions or leave its specification."""
        for clock, hertz, most, why in self.limits():
            if hertz > most:
                raise self.fault(
                    f"{clock} is {hertz / 1e6:g} MHz; with {why} it may be {most / 1e6:g} MHz"
                )

    def limits(self) -> Iterable[tuple[str, int, int, str]]:
        """Clocks, their frequencies, the greatest ones as flash and power are set, what limits."""
        raise NotImplementedError

    def field_at(self, base: int, register: str, field: str) -> int | None:
        """A field of another of the chip's peripherals; None where the device does not have it."""
        found = self.bus.registers_at(base)
        return found.get(register, field) if isinstance(found, Peripheral) else None

    def clear_reset_flags(self, value: int) -> None:
        """CSR.RMVF was written."""
        self.values["CSR"] &= 0x007FFFFF

    # -- frequencies --------------------------------------------------------------------------

    @property
    def system_hz(self) -> int:
        """SYSCLK."""
        return self._hz(self.sources[self.get("CFGR", "SWS")])

    @property
    def core_hz(self) -> int:
        """HCLK, of the core, memories and the AHB."""
        return self.system_hz // self.divisor("CFGR", "HPRE")

    def bus_hz(self, number: int) -> int:
        """PCLK of APB 1 or 2."""
        return self.core_hz // self.divisor("CFGR", f"PPRE{number}")

    def divisor(self, register: str, field: str) -> int:
        """What a prescaler's field of four bits (AHB) or three (APB) divides by."""
        found = self.registers[register][field]
        divisors = _AHB_DIVISORS if found.width == 4 else _APB_DIVISORS
        divided = found.get(self.values[register])
        return divisors[divided - len(divisors)] if divided >= len(divisors) else 1

    def _hz(self, clock: str) -> int:
        if clock == "PLL":
            return self.pll_hz(self._hz(self._pll_source))
        fixed = {"": 0, "HSE": self._hse_hz, "HSI": self.hsi_hz(), "CSI": 4_000_000}
        return fixed[clock] if clock in fixed else self.msi_hz()

    def pll_hz(self, source_hz: int) -> int:
        """What the PLL makes of its source as a system clock."""
        raise NotImplementedError

    @property
    def pll_locks(self) -> bool:
        """Whether the PLL can do what it is set to."""
        return True

    def hsi_hz(self) -> int:
        """The internal oscillator."""
        return 16_000_000

    def msi_hz(self) -> int:
        """The multi-speed internal oscillator, where there is one."""
        raise NotImplementedError

    # -- the clock tree -----------------------------------------------------------------------

    @property
    def _pll_source(self) -> str:
        return self.pll_sources[self.get(*self.pll_field)]

    def _is_ready(self, clock: str) -> bool:
        return bool(clock) and bool(self.get("CR", f"{clock}RDY"))
