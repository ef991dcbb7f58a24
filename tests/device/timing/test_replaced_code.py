"""Other code at the same addresses takes the cycles that it takes on a new device."""

from __future__ import annotations

import itertools

import pytest

from covp.chip.platform_file import Platform, load_platform
from covp.device.virtual import VirtualDevice
from covp.evaluation.calibration.measure import assemble

RISCV = {
    "load": "lw a1, 0(s1)",
    "sum": "addi a1, a1, 1",
    "use": "lw a1, 0(s1)\n addi a1, a1, 1",
    "flash": "la a1, start\n lw a1, 0(a1)",
}
ARM = {
    "load": "ldr r1, [r4]",
    "sum": "adds r1, #1",
    "use": "ldr r1, [r4]\n adds r1, #1",
    "flash": "ldr r1, =start\n ldr r1, [r1]",
}
TEXTS = {
    "riscv": """li s1, {ram}
 li s0, 20
1: {body}
 addi s0, s0, -1
 bnez s0, 1b
end: j end
 nop""",
    "arm": """ldr r4, ={ram}
 movs r5, #20
1: {body}
 subs r5, #1
 bne 1b
end: b end
 nop""",
}


def cycles(device: VirtualDevice, platform: Platform, body: str) -> int:
    """Cycles of twenty rounds, of code that takes the place of what was there."""
    text = TEXTS[platform.core.architecture].format(ram=platform.ram.start, body=body)
    code, labels = assemble(platform, text)
    device.write(platform.flash.start, code)
    return device.execute(platform.flash.start, labels["end"]).cycles or 0


@pytest.mark.parametrize(("flash", "ram"), [(0, 1), (2, 0)])
@pytest.mark.parametrize("name", ["cv32e40p", "cortex-m4"])
def test_cycles_are_those_of_a_new_device(name, flash, ram):
    platform = load_platform(name).with_waits(flash, ram)
    bodies = RISCV if platform.core.architecture == "riscv" else ARM
    alone: dict[str, int] = {}
    for body in bodies.values():
        with VirtualDevice(platform) as device:
            alone[body] = cycles(device, platform, body)
    for first, second in itertools.product(bodies.values(), repeat=2):
        with VirtualDevice(platform) as device:
            cycles(device, platform, first)
            again = cycles(device, platform, second)
        assert abs(again - alone[second]) <= 2, (first, second)  # fetches may be ahead at the start
