"""`CycleCounter`: how many cycles a real core took, by its own counter, read by a debugger."""

from __future__ import annotations

from typing import Protocol

from covp.chip.cores import Core
from covp.device.stop import Source
from covp.errors import DeviceError

# Arm DDI0403E (ARMv7-M) C1.6.5 and C1.8: the counter stops while the core is halted.
_DEMCR, _TRCENA = 0xE000EDFC, 1 << 24
_DWT_CTRL, _CYCCNTENA = 0xE0001000, 1
_DWT_CYCCNT = 0xE0001004
_WORD = 1 << 32


class Debugger(Protocol):
    """The part of a debugger that reading the counter needs."""

    def read_memory(self, address: int, size: int) -> bytes:
        """Return the bytes of memory or of registers on the bus."""
        ...

    def write_memory(self, address: int, data: bytes) -> None:
        """Store them."""
        ...

    def read_register(self, name: str) -> int:
        """Any register by name."""
        ...


class CycleCounter:
    """DWT_CYCCNT (Armv7-M and later) or mcycle (RISC-V).

    Without one (Cortex-M0+, an emulator that has none) the result is None.
    DWT_CYCCNT has 32 bits: a run longer than 2^32 cycles is counted modulo that.
    """

    def __init__(self, core: Core, device: Debugger) -> None:
        self._arm = core.architecture == "arm"
        self._device = device
        self._usable: bool | None = None if core.isa.counts_cycles else False
        self._before = 0

    @property
    def source(self) -> Source | None:
        """The counter; None where the core has none."""
        if self._usable is False:
            return None
        return Source("measured", "DWT_CYCCNT" if self._arm else "mcycle")

    def forget(self) -> None:
        """Forget that the counter is on, as the core was reset."""
        if self._usable:
            self._usable = None

    def disable(self) -> None:
        """Ignore the counter: it does not count cycles here (QEMU counts host time)."""
        self._usable = False

    def start(self) -> None:
        """Note where the counter stands; switches it on the first time."""
        if self._usable is None:
            self._usable = self._enable()
        if self._usable:
            self._before = self._now()

    def stop(self) -> int | None:
        """Return the cycles since `start`; None where the core cannot tell."""
        if not self._usable:
            return None
        return (self._now() - self._before) % (_WORD if self._arm else _WORD * _WORD)

    def _enable(self) -> bool:
        try:
            if not self._arm:
                self._now()
                return True
            self._write(_DEMCR, self._read(_DEMCR) | _TRCENA)
            self._write(_DWT_CTRL, self._read(_DWT_CTRL) | _CYCCNTENA)
            return bool(self._read(_DWT_CTRL) & _CYCCNTENA)
        except DeviceError:
            return False

    def _now(self) -> int:
        if self._arm:
            return self._read(_DWT_CYCCNT)
        return self._device.read_register("mcycle") | self._device.read_register("mcycleh") << 32

    def _read(self, address: int) -> int:
        return int.from_bytes(self._device.read_memory(address, 4), "little")

    def _write(self, address: int, value: int) -> None:
        self._device.write_memory(address, value.to_bytes(4, "little"))
