"""A core on bare Unicorn: just enough to run the runtime's tests without covp's virtual device."""

import unicorn
from unicorn import arm_const, riscv_const

from covp.device.base import Stop
from covp.errors import DeviceFault
from covp.platform_file import Platform


class StandIn:
    """read, write, execute."""

    def __init__(self, platform: Platform) -> None:
        self.arm = platform.core.architecture == "arm"
        if self.arm:
            self.engine = unicorn.Uc(unicorn.UC_ARCH_ARM, unicorn.UC_MODE_THUMB)
            model = getattr(arm_const, f"UC_CPU_ARM_{platform.core.unicorn_cpu}")
            self.engine.ctl_set_cpu_model(model)
            self.pc = arm_const.UC_ARM_REG_PC
        else:
            self.engine = unicorn.Uc(unicorn.UC_ARCH_RISCV, unicorn.UC_MODE_RISCV32)
            self.pc = riscv_const.UC_RISCV_REG_PC
        for region in platform.memory:
            self.engine.mem_map(region.start, region.bytes)

    def read(self, address: int, size: int) -> bytes:
        return bytes(self.engine.mem_read(address, size))

    def write(self, address: int, data: bytes) -> None:
        self.engine.mem_write(address, data)
        self.engine.ctl_flush_tb()

    def execute(self, entry: int, stop: int, timeout: float | None = None) -> Stop:
        try:
            self.engine.emu_start(entry | self.arm, stop, int((timeout or 5) * 1e6))
        except unicorn.UcError as error:
            raise DeviceFault(str(error), pc=self.engine.reg_read(self.pc)) from None
        pc = self.engine.reg_read(self.pc)
        if pc != stop:
            raise DeviceFault("timeout", pc=pc)
        return Stop(pc)

    def reset(self) -> None: ...
