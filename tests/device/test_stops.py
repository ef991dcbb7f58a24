"""A run may end after any instruction: as single steps do, with the same registers and counts."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate

import pytest
from unicorn.riscv_const import UC_RISCV_REG_MEPC

from covp.chip.platform_file import load_platform
from covp.device.virtual import VirtualDevice
from covp.errors import DeviceFault
from tests.conftest import Loaded

# what covp executes itself, as it may let a pending interrupt in, and what it does not
RISCV = {
    "csrr a2, mstatus": "73260030",
    "csrw mstatus, s0": "73100430",
    "csrrw a0, mstatus, a1": "73950530",
    "csrs mstatus, a0": "73200530",
    "csrc mstatus, a0": "73300530",
    "csrwi mstatus, 8": "73500430",
    "csrsi mstatus, 8": "73600430",
    "csrci mstatus, 8": "73700430",
    "csrr a2, mie": "73264030",
    "csrw mie, s0": "73104430",
    "csrs mie, s0": "73204430",
    "csrc mie, s0": "73304430",
    "csrwi mie, 1": "73d04030",
    "csrsi mie, 1": "73e04030",
    "csrci mie, 1": "73f04030",
    "csrr a2, minstret": "732620b0",
    "csrr a2, mip": "73264034",
    "mret": "73002030",
    "addi a0, a0, 1": "13051500",
    "c.addi a0, 1": "0505",
}
ARM = {
    "cpsie i": "62b6",
    "cpsie f": "61b6",
    "cpsie if": "63b6",
    "cpsid i": "72b6",
    "msr primask, r0": "80f31088",
    "msr basepri, r0": "80f31188",
    "msr basepri_max, r0": "80f31288",
    "msr faultmask, r0": "80f31388",
    "mrs r1, primask": "eff31081",
    "adds r0, #1": "0130",
}
NOT_ARMV6M = ("cpsie f", "cpsie if", "msr basepri, r0", "msr basepri_max, r0", "msr faultmask, r0")
ARMV6M = {name: code for name, code in ARM.items() if name not in NOT_ARMV6M}


@pytest.mark.parametrize(
    "platform, code",
    [
        pytest.param(platform, code, id=f"{platform}: {name}")
        for platform, codes in (("riscv32", RISCV), ("stm32l4r5", ARM), ("cortex-m0plus", ARMV6M))
        for name, code in codes.items()
    ],
)
@pytest.mark.parametrize("before", [0, 1, 2])
@pytest.mark.parametrize("is_last", [False, True])
def test_a_run_ends_after_any_instruction(
    platform: str, code: str, before: int, is_last: bool
) -> None:
    """With instructions before it, and after it or none: erased memory follows, which is none."""
    add = "13051500" if platform == "riscv32" else "0130"
    parts = [bytes.fromhex(part) for part in (*[add] * before, code, *[add] * (not is_last))]
    start = load_platform(platform).flash.start + 0x100
    ends = [start + end for end in accumulate(map(len, parts), initial=0)]
    for count, end in enumerate(ends[1:], 1):
        with _loaded(platform, start, parts, ends[before + 1]) as device:
            stop = device.execute(start, end)
            assert (stop.pc, stop.instructions) == (end, count)
            found = device.core.registers() | {"pc": end}
        with _loaded(platform, start, parts, ends[before + 1]) as device:
            device.core.write_register("pc", start | device.core.thumb)
            for _ in range(count):
                device.step()
            assert found == device.core.registers() | {"pc": device.core.read_register("pc") & ~1}
            assert device.instructions == count


def _loaded(platform: str, start: int, parts: list[bytes], returns_to: int) -> VirtualDevice:
    device = VirtualDevice(load_platform(platform))
    device.write(start, b"".join(parts))
    if platform == "riscv32":
        device.core.engine.reg_write(UC_RISCV_REG_MEPC, returns_to)
    return device


def test_a_step_over_a_jump_to_an_even_address(program: Callable[..., Loaded]) -> None:
    """Armv7-M has no Arm state: the fault comes with the next step, as it does in a run."""
    loaded = program("cortex-m4", "start: ldr r0, =0x08000100\n bx r0\nend: b end\n.ltorg")
    device = loaded.device
    device.core.write_register("pc", loaded.labels["start"])
    for _ in range(2):
        device.step()
    with pytest.raises(DeviceFault, match="illegal instruction") as caught:
        device.step()
    assert caught.value.pc == 0x08000100


@pytest.mark.parametrize("name", ["cortex-m0plus", "cortex-m4", "riscv32"])
def test_a_step_past_the_end_of_memory(name: str) -> None:
    """It is a fault, and no step without an end."""
    with VirtualDevice(load_platform(name)) as device:
        end, thumb = device.platform.flash.end, device.core.thumb
        device.write(end - 4, bytes.fromhex("00bf00bf" if thumb else "01000100"))
        device.core.write_register("pc", (end - 2) | thumb)
        with pytest.raises(DeviceFault, match="unmapped fetch") as caught:
            for _ in range(2):
                device.step()
        assert caught.value.address == end and device.instructions == 1
