"""Memory safety of calls: each kind of access that is found, and what is not."""

from __future__ import annotations

import numpy as np
import pytest

import covp
from covp.errors import DeviceFault, UsageError
from covp.testing import Buffer, Kernel

SOURCE = """
#include <stdint.h>
#include <string.h>
#include <covp_runtime.h>
int32_t sum(const int8_t *a, int32_t from, int32_t to)
{
    int32_t all = 0;
    for (int32_t i = from; i < to; i++)
        all += a[i];                          /* sum */
    return all;
}
void set(int16_t *a, int32_t i) { a[i] = 1; }                       /* set */
void cast(const int8_t *a) { *(int8_t *)a = 1; }                    /* cast */
int32_t add(const int32_t *a) { return a[0] + a[1]; }               /* add */
void copy(const uint8_t *from, uint8_t *to, int32_t n) { memcpy(to, from, (uint32_t)n); }
int32_t branch(const uint8_t *a, int32_t i) { return a[i] > 3; }    /* branch */
int32_t partly(int32_t n)
{
    volatile int32_t x[8];
    int32_t all = 0;
    for (int32_t i = 0; i < n; i++)
        x[i] = i;
    for (int32_t i = 0; i < 8; i++)
        all += x[i];                          /* partly */
    return all;
}
static __attribute__((noinline)) volatile int32_t *local(void)
{
    volatile int32_t x = 5, *volatile p = &x;
    return p;
}
int32_t returned(void) { return *local(); }                         /* returned */
int32_t deep(int32_t n)
{                                              /* deep */
    volatile int32_t x[16];
    x[n & 15] = n;
    int32_t below = n ? deep(n - 1) : 1;
    return below ^ (x[n & 15] * below);
}
int32_t indirect(int8_t *const *where, int32_t i) { return where[0][i]; }   /* indirect */
int32_t temporary(int32_t bytes, int32_t i)
{
    volatile uint8_t *memory = covp_workspace_alloc((uint32_t)bytes);
    memory[0] = 1;
    memory[i] = 2;                            /* temporary */
    int32_t value = memory[0];
    covp_workspace_free((void *)memory);
    return value;
}
void code(void) { *(volatile uint8_t *)(uintptr_t)&sum = 0; }       /* code */
static __attribute__((noinline)) void put(int32_t *a, int32_t i, int32_t value)
{
    a[i] = value;                             /* put */
}
int32_t around(int32_t i)
{
    int32_t x[8] = {0};
    put(x, i, 5);
    return x[i & 7];
}
uint32_t word(const uint8_t *a) { return *(const uint32_t *)(const void *)a; }  /* word */
int64_t both(const int64_t *a) { return *a; }                       /* both */
float single(const float *a) { return *a; }                         /* single */
static const int8_t weights[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
static int16_t history[5], other[5] = {1, 2, 3, 4, 5};
static __attribute__((noinline)) int32_t element(const int8_t *a, int32_t i)
{
    return a[i];                              /* element */
}
int32_t weight(int32_t i) { return element(weights, i); }
static __attribute__((noinline)) void keep(int16_t *a, int32_t i, int16_t value)
{
    a[i] = value;                             /* keep */
}
void remember(int32_t i, int16_t value) { keep(history, i, value); }
void remember_other(int32_t i, int16_t value) { keep(other, i, value); }
static const int8_t *kept;
int32_t keep_pointer(const int8_t *a) { kept = a; return *kept; }
int32_t use_pointer(const int8_t *a) { return *a + *kept; }         /* use_pointer */
struct pair { uint8_t tag; uint32_t value; };
void move(const struct pair *from, struct pair *to) { *to = *from; }    /* move */
void halve(const int16_t *from, int16_t *to, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        to[i] = from[i] / 2;
}
"""
LINES = {
    name: number
    for number, line in enumerate(SOURCE.splitlines(), 1)
    for name in [line.rpartition("/* ")[2].removesuffix(" */")]
    if line.endswith("*/")
}


