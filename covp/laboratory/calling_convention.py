"""The registers that a C function has to leave as they were."""

from __future__ import annotations

from unicorn import arm_const, riscv_const

from covp.device.virtual import VirtualDevice
from covp.errors import KernelError
from covp.laboratory.kernel import Kernel

# Procedure Call Standard for the Arm Architecture, 6.1.1 and 6.1.2.1; RISC-V calling convention,
# table 1 (gp and tp belong to the program as a whole).
_ARM = (*(f"R{n}" for n in range(4, 12)), "SP")
_ARM_FLOATS = tuple(f"S{n}" for n in range(16, 32))
_RISCV = {"sp": 2, "gp": 3, "tp": 4, "s0": 8, "s1": 9} | {f"s{n}": 16 + n for n in range(2, 12)}
_RISCV_FLOATS = {"fs0": 8, "fs1": 9} | {f"fs{n}": 16 + n for n in range(2, 12)}


def kept_registers(device: VirtualDevice) -> dict[str, int]:
    """The present values of the registers that a function has to keep, by name."""
    core = device.platform.core
    if core.architecture == "arm":
        names = _ARM + (_ARM_FLOATS if core.has("fpu") else ())
        ids = {name.lower(): getattr(arm_const, f"UC_ARM_REG_{name}") for name in names}
    else:
        whole = {name: f"X{n}" for name, n in _RISCV.items()}
        floats = {name: f"F{n}" for name, n in _RISCV_FLOATS.items()} if core.has("fpu") else {}
        ids = {
            name: getattr(riscv_const, f"UC_RISCV_REG_{number}")
            for name, number in (whole | floats).items()
        }
    return {name: int(device.engine.reg_read(number)) for name, number in ids.items()}


def check_kept(kernel: Kernel, before: dict[str, int], device: VirtualDevice) -> None:
    """Compare with the values when the kernel was entered.

    Raises:
        KernelError: the kernel returned with another value in one of them.
    """
    for name, value in kept_registers(device).items():
        if value != before[name]:
            raise KernelError(
                f"{kernel.name} returns with 0x{value:x} in {name}, which a function has to keep; "
                f"it was 0x{before[name]:x}: name {name} among the clobbers of inline assembly, or "
                "save it"
            )
