"""`CoreRegisters`: every register of the emulated core that debuggers request, by name."""

from __future__ import annotations

import functools

from covp.chip.cores import Core
from covp.chip.isa.arm import ARM
from covp.chip.isa.riscv import (
    COUNTER_CSRS,
    FLOAT_CSRS,
    IDENTITY_CSRS,
    MISA,
    RISCV,
    STATE_CSRS,
)
from covp.device.machine.engine import register_id, register_ids
from covp.device.virtual import VirtualDevice
from covp.errors import DeviceError, near_misses

_WORD = 0xFFFFFFFF
_ARM_SPECIAL = ("msp", "psp", "control", "primask")
_ARM_SPECIAL_7M = ("basepri", "faultmask")
_ZERO_CSRS = (*IDENTITY_CSRS, 0xF15)  # mconfigptr
_COUNTERS = (*COUNTER_CSRS, 0xC00, 0xC01, 0xC02, 0xC80, 0xC81, 0xC82)


class CoreRegisters:
    """The registers of a device that is halted.

    Names: r0..r12, sp, lr, pc, xpsr, msp, psp, control, primask, basepri, faultmask, fpscr,
    s0..s31 on Arm; zero, ra, sp ... t6, pc, f0..f31, csr0x300 and so on on RISC-V.
    Floats are their 32 bits.
    """

    def __init__(self, device: VirtualDevice) -> None:
        self._device = device
        self._ids = _ids(device.platform.core)
        self._counters = {f"csr0x{n:x}": n for n in _COUNTERS if self._is_riscv}
        self._constants = _constant_csrs(device.platform.core)

    @property
    def _is_riscv(self) -> bool:
        return self._device.platform.core.architecture == "riscv"

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all registers."""
        return (*self._ids, *self._counters, *sorted(self._constants))

    def read(self, name: str) -> int:
        """Return the register's 32 bits. Raises DeviceError: no such register."""
        if name in self._constants:
            return self._constants[name]
        if name in self._counters:
            return self._device.core.csrs.read(self._counters[name])
        return int(self._device.core.engine.reg_read(self._number(name))) & _WORD

    def write(self, name: str, value: int) -> None:
        """Change a register; read-only ones keep their value. Raises DeviceError."""
        if name in self._constants:
            return
        if name in self._counters:
            if self._counters[name] < 0xC00:
                self._device.core.csrs.write(self._counters[name], value & _WORD)
            return
        if name == "pc" and not self._is_riscv:
            value |= 1  # the core has only Thumb state
        if name != "zero":
            self._device.core.engine.reg_write(self._number(name), value & _WORD)

    def _number(self, name: str) -> int:
        if name not in self._ids:
            raise DeviceError(f"no register {name!r}:", hint=near_misses(name, self.names))
        return self._ids[name]


def _constant_csrs(core: Core) -> dict[str, int]:
    if core.architecture != "riscv":
        return {}
    return {f"csr0x{n:x}": 0 for n in _ZERO_CSRS} | {f"csr0x{MISA:x}": core.isa.misa}


@functools.cache
def _ids(core: Core) -> dict[str, int]:
    ids = dict(register_ids(core.architecture))
    number = functools.partial(register_id, core.architecture)
    if core.architecture == "arm":
        extra = [*_ARM_SPECIAL, *(_ARM_SPECIAL_7M if not core.isa.is_armv6m else ())]
        if core.has("fpu"):
            extra += ["fpscr", *ARM.floats]
        return ids | {name: number(name) for name in extra}
    csrs = STATE_CSRS
    if core.has("fpu"):
        csrs = csrs | FLOAT_CSRS
        ids |= {f"f{n}": number(name) for n, name in enumerate(RISCV.floats)}
    return ids | {f"csr0x{n:x}": number(name) for n, name in csrs.items()}