PLATFORMS = ["cortex-m4", "cortex-m0plus", "riscv32", "cortex-m7"]
PLAINLY = [f"{name}, every access by Unicorn's own hook" for name in ("cortex-m4", "riscv32")]


@pytest.fixture(scope="module", params=[*PLATFORMS, *PLAINLY])
def module(request):
    platform, _, plainly = request.param.partition(",")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("covp.device.machine.counter.INLINING", not plainly)
        session = covp.Session(platform, sanitize=True)
    with session:
        yield session.load_c(SOURCE)


def fault(module, name, *arguments):
    with pytest.raises(DeviceFault) as caught:
        Kernel(module[name])(*arguments)
    assert caught.value.source == f"module.c:{LINES[name]}"
    assert caught.value.call_stack[0].startswith(name)
    return caught.value


def unwritten(values):
    return Buffer(np.array(values), written=False)


@pytest.mark.parametrize("place", [{}, {"alignment": 4, "offset": 3}])
@pytest.mark.parametrize("start, end, offset", [(0, 8, 7), (-1, 3, -1)])
def test_reads_outside(module, place, start, end, offset):
    a = np.arange(7, dtype=np.int8)
    assert Kernel(module["sum"])(Buffer(a, **place), 0, 7) == 21
    found = fault(module, "sum", Buffer(a, **place), start, end)
    assert found.kind == "out-of-bounds read" and found.size == 1
    assert f"offset {offset} of a, which has 7 bytes" in str(found)


@pytest.mark.parametrize("index", [-1, 5, 6, 40, 400])
def test_writes_outside(module, index):
    a = np.zeros(5, np.int16)
    found = fault(module, "set", a, index)
    assert found.kind == "out-of-bounds write" and not a.any()
    assert f"offset {2 * index} of a" in str(found)


def test_writes_through_pointers_to_const(module):
    found = fault(module, "cast", np.zeros(3, np.int8))
    assert found.kind == "write to const" and "offset 0 of a, which has 3" in str(found)


def test_code_is_not_changed(module):
    assert fault(module, "code").kind in ("store to code", "write to read-only memory")


def test_uses_of_what_was_never_written(module):
    assert Kernel(module["add"])(np.array([1, 2], np.int32)) == 3
    found = fault(module, "add", unwritten(np.zeros(2, np.int32)))
    assert found.kind == "uninitialised read" and "offset 0 of a" in str(found)


def test_copies_of_what_was_never_written(module):
    never = unwritten(np.ones(9, np.uint8))
    Kernel(module["copy"])(never, Buffer(np.zeros(9, np.uint8), scratch=True), 9)
    Kernel(module["move"])(
        unwritten(np.zeros(8, np.uint8)), Buffer(np.zeros(8, np.uint8), alignment=4)
    )
    with pytest.raises(DeviceFault) as caught:
        Kernel(module["copy"])(never, np.zeros(9, np.uint8), 9)
    assert caught.value.kind == "uninitialised read"
    assert "offset 0 of from" in str(caught.value) and "element 0 of to; 9 of its 9" in str(
        caught.value
    )
    found = fault(module, "move", unwritten(np.zeros(8, np.uint8)), {"tag": 0})
    assert "offset 0 of from" in str(found) and "decides element 0 of to; 5 of its 8" in str(found)


