"""`Variants`: one example on several platforms, compilers and options at once."""

from __future__ import annotations

import shutil
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from covp.errors import DeviceFault, ToolchainError, UsageError
from covp.laboratory.target import Target
from covp.testing import Buffer, Difference, Variants, differ

PLATFORMS = ["cortex-m4", "cortex-m0plus", "riscv32"]
SOURCE = """
#include <stdint.h>
#ifndef SIGN
#define SIGN 1
#endif
int32_t scale(const int8_t *x, int16_t *y, int32_t n)
{
    int32_t sum = 0;
    for (int32_t i = 0; i < n; i++) {
        y[i] = (int16_t)(3 * x[i]);
#ifdef WRONG
        if (i == 4) y[i]++;
#endif
        sum += y[i];
    }
    return sum;
}
void negate(int32_t *x) { *x = -*x; }
float tenth(float x)
{
#ifdef WRONG
    return x * 0.1f;
#else
    return x / 10.0f;
#endif
}
void weigh(const int32_t *x, float *y) { *y = SIGN * (float)*x; }
int32_t load(const int32_t *table, int32_t i)
{
    return i < 0 ? *(volatile int32_t *)0x40 : table[i];
}
"""


def scaled(x, y, n):
    y[:] = 3 * x.astype(np.int16)
    return int(y.sum())


@pytest.fixture(scope="module")
def kernels():
    flags = [("-O0",), ("-O3",)]
    with Variants(SOURCE, "scale", platforms=PLATFORMS, flags=flags, reference=scaled) as found:
        yield found


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(-128, 127), min_size=1, max_size=9))
def test_what_agrees_is_returned_and_written(kernels, values):
    x, y = np.array(values, np.int8), np.zeros(len(values), np.int16)
    assert kernels(x, y, len(values)) == 3 * sum(values)
    assert y.tolist() == [3 * value for value in values]
    assert len(kernels.kernels) == 6
    costs = {name: kernel.latest.instructions for name, kernel in kernels.kernels.items()}
    assert costs["riscv32 zig -O0"] > costs["riscv32 zig -O3"]


def wrong(function, *arguments, wrong="-DWRONG", **how):
    """The Difference of two variants, of which the second one is compiled with an option."""
    flags = [(), (wrong,)]
    with pytest.raises(Difference) as raised:
        differ(SOURCE, function, *arguments, platforms=["riscv32"], flags=flags, **how)
    assert "\n" not in str(raised.value)
    return raised.value


def test_the_first_element_that_differs_is_named_in_the_arrays_shape():
    x, y = np.arange(6, dtype=np.int8), np.zeros((2, 3), np.int16)
    error = wrong("scale", x, y, 6)
    assert error.divergence.where == "the result"
    assert (error.divergence.left, error.divergence.right) == ("45 (0x0000002d)", "46 (0x0000002e)")
    assert not y.any()

    def keep_result(x, y, n):
        y[...] = 3 * np.arange(6).reshape(2, 3)

    error = wrong("scale", x, y, 6, reference=keep_result)
    assert error.divergence.element == "y [1, 1]"
    assert error.variants == (
        ["reference", "riscv32 zig"],
        ["riscv32 zig -DWRONG"],
    )
    assert str(error).endswith(": y [1, 1] is 12 (0x000c) | 13 (0x000d); 1 of 6 elements differ")


def test_floats_are_compared_bit_by_bit_or_in_units_of_the_last_place():
    error = wrong("tenth", 9.0)
    near, exact = np.float32(9) * np.float32(0.1), np.float32(9) / np.float32(10)
    assert f"(0x{exact.view(np.uint32):08x}) | {near}" in str(error)
    flags = [(), ("-DWRONG",)]
    found = differ(SOURCE, "tenth", 9.0, platforms=["riscv32"], flags=flags, ulps=1)
    assert np.float32(found) == exact
    # the sign of a zero is a bit; in units of the last place it is none
    x, y = np.array([0], np.int32), np.zeros(1, np.float32)
    assert wrong("weigh", x, y, wrong="-DSIGN=-1").divergence.right == "-0.0 (0x80000000)"
    flags = [(), ("-DSIGN=-1",)]
    differ(SOURCE, "weigh", x, y, platforms=["riscv32"], flags=flags, ulps=1)


def test_a_reference_may_return_what_a_void_function_writes():
    how = {"platforms": ["riscv32"]}
    x = np.array([5], np.int32)
    differ(SOURCE, "negate", x, reference=lambda x: -x, **how)
    assert x.tolist() == [-5]
    with pytest.raises(Difference, match=r"x \[0\] is 4 \(0x00000004\) \| 5 \(0x00000005\)"):
        differ(SOURCE, "negate", x, reference=lambda x: 4, **how)


