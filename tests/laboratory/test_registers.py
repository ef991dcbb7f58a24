"""Inline assembly that changes, or uses, registers without saying so; and its twins."""

from __future__ import annotations

import numpy as np
import pytest

import covp
from covp.errors import KernelError
from covp.testing import Kernel, check_registers

SOURCE = """
#include <stdint.h>
#ifdef __arm__
#define SET(register) __asm volatile("movs " register ", #7\\n"
#define KEPT "r5"
#define USE_EMPTY(out) __asm volatile("mov %0, r12" : "=r"(out))
#else
#define SET(register) __asm volatile("li " register ", 7\\n"
#define KEPT "s3"
#define USE_EMPTY(out) __asm volatile("mv %0, t3" : "=r"(out))
#endif
int32_t lacks_clobber(int32_t x) { SET(KEPT) :::); return x + 1; }
int32_t has_clobber(int32_t x) { SET(KEPT) ::: KEPT); return x + 1; }
uint32_t uses_empty(uint32_t x) { uint32_t r; USE_EMPTY(r); return x + (r & 1); }
static int32_t calls;
void fill(int32_t *out, int32_t n)
{
    for (int32_t i = 0; i < n; i++) out[i] = out[i] * 3 + calls;
    calls++;
}
float mix(const float *x, int32_t n)
{
    float a = 0, b = 1, c = 2;
    for (int32_t i = 0; i < n; i++) { a += x[i] * b; b -= a * c; c += x[i]; }
    return a + b + c;
}
"""


@pytest.fixture(
    scope="module", params=["stm32l4r5", "cortex-m0plus", "cortex-m33", "riscv32", "riscv32f"]
)
def module(request):
    with covp.Session(request.param) as session:
        yield session.load_c(SOURCE)


def test_a_clobber_that_is_missing(module):
    kept = "r5" if module.session.platform.core.architecture == "arm" else "s3"
    kernel = Kernel(module["lacks_clobber"])
    with pytest.raises(KernelError, match=f"^lacks_clobber returns with 0x7 in {kept}, which"):
        check_registers(kernel, (1,))
    check_registers(Kernel(module["has_clobber"]), (1,))


def test_a_register_that_nothing_was_put_into(module):
    with pytest.raises(KernelError, match=r"^uses_empty uses a register .*: the result is \d, and"):
        check_registers(Kernel(module["uses_empty"]), (1,))


def test_kernels_that_keep_them(module):
    out = np.arange(5, dtype=np.int32)
    check_registers(Kernel(module["fill"]), (out, 5))
    assert out.tolist() == [0, 1, 2, 3, 4]
    Kernel(module["fill"])(out, 5)
    assert out.tolist() == [0, 3, 6, 9, 12]  # no call of the check has counted
    check_registers(Kernel(module["mix"]), (np.linspace(-1, 1, 9, dtype=np.float32), 9))
