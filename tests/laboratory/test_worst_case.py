"""The search for the most expensive input, on kernels whose worst case is known."""

from __future__ import annotations

import itertools
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import strategies as st

import covp
from covp.errors import UsageError
from covp.testing import Kernel, worst_case
from covp.testing.arrays import arrays

PLATFORMS = ["cortex-m4", "cortex-m0plus", "riscv32"]
SOURCE = """
#include <stdint.h>
void sort(int32_t *x, int32_t n)
{
    for (int32_t i = 1; i < n; i++) {
        int32_t v = x[i], j = i;
        for (; j > 0 && x[j - 1] > v; j--) x[j] = x[j - 1];
        x[j] = v;
    }
}
int32_t equal(const uint16_t *a, const uint16_t *b, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        if (a[i] != b[i]) return 0;
    return 1;
}
uint32_t quotients(const uint32_t *a, const uint32_t *b, int32_t n)
{
    uint32_t sum = 0;
    for (int32_t i = 0; i < n; i++) sum += a[i] / (b[i] | 1u);
    return sum;
}
uint32_t bits(uint32_t x)
{
    volatile uint32_t count = 0;
    while (x) { x &= x - 1; count++; }
    return count;
}
static int32_t calls;
int32_t warms_up(int32_t x) { volatile int32_t n = calls++ ? 0 : 100; while (n) n--; return x; }
"""


@pytest.fixture(scope="module", params=PLATFORMS)
def module(request):
    with covp.Session(request.param) as session:
        yield session.load_c(SOURCE)


def cycles(kernel: Kernel, *arguments: object) -> int:
    kernel(*arguments)
    return kernel.latest.cycles or 0


@pytest.mark.costly
def test_insertion_sort(module):
    kernel, n = Kernel(module["sort"]), 10
    known = cycles(kernel, np.arange(n, 0, -1).astype(np.int32), n)
    small = [cycles(kernel, np.array(p, np.int32), 5) for p in itertools.permutations(range(5))]
    assert max(small) == cycles(kernel, np.arange(5, 0, -1).astype(np.int32), 5)  # by brute force
    worst = worst_case(kernel, (arrays("int32", n), n), examples=800)
    assert 0.95 * known <= worst.count <= known
    assert worst.median < 0.9 * worst.count
    assert worst.calls == 800


def test_an_early_out(module):
    kernel, n = Kernel(module["equal"]), 12
    known = cycles(kernel, np.arange(n).astype(np.uint16), np.arange(n).astype(np.uint16), n)
    seeds = st.integers(0, 2**32 - 1)  # no extremes: two draws are never alike
    draws = seeds.map(lambda s: np.random.default_rng(s).integers(0, 2**16, n).astype(np.uint16))
    worst = worst_case(kernel, (draws, draws, n), examples=400)
    assert worst.count == known


@pytest.mark.costly
def test_divisions(module):
    kernel, n = Kernel(module["quotients"]), 3
    sizes = [0, *((1 << bits) - 1 for bits in range(1, 33))]
    known = max(
        cycles(kernel, np.full(n, a, np.uint32), np.full(n, b, np.uint32), n)
        for a in sizes[::2] + sizes[-2:]
        for b in sizes[:3]
    )  # brute force by sizes
    worst = worst_case(kernel, (arrays("uint32", n), arrays("uint32", n), n))
    assert worst.count >= 0.95 * known
    assert cycles(kernel, *worst.arguments) == worst.count


def test_a_number(module):
    kernel = Kernel(module["bits"])
    worst = worst_case(kernel, st.integers(0, 2**32 - 1), "instructions", examples=600)
    kernel(2**32 - 1)
    assert worst.count >= 0.95 * (kernel.latest.instructions or 0)


def test_calls_start_from_the_same_state(module):
    worst = worst_case(Kernel(module["warms_up"]), st.integers(0, 9), "instructions", examples=40)
    assert worst.count == worst.median > 300


@pytest.mark.costly
def test_the_result_is_a_test(module, tmp_path):
    """It runs in a process of its own, and fails where the kernel is slower."""
    kernel = Kernel(module["sort"])
    worst = worst_case(kernel, (arrays("int32", 6), 6), examples=200, seed=1)
    file = tmp_path / "test_worst.py"
    for limit, status in ((worst.count, 0), (worst.count - 1, 1)):
        file.write_text(worst.test.replace(f"<= {worst.count}", f"<= {limit}"))
        command = [sys.executable, "-c", f"exec(open({str(file)!r}).read())\n"
                   "test_the_worst_case_of_sort()"]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert bool(done.returncode) == bool(status), done.stderr
    assert f"{worst.count} cycles for (np.array([" in str(worst)


def test_a_search_is_the_same_again(module):
    kernel, inputs = Kernel(module["sort"]), (arrays("int32", 6), 6)
    one, other = (worst_case(kernel, inputs, examples=120, seed=5) for _ in range(2))
    assert one.test == other.test and str(one) == str(other)


def test_usage(module):
    with pytest.raises(UsageError, match="examples=3: a search needs 4 or more"):
        worst_case(Kernel(module["sort"]), (arrays("int32", 6), 6), examples=3)
