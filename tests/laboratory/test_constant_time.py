"""Times that tell something about the values, and kernels whose times do not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import strategies as st

import covp
from covp.errors import UsageError
from covp.testing import Kernel, TimeDifference, constant_time
from covp.testing.arrays import arrays

PLATFORMS = ["cortex-m4", "cortex-m0plus", "riscv32"]
SOURCE = """
#include <stdint.h>
int32_t equal_early(const uint8_t *a, const uint8_t *b, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        if (a[i] != b[i]) /* bug */
            return 0;
    return 1;
}
int32_t equal_all(const uint8_t *a, const uint8_t *b, int32_t n)
{
    volatile uint8_t differs = 0;
    for (int32_t i = 0; i < n; i++)
        differs |= a[i] ^ b[i];
    return differs == 0;
}
volatile uint32_t sink;
static __attribute__((noinline)) uint32_t times(uint32_t a, uint32_t b) { return sink = a * b; }
uint32_t power(uint32_t base, uint32_t key)
{
    uint32_t result = 1;
    for (int32_t bit = 0; bit < 8; bit++) {
        if (key >> bit & 1) /* bug: key */
            result = times(result, base);
        base *= base;
    }
    return result;
}
static uint32_t seen;
uint32_t counts_calls(const uint8_t *a)
{
    uint32_t sum = a[0];
    for (volatile uint32_t i = 0; i < seen; i++) sum += i;
    seen++;
    return sum;
}
uint32_t rare(const int32_t *x, int32_t n)
{
    uint32_t odd = 0;
    for (int32_t i = 1; i < n; i++)
        if (x[i] == x[i - 1] && x[i] > 1000) /* bug: rare */
            sink = odd += 3;
    return odd;
}
uint32_t divided(const uint32_t *x, int32_t n)
{
    uint32_t sum = 0;
    for (int32_t i = 0; i < n; i++)
        sum += 4000000000u / (x[i] | 1u); /* bug: division */
    return sum;
}
"""
TAGS = arrays("uint8", 16)


@pytest.fixture(scope="module", params=PLATFORMS)
def module(request):
    with covp.Session(request.param) as session:
        yield session.load_c(SOURCE)


def line_of(text: str) -> str:
    numbers = [n for n, line in enumerate(SOURCE.splitlines(), 1) if text in line]
    assert len(numbers) == 1
    return f"module.c:{numbers[0]}"


def found(module, name: str, inputs, of="instructions", **options) -> TimeDifference:
    kernel = Kernel(module[name])
    with pytest.raises(TimeDifference) as caught:
        constant_time(kernel, inputs, of, **options)
    difference = caught.value
    for arguments, count in zip(difference.inputs, difference.counts, strict=True):
        kernel(*arguments)  # the oracle: an ordinary call
        assert getattr(kernel.latest, of) == count
    assert difference.counts[0] != difference.counts[1]
    return difference


def test_an_early_out(module):
    difference = found(module, "equal_early", (TAGS, TAGS, 16))
    assert line_of("/* bug */") in difference.where
    assert str(difference).startswith("equal_early takes ")
    one, other = difference.inputs
    changed = [(a != b).sum() for a, b in zip(one[:2], other[:2], strict=True)]
    assert sorted(changed) == [0, 1]  # a single element
    assert np.count_nonzero(np.concatenate([*one[:2], *other[:2]])) == 1


@pytest.mark.parametrize("of", ["instructions", "cycles"])
def test_a_comparison_without_branches(module, of):
    count = constant_time(Kernel(module["equal_all"]), (TAGS, TAGS, 16), of, examples=150)
    kernel = Kernel(module["equal_all"])
    kernel(np.zeros(16, np.uint8), np.ones(16, np.uint8), 16)
    assert count == getattr(kernel.latest, of)


def test_bits_of_a_key(module):
    difference = found(module, "power", (st.just(3), st.integers(0, 255)))
    assert line_of("/* bug: key */") in difference.where
    assert sorted(pair[1] for pair in difference.inputs)[0] == 0


def test_equal_neighbours_are_found_by_moving_elements(module):
    """The odds of a draw are below 1 : 100,000; the strategy has no extremes that would help."""
    seeds = st.integers(0, 2**32 - 1)
    draws = seeds.map(
        lambda seed: np.random.default_rng(seed).integers(-(2**31), 2**31, 8).astype(np.int32)
    )
    difference = found(module, "rare", (draws, 8))
    assert line_of("/* bug: rare */") in difference.where


def test_calls_start_from_the_same_state(module):
    kernel = Kernel(module["counts_calls"])
    kernel(np.zeros(1, np.uint8))
    assert constant_time(kernel, (arrays("uint8", 1),), examples=30) > 5
    count = kernel.latest.instructions
    kernel(np.zeros(1, np.uint8))
    assert count != kernel.latest.instructions


@pytest.mark.costly
def test_a_division_takes_time_by_its_operands():
    """Arm's SDIV and UDIV end early (Cortex-M4 TRM, 3.3.1: 2 to 12 cycles)."""
    with covp.Session("cortex-m4") as session:
        module = session.load_c(SOURCE)
        inputs = (arrays("uint32", 3), 3)
        constant_time(Kernel(module["divided"]), inputs, "instructions", examples=100)
        difference = found(module, "divided", inputs, "cycles")
    assert line_of("/* bug: division */") in difference.where


def test_a_function_of_the_runtime_is_named_with_its_caller():
    with covp.Session("cortex-m0plus") as session:
        difference = found(session.load_c(SOURCE), "divided", (arrays("uint32", 3), 3))
    assert "__aeabi_uidiv" in difference.where
    assert ", called by divided+0x" in difference.where
    assert line_of("/* bug: division */") in difference.where


def test_long_inputs_are_described_by_their_differences(module):
    tags = arrays("uint8", 200)
    difference = found(module, "equal_early", (tags, tags, 200))
    assert "for one input and " in str(difference) or len(str(difference)) < 500


def test_usage(module):
    kernel = Kernel(module["equal_all"])
    with pytest.raises(UsageError, match='of=\'time\': "instructions" or "cycles"'):
        constant_time(kernel, (TAGS, TAGS, 16), "time")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="inputs must be a Hypothesis strategy"):
        constant_time(kernel, [TAGS, TAGS, 16])


TWO_BYTES = """
#include <stdint.h>
int32_t opens(const uint8_t *x) { if (x[0] != 0xA5) return 0;
    if (x[1] != 0x5A)
        return 1;
    volatile int32_t n = 0;
    for (int32_t i = 0; i < 99; i++) n += i;
    return 2; }
"""


@pytest.mark.parametrize("platform", ["cortex-m4", "cortex-m0plus", "riscv32"])
def test_what_was_seen_is_said(platform):
    with covp.Session(platform) as session:
        kernel = Kernel(session.load_c(TWO_BYTES)["opens"])
        elsewhere = (arrays("uint8", 2, high=100),)
        none = constant_time(kernel, elsewhere, examples=40)
        kernel(np.zeros(2, np.uint8))
        assert none == kernel.latest.instructions and none.one_way == ("module.c:3",)
        count = f"{int(none)} instructions in 40 examples"
        assert str(none) == f"{count}, branch at module.c:3 seen one way only"
        first = (arrays("uint8", 2, low=0xA5, high=0xA5),)
        assert "module.c:3, module.c:4" in str(constant_time(kernel, first, examples=40))
        with pytest.raises(TimeDifference):
            constant_time(kernel, (arrays("uint8", 2, low=0xA5, high=0xA6),), examples=200)
