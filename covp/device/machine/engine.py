"""The Unicorn engine of a core: how it is opened, its registers, its exceptions."""

from __future__ import annotations

import functools
import mmap

from unicorn import arm_const, riscv_const
from unicorn import unicorn_const as uc
from unicorn.unicorn_py3.unicorn import Uc, UcError

from covp.base.dependencies import demand_version
from covp.chip.cores import Core
from covp.chip.isa import ARCHITECTURES
from covp.errors import DeviceError

_RISCV_FS_INITIAL = 1 << 13
_THUMB = 1 << 24
_CODE_BYTES = 1 << 30
_OTHER_BYTES = 128 << 20
"""An ample bound of an engine's own structures, the reserve (reserve.h), and what is used while
the engine is made."""
_MOST_BYTES = _CODE_BYTES + _OTHER_BYTES


@functools.cache
def register_id(architecture: str, name: str) -> int:
    """Return Unicorn's number of an architecture's register, by its name in `covp.chip.isa`."""
    constants = arm_const if architecture == "arm" else riscv_const
    return int(getattr(constants, ARCHITECTURES[architecture].emulator_name(name)))


@functools.cache
def register_ids(architecture: str) -> dict[str, int]:
    """Return Unicorn's numbers of the registers that every debugger shows, by name."""
    return {name: register_id(architecture, name) for name in ARCHITECTURES[architecture].shown}


def new_engine(architecture: int, mode: int, code_bytes: int = _CODE_BYTES) -> Uc:
    """Return an engine of Unicorn.

    Args:
        architecture, mode: Unicorn's numbers.
        code_bytes: of the buffer for translated code, in the address space; memory is used as code
            is translated.

    Raises:
        CovpError: this version of Unicorn gives wrong results.
        DeviceError: there is too little address space, where Unicorn would end the process.
    """
    demand_version("unicorn")
    size = code_bytes + _OTHER_BYTES
    access = mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC
    try:
        mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, access).close()
    except OSError as error:
        raise DeviceError(
            f"the emulator needs {_MOST_BYTES >> 20} MB of address space for each core: "
            f"{error.strerror}; "
            "raise the limit (ulimit -v), or close sessions that are not needed"
        ) from None
    engine = Uc(architecture, mode)
    engine.ctl_set_tcg_buffer_size(code_bytes)
    return engine


def open_engine(core: Core, virtual_tlb: bool = True) -> Uc:
    """Return a new engine for the core, nothing mapped.

    Args:
        virtual_tlb: a UC_HOOK_TLB_FILL hook sets the permissions of pages; needed for fast stores.

    Raises:
        DeviceError: the emulator does not know the core; or see `new_engine`.
    """
    if core.architecture == "x86":
        raise DeviceError(
            f"the virtual device cannot run code for {core.name}, this machine: use device host"
        )
    try:
        if core.architecture == "arm":
            # UC_MODE_MCLASS would silently give a Cortex-M33 whatever the model says.
            engine = new_engine(uc.UC_ARCH_ARM, uc.UC_MODE_THUMB)
            engine.ctl_set_cpu_model(getattr(arm_const, f"UC_CPU_ARM_{core.unicorn_cpu}"))
        else:
            engine = new_engine(uc.UC_ARCH_RISCV, uc.UC_MODE_RISCV32)
            engine.ctl_set_cpu_model(getattr(riscv_const, f"UC_CPU_RISCV32_{core.unicorn_cpu}"))
        if virtual_tlb:
            engine.ctl_set_tlb_mode(uc.UC_TLB_VIRTUAL)
    except (AttributeError, UcError) as error:
        raise DeviceError(f"the emulator cannot be a {core.name}: {error}") from None
    return engine


def reset_core(engine: Uc, core: Core, stack_top: int) -> None:
    """Zero the general registers, set sp to the top of the stack and enable the FPU if any."""
    for name, number in register_ids(core.architecture).items():
        if name == "xpsr":
            engine.reg_write(number, _THUMB)  # no flags, outside of an IT block
        elif name != "zero":
            engine.reg_write(number, stack_top if name == "sp" else 0)
    if core.architecture == "riscv" and core.has("fpu"):
        mstatus = register_id("riscv", "mstatus")
        engine.reg_write(mstatus, engine.reg_read(mstatus) | _RISCV_FS_INITIAL)


def read_registers(engine: Uc, architecture: str) -> dict[str, int]:
    """Return all general registers and the pc."""
    return {name: engine.reg_read(id) for name, id in register_ids(architecture).items()}