def test_faults():
    how = {"platforms": ["riscv32"], "flags": [(), ("-O3",)]}
    table = np.array([7], np.int32)
    with pytest.raises(DeviceFault, match="unmapped read"):
        differ(SOURCE, "load", table, -1, **how)
    with pytest.raises(Difference, match=r"riscv32 zig faulted: unmapped read"):
        differ(SOURCE, "load", table, -1, reference=lambda table, i: 7, **how)


def test_placements_and_arrays_that_are_given_twice():
    source = """
    #include <stdint.h>
    void add(const int32_t *a, int32_t *sum) { *sum += *a; }
    uint32_t low(const int8_t *x) { return (uint32_t)x % 8; }
    """
    x = np.array([21], np.int32)
    differ(source, "add", x, x)
    assert x[0] == 42
    assert differ(source, "low", Buffer(np.zeros(3, np.int8), alignment=8, offset=3)) == 3


def test_structures():
    source = """
    #include <stdint.h>
    struct image { int32_t rows; const int8_t *in; int16_t *out; struct { int32_t sum; } total; };
    void add(struct image *one, const int8_t *more)
    {
        for (int32_t i = 0; i < one->rows; i++) {
            one->out[i] = (int16_t)(one->in[i] + more[i]);
            one->total.sum += one->out[i];
        }
    #ifdef WRONG
        WRONG;
    #endif
    }
    """
    more = np.array([1, 2], np.int8)
    more.flags.writeable = False
    image: dict[str, Any] = {
        "rows": 2,
        "in": np.array([3, 4], np.int8),
        "out": np.zeros(2, np.int16),
    }
    differ(source, "add", image, more)
    assert (image["total"], image["out"].tolist()) == ({"sum": 10}, [4, 6])
    for wrong, said in (
        ("one->out[1]++", r"one.out \[1\] is 6 "),
        ("one->total.sum--", "one.total."),
    ):
        flags = [(), (f"-DWRONG={wrong}",)]
        with pytest.raises(Difference, match=said):
            differ(source, "add", image, more, platforms=["riscv32"], flags=flags)


def test_nothing_to_compare_and_missing_compilers(monkeypatch):
    with pytest.raises(UsageError, match="scale has nothing to be compared with"):
        Variants(SOURCE, "scale", platforms=["riscv32"])
    monkeypatch.setattr("covp.compilers.toolchain.shutil.which", lambda name: None)
    source = "int one(void) { return 1; }"
    with pytest.raises(ToolchainError, match="riscv64-unknown-elf-gcc is not installed"):
        Variants(source, "one", platforms=["riscv32"], toolchains=["zig", "gcc"])
    how: dict[str, Any] = {"toolchains": ["zig", "gcc"], "skip_missing": True}
    with Variants(source, "one", platforms=["riscv32", "cortex-m4"], **how) as variants:
        assert variants() == 1
        assert list(variants.missing) == ["riscv32 gcc", "cortex-m4 gcc"]
    with pytest.raises(ToolchainError, match="one has nothing to be compared with: riscv32 gcc: "):
        Variants(source, "one", platforms=["riscv32"], **how)


def test_both_compilers_and_another_emulator():
    if (
        shutil.which("riscv64-unknown-elf-gcc") is None
        or shutil.which("qemu-system-riscv32") is None
    ):
        pytest.skip("GCC or QEMU is not installed")
    x = np.arange(-3, 4).astype(np.int8)
    how = {"platforms": ["qemu-riscv32", "qemu-riscv32:gdb:qemu"], "toolchains": ["zig", "gcc"]}
    y = np.zeros(7, np.int16)
    assert differ(SOURCE, "scale", x, y, 7, reference=scaled, **how) == 0


@pytest.mark.parametrize(
    "text, platform, device",
    [
        ("riscv32", "riscv32", "virtual"),
        ("cv32e40p:rtl", "cv32e40p", "rtl"),
        ("riscv32:gdb:qemu", "riscv32", "gdb:qemu"),
        ("disco:openocd:localhost:6666", "disco", "openocd:localhost:6666"),
    ],
)
def test_targets(text, platform, device):
    assert Target.parse(text) == Target(platform, device)
    assert str(Target.parse(text)) == text


def test_targets_that_are_none(tmp_path):
    path = tmp_path / "a:b.yaml"
    path.write_text("")
    assert Target.parse(str(path)) == Target(str(path))
    for text in ("", ":rtl", "riscv32:"):
        with pytest.raises(UsageError, match=r"is not of the form NAME\[:DEVICE\]"):
            Target.parse(text)
