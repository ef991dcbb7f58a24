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
#if defined __arm__ && defined __ARM_FP
#define READ_MODES(to) __asm volatile("vmrs %0, fpscr" : "=r"(to))
#define WRITE_MODES(from) __asm volatile("vmsr fpscr, %0" :: "r"(from))
#define OTHER_MODES (1u << 24) /* flush to zero */
#elif defined __riscv_flen
#define READ_MODES(to) __asm volatile("frcsr %0" : "=r"(to))
#define WRITE_MODES(from) __asm volatile("fscsr %0" :: "r"(from))
#define OTHER_MODES (1u << 5) /* towards zero */
#endif
#ifdef OTHER_MODES
float quotient(float a, float b) { return a / b; }
float leaves_modes(float x)
{
    uint32_t modes;
    READ_MODES(modes);
    WRITE_MODES(modes | OTHER_MODES);
    return x * 0.5f;
}
float keeps_modes(float x)
{
    uint32_t modes;
    READ_MODES(modes);
    WRITE_MODES(modes | OTHER_MODES);
    volatile float y = x * 0.5f;
    WRITE_MODES(modes);
    return y;
}
int32_t uses_float_flags(float x)
{
    uint32_t flags;
    volatile float y = x / 3;
    READ_MODES(flags);
    return y > 0 ? (int32_t)(flags & 0x1f) : 0;
}
#endif
#ifdef __arm__
uint32_t uses_carry(uint32_t x)
{
    __asm volatile("adcs %0, %0" : "+l"(x) :: "cc");
    return x;
}
uint32_t sets_carry(uint32_t x)
{
    __asm volatile("adds %0, %0; adcs %0, %0" : "+l"(x) :: "cc");
    return x;
}
#endif
#ifdef __ARM_FEATURE_DSP
uint32_t uses_q(int32_t x)
{
    uint32_t flags;
    __asm volatile("qadd %1, %1, %1; mrs %0, apsr" : "=r"(flags), "+r"(x));
    return flags >> 27 & 1;
}
uint32_t uses_ge(uint32_t x)
{
    __asm volatile("sel %0, %0, %1" : "+r"(x) : "r"(0));
    return x;
}
#endif
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
    scope="module", params=["cortex-m4", "cortex-m0plus", "cortex-m33", "riscv32", "riscv32f"]
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


def test_modes_of_floating_point(module):
    if not module.session.platform.core.has("fpu"):
        pytest.skip("no floating-point unit")
    check_registers(Kernel(module["keeps_modes"]), (3.0,))
    register = "fpscr" if module.session.platform.core.architecture == "arm" else "frm"
    with pytest.raises(KernelError, match=f"^leaves_modes returns with 0x1.* in {register}, which"):
        check_registers(Kernel(module["leaves_modes"]), (3.0,))
    # the session goes on with the modes that it had
    assert Kernel(module["quotient"])(1e-40, 1.0) == np.float32(1e-40)
    assert Kernel(module["quotient"])(2.0, 3.0) == np.float32(2) / np.float32(3)


@pytest.mark.parametrize("name", ["uses_carry", "uses_q", "uses_ge", "uses_float_flags"])
def test_flags_that_nothing_has_set(module, name):
    core, argument = module.session.platform.core, 1.0 if name == "uses_float_flags" else 1
    needs = {"uses_q": "dsp", "uses_ge": "dsp", "uses_float_flags": "fpu"}.get(name)
    if (needs and not core.has(needs)) or (needs != "fpu" and core.architecture != "arm"):
        pytest.skip("no such flags")
    with pytest.raises(KernelError, match=f"^{name} uses a register or a flag that nothing was"):
        check_registers(Kernel(module[name]), (argument,))


def test_flags_that_the_function_has_set(module):
    if module.session.platform.core.architecture != "arm":
        pytest.skip("no flags")
    check_registers(Kernel(module["sets_carry"]), (0x80000001,))
