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
from covp.evaluation.calibration.measure import assemble
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


def two_memories(low: int, high: int) -> Platform:
    """A Cortex-M4 whose RAM is two memories of 32 KB, with these wait states."""
    platform = load_platform("cortex-m4")
    first = msgspec.structs.replace(platform.ram, size=1 << 15, wait_states=low)
    second = msgspec.structs.replace(
        first, name="high", start=first.start + (1 << 15), wait_states=high
    )
    return msgspec.structs.replace(platform, memory=(platform.flash, first, second))


def cycles_at(platform: Platform, access: str, offsets: list[int], mode: str) -> int:
    """Cycles of an access at each offset from the border of two memories."""
    border = platform.ram.start + (1 << 15)
    words = "\n".join(f" .word {border + offset}" for offset in offsets)
    text = (
        f" ldr r6, =table\n movs r5, #{len(offsets)}\n"
        f"1: ldr r4, [r6]\n adds r6, #4\n nop\n nop\n {access}\n nop\n nop\n subs r5, #1\n bne 1b\n"
        f"end: b end\n .ltorg\n .align 2\ntable:\n{words}\n nop"
    )
    code, labels = assemble(platform, text)
    with VirtualDevice(platform) as device:
        device.write(platform.flash.start, code)
        if mode == "segments":
            device.counts.keep_segments(lambda cycles: cycles)
        if mode == "traffic":
            device.counts.count_traffic()
        return device.execute(platform.flash.start, labels["end"]).cycles or 0


@pytest.mark.parametrize("mode", ["plain", "segments", "traffic"])
@pytest.mark.parametrize("waits", [(0, 1), (1, 0), (2, 5), (3, 3)], ids=str)
@pytest.mark.parametrize(
    ("access", "words"),
    [
        ("ldmia r4, {r0, r1, r2, r3}", 4),
        ("stmia.w r4, {r0, r1, r2, r8}", 4),
        ("ldrd r0, r1, [r4]", 2),
        ("strd r0, r1, [r4]", 2),
        ("vldmia r4, {s0-s4}", 5),
    ],
)
def test_each_word_of_an_access_waits_for_its_memory(access, words, waits, mode):
    """Whatever the first run met, and whether or not its words are in one memory."""
    for offsets in (
        [-8] * 20,
        [-64] * 10 + [-8] * 10,
        [-4] * 10 + [0] * 10,
        [0] * 5 + [-4] * 10 + [-64] * 5,
    ):
        low = sum(min(words, -offset // 4) for offset in offsets)
        high = words * len(offsets) - low
        least = cycles_at(two_memories(0, 0), access, offsets, mode)
        expected = least + low * waits[0] + high * waits[1]
        assert cycles_at(two_memories(*waits), access, offsets, mode) == expected
