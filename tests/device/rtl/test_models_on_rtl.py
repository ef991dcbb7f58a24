"""Models on real cores: the virtual device counts the very instructions that the RTL retires."""

from __future__ import annotations

import pytest

import covp
from covp.chip.platform_file import load_platform
from covp.device.rtl.cores import rtl_names
from covp.evaluation import Evaluation, Sample, build, run
from tests.device.rtl.conftest import need_rtl

COUNTER = """
#include <stdint.h>
#define READ(csr) ({ uint32_t value; __asm__ volatile("csrr %0, " csr : "=r"(value)); value; })

uint32_t between[2];

void spin(int times)
{
    uint32_t cycles = READ("mcycle"), instructions = READ("minstret");
    while (times--)
        __asm__ volatile("mulh a5, a5, a5" ::: "a5");
    between[1] = READ("minstret") - instructions;
    between[0] = READ("mcycle") - cycles;
}
"""


def _both(model: str, platform: str) -> tuple[Evaluation, Evaluation]:
    made = build(model, load_platform(platform))
    sample = Sample.random(made.graph, 0)
    return run(made, sample, device="rtl"), run(made, sample, device="virtual")


def _check(model: str, platform: str) -> None:
    rtl, virtual = _both(model, platform)
    assert rtl.matches_reference
    ours, theirs = rtl.profile, virtual.profile
    assert ours.instructions == theirs.instructions
    assert [e.instructions for e in ours.layers] == [e.instructions for e in theirs.layers]
    assert ours.between.instructions == theirs.between.instructions
    layers = sum(e.cycles or 0 for e in ours.layers)
    assert layers + (ours.between.cycles or 0) == ours.cycles
    assert ours.cycles is not None and ours.instructions is not None
    assert ours.cycles > ours.instructions
    assert str(ours.sources.cycles).startswith(f"rtl by {platform}, zero wait states")


@pytest.mark.costly
def test_toycar_on_cv32e40p(cv32e40p):
    _check("toycar", cv32e40p)


@pytest.mark.slow
@pytest.mark.parametrize("model", ["toycar", "kws"])
@pytest.mark.parametrize("core", [name for name in rtl_names() if name != "serv"])
def test_models(core, model):
    need_rtl(core)
    _check(model, core)


def test_counts_are_those_of_the_core_itself(cv32e40p):
    """A program's mcycle and minstret advance as the device's figures do."""
    found = {}
    with covp.Session(cv32e40p, device="rtl") as session:
        module = session.load_c(COUNTER)
        for times in (1, 100):
            module["spin"](times)
            stop = session.sync()
            own = session.read(module.address("between"), 8)
            found[times] = (
                int.from_bytes(own[:4], "little"),
                int.from_bytes(own[4:], "little"),
                stop.cycles or 0,
                stop.instructions or 0,
            )
    cycles, instructions, all_cycles, all_instructions = (
        after - before for before, after in zip(found[1], found[100], strict=True)
    )
    assert instructions == all_instructions == 99 * 3
    assert cycles == all_cycles > 99 * 7  # a MULH takes 5 cycles, a taken branch 3
