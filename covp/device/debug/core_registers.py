"""`CoreRegisters`: every register of the emulated core that debuggers request, by name."""

from __future__ import annotations

import functools

from unicorn import arm_const, riscv_const

from covp.chip.cores import Core
from covp.device.machine.engine import register_ids
from covp.device.virtual import VirtualDevice
from covp.errors import DeviceError, near_misses

_WORD = 0xFFFFFFFF
_ARM_SPECIAL = ("msp", "psp", "control", "primask")
_ARM_SPECIAL_7M = ("basepri", "faultmask")
# RISC-V privileged ISA 20211203, table 2.5; the counters are covp's own.
_CSRS = {
    0x300: "MSTATUS", 0x304: "MIE", 0x305: "MTVEC", 0x306: "MCOUNTEREN",
    0x340: "MSCRATCH", 0x341: "MEPC", 0x342: "MCAUSE", 0x343: "MBADADDR", 0x344: "MIP",
}  # fmt: skip
_FLOAT_CSRS = {0x001: "FFLAGS", 0x002: "FRM", 0x003: "FCSR"}
_MISA = 0x301
_ZERO_CSRS = (0xF11, 0xF12, 0xF13, 0xF14, 0xF15)  # mvendorid, marchid, mimpid, mhartid, mconfigptr
_COUNTERS = (0xB00, 0xB02, 0xB80, 0xB82, 0xC00, 0xC01, 0xC02, 0xC80, 0xC81, 0xC82)


class CoreRegisters:
    """Reads and writes registers of a device that is halted.

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
        """All of them."""
        return (*self._ids, *self._counters, *sorted(self._constants))

    def read(self, name: str) -> int:
        """32 bits. Raises DeviceError: no such register."""
        if name in self._constants:
            return self._constants[name]
        if name in self._counters:
            return self._device.counter_csrs.read(self._counters[name])
        return int(self._device.engine.reg_read(self._number(name))) & _WORD

    def write(self, name: str, value: int) -> None:
        """Change a register; read-only ones keep their value. Raises DeviceError."""
        if name in self._constants:
            return
        if name in self._counters:
            if self._counters[name] < 0xC00:
                self._device.counter_csrs.write(self._counters[name], value & _WORD)
            return
        if name == "pc" and not self._is_riscv:
            value |= 1  # the core has only Thumb state
        if name != "zero":
            self._device.engine.reg_write(self._number(name), value & _WORD)

    def _number(self, name: str) -> int:
        if name not in self._ids:
            raise DeviceError(f"no register {name!r}: {near_misses(name, self.names)}")
        return self._ids[name]


def _constant_csrs(core: Core) -> dict[str, int]:
    if core.architecture != "riscv":
        return {}
    return {f"csr0x{n:x}": 0 for n in _ZERO_CSRS} | {f"csr0x{_MISA:x}": core.isa.misa}


@functools.cache
def _ids(core: Core) -> dict[str, int]:
    ids = dict(register_ids(core.architecture))
    if core.architecture == "arm":
        extra = [*_ARM_SPECIAL, *(_ARM_SPECIAL_7M if not core.isa.is_armv6m else ())]
        if core.has("fpu"):
            extra += ["fpscr", *(f"s{number}" for number in range(32))]
        return ids | {name: getattr(arm_const, f"UC_ARM_REG_{name.upper()}") for name in extra}
    csrs = dict(_CSRS)
    if core.has("fpu"):
        csrs |= _FLOAT_CSRS
        ids |= {f"f{n}": getattr(riscv_const, f"UC_RISCV_REG_F{n}") for n in range(32)}
    return ids | {
        f"csr0x{number:x}": getattr(riscv_const, f"UC_RISCV_REG_{name}")
        for number, name in csrs.items()
    }
