"""`Kernel`: arrays that live on the device for a call."""

from __future__ import annotations

import numpy as np
import pytest

import covp
from covp.errors import UsageError
from covp.testing import Buffer, Kernel

SOURCE = """
#include <stdint.h>
int32_t dot(const int8_t *a, const int8_t *b, int32_t n)
{
    int32_t sum = 0;
    for (int32_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}
void twice(int16_t *x, int32_t n) { for (int32_t i = 0; i < n; i++) x[i] *= 2; }
void add(const int32_t *a, int32_t *sum) { *sum += *a; }
uint32_t where(const void *p) { return (uint32_t)p; }
typedef const int8_t weight;
int32_t first(weight *w) { return w[0]; }
"""


@pytest.fixture(scope="module", params=["cortex-m4", "cortex-m0plus", "riscv32"])
def module(request):
    with covp.Session(request.param) as session:
        yield session.load_c(SOURCE)


def test_numpy_in_and_numpy_out(module):
    a, b = np.arange(-3, 4).astype(np.int8), np.arange(7).astype(np.int8)
    dot = Kernel(module["dot"])
    assert dot(a, b, 7) == a.astype(int) @ b
    x = np.array([[1, -2], [3, 300]], np.int16)
    assert Kernel(module["twice"])(x, 4) is None
    assert x.tolist() == [[2, -4], [6, 600]]


def test_views_are_copied_back_into_their_places(module):
    x = np.arange(6, dtype=np.int16)
    Kernel(module["twice"])(x[::2], 3)
    assert x.tolist() == [0, 1, 4, 3, 8, 5]


def test_the_same_array_twice_is_one_piece_of_memory(module):
    x = np.array([21], np.int32)
    Kernel(module["add"])(x, x)
    assert x[0] == 42


@pytest.mark.parametrize("alignment, offset", [(1, 0), (4, 1), (4, 3), (64, 0), (32, 8)])
def test_placement(module, alignment, offset):
    buffer = Buffer(np.zeros(5, np.int8), alignment=alignment, offset=offset)
    assert Kernel(module["where"])(buffer) % alignment == offset


def instructions(kernel: Kernel, n: int) -> int:
    a = np.ones(n, np.int8)
    kernel(a, a, n)
    cost = kernel.latest
    assert cost.instructions is not None and cost.cycles is not None
    assert cost.cycles >= cost.instructions > 0
    return cost.instructions


def test_the_cost_is_that_of_the_function_alone(module):
    dot = Kernel(module["dot"])
    with pytest.raises(UsageError, match="dot was not called yet"):
        _ = dot.latest
    empty, half, whole = (instructions(dot, n) for n in (0, 20, 40))
    assert empty < 15 and empty < half < whole
    assert instructions(dot, 20) == half
    assert dot.calls == 4 and 0 < dot.code_bytes < 400


def test_memory_is_given_back(module):
    before = module.session.memory()
    Kernel(module["twice"])(np.ones(100, np.int16), 100)
    with pytest.raises(UsageError):
        Kernel(module["twice"])(np.ones(100, np.int8), 100)
    assert module.session.memory() == before


@pytest.mark.parametrize(
    "arguments, text",
    [
        ((np.zeros(3, np.int16), np.zeros(3, np.int8), 3), "argument a: const int8_t \\* does not"),
        ((np.zeros(3, np.int8),), "takes 3 arguments, not 1"),
        ((np.zeros(3, np.int8), np.zeros(3, np.int8), 1 << 40), "outside int32_t"),
        ((np.zeros(3, np.int8), [1, 2], 3), "needs a tensor, not a list"),
    ],
)
def test_wrong_arguments_are_refused(module, arguments, text):
    with pytest.raises(UsageError, match=text):
        Kernel(module["dot"])(*arguments)


def test_a_read_only_array_fits_const_pointers_only(module):
    x = np.ones(2, np.int16)
    x.flags.writeable = False
    with pytest.raises(UsageError, match="argument x is not const in C"):
        Kernel(module["twice"])(x, 2)
    weights = np.ones(2, np.int8)
    weights.flags.writeable = False
    assert Kernel(module["first"])(weights) == 1
