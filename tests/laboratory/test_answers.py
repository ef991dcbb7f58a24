"""Drivers of a peripheral that answers early, late or never: planted mistakes and their twins."""

from __future__ import annotations

import numpy as np
import pytest

import covp
from covp.errors import KernelError, UsageError
from covp.testing import Kernel, ScriptedPeripheral, answering, check_answers
from tests.accelerator.test_offload import network

BASE = 0x50000000
PLATFORMS = ["cortex-m4", "cortex-m0plus", "riscv32"]
SOURCE = """
#include <stdint.h>
#define REG(offset) (*(volatile uint32_t *)(0x50000000u + offset))
#define CTRL REG(0)
#define STATUS REG(4)
#define DATA REG(8)
#define TIMEOUT (-1)

int32_t waits(void)
{
    CTRL = 1;
    for (int i = 0; i < 10000; i++) if (STATUS & 1) return (int32_t)DATA;
    return TIMEOUT;
}
int32_t does_not_wait(void) { CTRL = 1; return (int32_t)DATA; /* bug */ }
int32_t waits_too_short(void)
{
    CTRL = 1;
    for (int i = 0; i < 20; i++) if (STATUS & 1) break;
    return (int32_t)DATA; /* bug */
}
int32_t waits_for_ever(void) { CTRL = 1; while (!(STATUS & 1)); /* bug */ return (int32_t)DATA; }
int32_t reads_once(void)
{
    uint32_t *status = (uint32_t *)0x50000004u;
    CTRL = 1;
    for (;;) if (*status & 1) return (int32_t)DATA; /* bug */
}
int32_t clears_late(void)
{
    CTRL = 1;
    STATUS = 0; /* bug */
    for (int i = 0; i < 10000; i++) if (STATUS & 1) return (int32_t)DATA;
    return TIMEOUT;
}
int32_t clears_first(void)
{
    STATUS = 0;
    CTRL = 1;
    for (int i = 0; i < 10000; i++) if (STATUS & 1) return (int32_t)DATA;
    return TIMEOUT;
}
int32_t reads_early(uint32_t *out)
{
    CTRL = 1;
    *out = DATA; /* bug */
    while (!(STATUS & 1));
    return 0;
}
"""


@pytest.fixture(scope="module", params=PLATFORMS)
def module(request):
    with covp.Session(request.param) as session:
        adc = ScriptedPeripheral(
            {"CTRL": 0, "STATUS": 4, "DATA": 8}, start="CTRL", ready=("STATUS", 1),
            answer={"DATA": 42}, after=30,
        )  # fmt: skip
        hardware = session.device.abilities.hardware
        assert hardware is not None
        hardware.attach(adc, BASE, "adc")
        yield session.load_c(SOURCE)


def line_of(text: str) -> str:
    numbers = [n for n, line in enumerate(SOURCE.splitlines(), 1) if text in line]
    assert len(numbers) == 1
    return f"module.c:{numbers[0]}"


def check(module, name, *arguments, expected=42, errors=(-1,), after=None):
    return check_answers(
        Kernel(module[name]), arguments, peripheral="adc", expected=expected, errors=errors,
        after=after, limit=150_000,
    )  # fmt: skip


@pytest.mark.parametrize("name", ["waits", "clears_first"])
def test_right_drivers(module, name):
    assert check(module, name) > 80
    assert Kernel(module[name])() == 42  # everything is as before


@pytest.mark.parametrize(
    "name, text",
    [
        ("does_not_wait", r"adc answers after 1 cycles: it returns -43, not 42"),
        ("waits_too_short", r"adc answers after \d+ cycles: it returns -43, not 42"),
        ("waits_for_ever", r"adc never answers: it does not end: .*adc\.STATUS"),
        ("reads_once", r"adc answers after \d+ cycles: it does not end: timeout"),
        ("clears_late", r"adc answers after 0 cycles: it returns -1, not 42"),
    ],
)
def test_planted_mistakes(module, name, text):
    with pytest.raises(KernelError, match=f"^{name}, when {text}") as found:
        check(module, name)
    if "not end" in text:
        assert line_of("while (!(STATUS & 1)); /*" if "ever" in name else "for (;;)") in str(
            found.value
        )


def test_what_is_expected_may_be_a_function(module):
    out = np.zeros(1, np.uint32)
    with pytest.raises(KernelError, match="adc answers after 1 cycles: expected= is False"):
        check(
            module, "reads_early", out, after=[0, 1, 500],
            expected=lambda call: call.arguments[0][0] == 42,
        )  # fmt: skip
    assert out[0] == 0


def test_an_answer_that_does_not_come_needs_an_error(module):
    with pytest.raises(KernelError, match="adc never answers: it returns -43, no error"):
        check(module, "waits_too_short", after=["never"])
    assert check(module, "waits_too_short", after=["never"], errors=()) == 1


@pytest.mark.parametrize("cycles", [0, 1, 50, 3000])
def test_the_time_of_an_answer(module, cycles):
    """The oracle is the number of cycles that the call takes."""
    device = module.session.device
    kernel = Kernel(module["waits"])
    with answering(device.peripherals["adc"][1], cycles):
        assert kernel() == 42
    spent = kernel.latest.cycles or 0
    assert cycles <= spent < cycles + 80
    assert kernel() == 42
    assert abs((kernel.latest.cycles or 0) - 60) < 60


@pytest.mark.parametrize("platform", ["cortex-m4", "riscv32"])
def test_the_driver_of_an_accelerator(platform):
    """covp's own driver waits for the unit, however long a job takes."""
    graph = network()
    program = covp.compile(graph, platform, accelerators=["qconv2d"])
    rng = np.random.default_rng(1)
    x = [rng.integers(-128, 128, tensor.shape).astype(np.int8) for tensor in graph.inputs]
    with covp.Session(platform) as session:
        model = session.load(program)
        right = model.run(*x)
        hardware = session.device.abilities.hardware
        assert hardware is not None
        (unit,) = (u for _, u in hardware.peripherals.values() if hasattr(u, "jobs"))
        for cycles in (0, 1, 7, 5000):
            with answering(unit, cycles):
                for got, want in zip(model.run(*x), right, strict=True):
                    np.testing.assert_array_equal(got, want)


def test_usage(module):
    with pytest.raises(UsageError, match=r"no peripheral 'dac' is on the bus; there are .*adc"):
        check_answers(Kernel(module["waits"]), peripheral="dac", expected=42)
    lonely = ScriptedPeripheral({"A": 0}, start="A", ready=("A", 1), answer={})
    with pytest.raises(UsageError, match="ScriptedPeripheral is on no bus"), answering(lonely, 1):
        pass
    adc = module.session.device.peripherals["adc"][1]
    with pytest.raises(UsageError, match="after"), answering(adc, -1):
        pass