@pytest.mark.parametrize("name, dtype", [("copy", np.uint8), ("halve", np.int16)])
def test_outputs_that_are_not_written_as_a_whole(module, name, dtype):
    kernel, x, y = Kernel(module[name]), np.arange(6).astype(dtype), np.zeros(6, dtype)
    kernel(x, Buffer(y, written=False), 6)
    assert np.array_equal(y, x if name == "copy" else x // 2)
    with pytest.raises(DeviceFault) as caught:
        kernel(x, Buffer(y, written=False), 4)
    assert caught.value.kind == "unwritten output"
    assert "element 4 of to is never written; 2 of its 6 elements" in str(caught.value)
    kernel(x, Buffer(y, scratch=True), 4)


def test_unwritten_outputs_without_checks(module):
    with covp.Session(module.session.platform) as session:
        to = np.zeros(4, np.uint8)
        Kernel(session.load_c(SOURCE)["copy"])(np.ones(4, np.uint8), Buffer(to, written=False), 3)
        assert to.tolist() == [1, 1, 1, 0xA5]


def test_branches_on_what_was_never_written(module):
    found = fault(module, "branch", unwritten(np.zeros(9, np.uint8)), 4)
    assert found.kind == "uninitialised read" and "offset 4 of a" in str(found)


def test_local_variables(module):
    assert Kernel(module["partly"])(8) == 28
    assert fault(module, "partly", 7).kind == "uninitialised read"
    assert Kernel(module["partly"])(8) == 28
    assert fault(module, "partly", 7).kind == "uninitialised read"


def test_frames_that_are_gone(module):
    assert fault(module, "returned").kind == "use after return"


def test_the_stack_has_a_limit(module):
    deep, sanitizer = Kernel(module["deep"]), module.session.sanitizer
    deep(3)
    used = deep.stack_bytes
    assert 4 * 64 <= used < 4 * 128
    deep(0)
    assert 64 <= deep.stack_bytes < used
    sanitizer.stack_limit = used
    try:
        deep(3)
        found = fault(module, "deep", 4)
        assert found.kind == "stack limit" and f"{used} may be" in str(found)
    finally:
        sanitizer.stack_limit = 1 << 31


def test_tensors_that_were_freed(module):
    session = module.session
    tensor = session.tensor(np.array([7, 8], np.int8))
    where = np.array([tensor.address], np.uint32)
    assert Kernel(module["indirect"])(where, 1) == 8
    found = fault(module, "indirect", where, 2)
    assert found.kind == "out-of-bounds read" and "offset 2 of tensor 2 int8" in str(found)
    tensor.free()
    found = fault(module, "indirect", where, 1)
    assert found.kind == "use after free" and "offset 1 of tensor 2 int8" in str(found)


def test_arrays_of_an_earlier_call(module):
    a, b = np.array([1, 2, 3], np.int8), np.array([4, 5, 6], np.int8)
    for _ in range(40):
        assert Kernel(module["keep_pointer"])(a) == 1
        found = fault(module, "use_pointer", b)
        assert found.kind == "use after free" and "offset 0 of a, which has 3" in str(found)


def test_tensors_that_the_call_was_not_given(module):
    session = module.session
    tensor, other = session.tensor(np.zeros(4, np.int16)), session.tensor(np.zeros(64, np.int16))
    index = (other.pointer - tensor.pointer) // 2 + 3
    Kernel(module["set"])(tensor, 3)
    found = fault(module, "set", tensor, index)
    assert "offset 6 of tensor 64 int16" in str(found) and "was not given it" in str(found)
    assert not other.numpy().any()
    tensor.free()
    other.free()


@pytest.mark.parametrize("index", [-64, -24, 24, 600])
def test_the_stack_of_others(module, index):
    assert Kernel(module["around"])(3) == 5
    with pytest.raises(DeviceFault) as caught:
        Kernel(module["around"])(index)
    assert caught.value.kind in ("out-of-bounds write", "stack limit")
    assert caught.value.source == f"module.c:{LINES['put']}"
    assert "around" in caught.value.call_stack[1]


@pytest.mark.parametrize("name, dtype", [("both", np.int64), ("single", np.float32)])
def test_results_that_were_never_written(module, name, dtype):
    assert Kernel(module[name])(np.array([3], dtype)) == 3
    assert fault(module, name, unwritten(np.zeros(1, dtype))).kind == "uninitialised read"


def test_what_floats_were_compared_to_before():
    """The walk along with the core begins between a comparison and the use of its flags."""
    source = """
    #include <stdint.h>
    uint32_t chosen(const uint32_t *a)
    {
        uint32_t result = 1, loaded;
        __asm volatile("vmov.f32 s0, #1.0; vcmp.f32 s0, s0; ldr %1, [%2]; "
                       "vmrs apsr_nzcv, fpscr; it eq; moveq %0, %1"
                       : "+r"(result), "=&r"(loaded) : "r"(a) : "s0", "cc");
        return result;
    }"""
    with covp.Session("cortex-m4", sanitize=True) as session:
        kernel = Kernel(session.load_c(source)["chosen"])
        assert kernel(np.array([7], np.uint32)) == 7
        with pytest.raises(DeviceFault, match=r"offset 0 of a, .* decides the result"):
            kernel(unwritten(np.zeros(1, np.uint32)))


@pytest.mark.parametrize("checked", [False, True])
def test_misaligned_words(checked):
    with covp.Session("cortex-m0plus", sanitize=checked) as session:
        module = session.load_c(SOURCE)
        for _ in range(2):
            assert Kernel(module["word"])(Buffer(np.arange(4, dtype=np.uint8))) == 0x03020100
            found = fault(module, "word", Buffer(np.zeros(4, np.uint8), alignment=4, offset=1))
            assert found.kind == "misaligned access" and "needs a multiple of 4" in str(found)


@pytest.mark.parametrize("index", [-1, 9, 10])
def test_constants_of_the_module(module, index):
    assert Kernel(module["weight"])(8) == 9
    with pytest.raises(DeviceFault) as caught:
        Kernel(module["weight"])(index)
    assert caught.value.kind == "out-of-bounds read"
    assert f"offset {index} of weights, which has 9 bytes" in str(caught.value)


@pytest.mark.parametrize("name, variable", [("remember", "history"), ("remember_other", "other")])
@pytest.mark.parametrize("index", [-1, 5])
def test_variables_of_the_module(module, name, variable, index):
    for place in range(5):
        Kernel(module[name])(place, 1)
    with pytest.raises(DeviceFault) as caught:
        Kernel(module[name])(index, 1)
    assert caught.value.kind == "out-of-bounds write"
    assert caught.value.source == f"module.c:{LINES['keep']}"
    assert f"offset {2 * index} of {variable}, which has 10 bytes" in str(caught.value)


def test_the_workspace(module):
    temporary = Kernel(module["temporary"])
    assert temporary(100, 99) == 1
    assert fault(module, "temporary", 100, 112).kind == "out-of-bounds write"


@pytest.mark.parametrize("platform", ["cortex-m0plus", "riscv32"])
def test_the_workspace_is_where_an_array_was(platform):
    """What is freed becomes workspace; what lies after its end is still beside the workspace."""
    with covp.Session(platform, sanitize=True) as session:
        module = session.load_c(SOURCE)
        for size in (16, 100, 300, 3000):
            Kernel(module["sum"])(np.zeros(size, np.int8), 0, size)
        found = fault(module, "temporary", 100, 112)
        assert (found.kind, found.detail) == (
            "out-of-bounds write",
            "offset 128 of the workspace, which has 128 bytes",
        )


def test_counts_are_those_without_checks(module):
    a = np.arange(100, dtype=np.int8)
    with covp.Session(module.session.platform) as plain:
        other = Kernel(plain.load_c(SOURCE)["sum"])
        kernel = Kernel(module["sum"])
        assert kernel(a, 0, 100) == other(a, 0, 100)
        assert kernel.latest.instructions == other.latest.instructions
        assert kernel.latest.cycles == other.latest.cycles
        with pytest.raises(UsageError, match="sanitize=True"):
            _ = other.stack_bytes


def test_other_devices_say_that_they_cannot():
    with pytest.raises(UsageError, match="cannot check memory"):
        covp.Session("host", device="host", sanitize=True)
