"""What accesses meet is seen by tables of pages, calls, or the emulator's hook: all count alike."""

from __future__ import annotations

import random

import msgspec
import pytest

import covp.device.machine.counter as counter
from covp.chip.platform_file import Platform, WaitStates, load_platform
from covp.device.machine.native_caches import uncached_waits
from covp.device.timing.trace import cost
from covp.device.virtual import VirtualDevice
from tests.conftest import load
from tests.device.rtl.memory_programs import memory_program


def slow_flash(name: str, waits: int) -> Platform:
    platform = load_platform(name)
    flash = (
        msgspec.structs.replace(one, wait_states=WaitStates(waits, waits))
        if one.kind == "flash"
        else one
        for one in platform.memory
    )
    return msgspec.structs.replace(platform, memory=tuple(flash))


def cycles_of(platform: Platform, text: str, traffic: bool) -> int | None:
    loaded = load(platform.core.name, text, device=VirtualDevice(platform))
    with loaded.device as device:
        if traffic:
            device.counts.count_traffic()
        stop = loaded.run()
        loaded.run()
        waits = uncached_waits(platform)
        assert cost(device.counts.trace(), device.core.timing, waits) == device.cycles
        return stop.cycles


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", ["ibex", "cv32e40p", "picorv32"])
def test_the_same_cycles(name, seed, monkeypatch):
    platform = slow_flash(name, 1 + seed % 2)
    text = memory_program(platform.core, random.Random(seed), platform.ram.start)
    inlined = cycles_of(platform, text, traffic=False)
    assert cycles_of(platform, text, traffic=True) == inlined
    monkeypatch.setattr(counter, "INLINING", False)
    assert cycles_of(platform, text, traffic=False) == inlined
