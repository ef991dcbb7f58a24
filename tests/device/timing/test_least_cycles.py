"""The fewest cycles of a layer: against figures worked out from manuals, and against runs."""

from __future__ import annotations

import msgspec
import pytest

from covp.chip.platform_file import load_platform
from covp.chip.platform_file.caches import Cache
from covp.device.timing.peak import least_cycles
from covp.evaluation import evaluate


def test_a_core_that_issues_one_instruction_adds_up() -> None:
    """Cortex-M4: an SMLAD of two products, and a word of a row of LDRs, each take a cycle."""
    found = least_cycles(load_platform("cortex-m4"), 64_000, 400, 2_000)
    assert found is not None and found.is_serial
    assert found.multiply == pytest.approx(32_000, rel=0.01)
    assert found.load == pytest.approx(600, rel=0.02)
    assert found.memory == 0 and found.cycles == int(found.multiply + found.load)


def test_a_core_that_issues_two_takes_the_longer_one() -> None:
    found = least_cycles(load_platform("cortex-m7"), 64_000, 40_000, 2_000)
    assert found is not None and not found.is_serial
    assert found.cycles == int(max(found.multiply, found.load))


def test_slow_memories_are_waited_for() -> None:
    """A word of flash has 2 wait states; a line of 32 bytes takes 8 transfers of 3 cycles."""
    platform = load_platform("cortex-m4")
    flash, ram = (msgspec.structs.replace(one, wait_states=2) for one in platform.memory)
    slow = msgspec.structs.replace(platform, memory=(flash, ram))
    found = least_cycles(slow, 0, 400, 4_000)
    assert found is not None and found.memory == (400 + 4_000) / 4 * 2
    cache = Cache("data", "data", 1024)
    flash = msgspec.structs.replace(flash, caches=("data",))
    cached = msgspec.structs.replace(slow, memory=(flash, ram), caches=(cache,))
    found = least_cycles(cached, 0, 0, 4_000)
    assert found is not None and found.memory == (4_000 - 1_024) / 32 * 24


def test_what_there_is_no_bound_of() -> None:
    assert least_cycles(load_platform("host"), 1_000, 10, 10) is None


@pytest.mark.costly
@pytest.mark.parametrize("platform", ["cortex-m4", "nucleo-l4r5zi", "cortex-m7", "riscv32"])
def test_no_layer_is_below_it(platform: str) -> None:
    run = evaluate("toycar", platform)
    layers = run.record().layers
    assert len(layers) == 10
    for layer in layers:
        assert layer.least is not None and layer.cycles is not None
        assert 0 < layer.least.cycles <= layer.cycles


def test_floats_and_units_have_none() -> None:
    run = evaluate("kws", "riscv32", ["qconv2d"])
    assert {bound is None for bound, layer in zip(run.least_cycles, run.program.layers, strict=True)
            if layer.target != "cpu"} == {True}  # fmt: skip
    assert any(run.least_cycles)
