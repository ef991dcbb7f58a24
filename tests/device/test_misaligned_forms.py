"""Misaligned accesses are faults wherever the address comes from, on every core that traps."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import covp.device.machine.counter as counter
from covp.chip.platform_file import load_platform, platform_names
from covp.device.virtual import VirtualDevice
from covp.errors import DeviceFault
from tests.conftest import Loaded, load
from tests.device.misaligned import (
    FORMS,
    POINTERS,
    SIZES,
    Step,
    first_misaligned,
    text_of,
    write_pointers,
)

TRAPPING = sorted(
    name
    for name in platform_names()
    if load_platform(name).core.needs_alignment and "dual" not in name
)


def check(name: str, steps: list[Step], rounds: int, has_address: bool = True) -> None:
    platform = load_platform(name)
    ram = platform.ram.start
    loaded = load(name, text_of(steps, rounds, ram, platform.core.architecture == "arm"))
    with loaded.device as device:
        write_pointers(device, ram)
        expected = first_misaligned(steps, rounds, ram)
        if expected is None:
            loaded.run()
            return
        turn, n, address = expected
        with pytest.raises(DeviceFault) as caught:
            loaded.run()
        fault, at = caught.value, loaded.labels[f"access_{n}"] & ~1
        assert (fault.kind, fault.pc) == ("misaligned access", at)
        if has_address:
            assert (fault.address, fault.size) == (address, SIZES[steps[n].access])
        assert device.instructions == stepped(name, loaded, at, turn)


def stepped(name: str, loaded: Loaded, at: int, turn: int) -> int:
    """Instructions before the one at an address is entered in a round, one by one."""
    with VirtualDevice(load_platform(name)) as device:
        start = device.platform.flash.start
        device.write(start, loaded.device.read(start, 0x400))
        write_pointers(device, device.platform.ram.start)
        device.core.write_register("pc", loaded.labels["start"])
        for count in range(10_000):
            if device.core.read_register("pc") & ~1 == at:
                if not turn:
                    return count
                turn -= 1
            device.step()
        raise AssertionError("never entered")


def runs_on(name: str, steps: list[Step]) -> bool:
    core = load_platform(name).core
    return (
        core.has("mull") or core.architecture == "arm" or all(s.kind != "multiplied" for s in steps)
    )


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", TRAPPING)
def test_every_form(name, form):
    if runs_on(name, FORMS[form]):
        check(name, FORMS[form], rounds=9)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["riscv32", "cortex-m0plus"])
def test_every_form_without_inlined_calls(name, form, monkeypatch):
    """There Unicorn itself ends the run of a Cortex-M0+, and does not say at which address."""
    monkeypatch.setattr(counter, "INLINING", False)
    check(name, FORMS[form], rounds=9, has_address=name == "riscv32")


accesses = st.sampled_from(list(SIZES))
NUMBERS = {
    "loaded": st.integers(0, POINTERS - 1),
    "masked": st.sampled_from([3, 4, 6, 7, 12, 15]),
    "multiplied": st.integers(0, 12),
    "added": st.sampled_from([0, 0, 2, 4, 8]),
}
steps = st.lists(
    st.one_of(
        [st.builds(Step, st.just(kind), number, accesses) for kind, number in NUMBERS.items()]
    ),
    min_size=1,
    max_size=8,
)


@pytest.mark.parametrize("name", ["riscv32", "cortex-m0plus"])
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps=steps, rounds=st.integers(1, 12))
def test_random_loops(name, steps, rounds):
    """The first access that is misaligned, and no other, is a fault: kind, pc, address, count."""
    check(name, steps, rounds)


DOUBLES = ("vpush {d8}", "vstmdb sp!, {d8}", "vpop {d8}", "vstr d8, [sp, #8]", "vldr d8, [sp, #8]",
           "strd r0, r1, [sp, #8]", "ldrd r0, r1, [sp, #8]")  # fmt: skip


@pytest.mark.parametrize("instruction", DOUBLES)
def test_doubles_need_the_alignment_of_words(program, instruction):
    """On a page that is met for the first time, too, which the emulator does byte by byte."""
    loaded = program("cortex-m4", f"start:\n{instruction}\n{instruction}\nend: nop\n")
    for place in (0x20000F9C, 0x20000FA0):
        loaded.device.core.write_register("sp", place)
        assert loaded.run().instructions == 2
