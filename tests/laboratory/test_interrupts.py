"""Interrupts at every boundary of a call: planted mistakes and their correct twins."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import covp
from covp.errors import KernelError, UsageError
from covp.laboratory.inside import Span, inside
from covp.testing import Buffer, Kernel, check_interrupts, interrupted

PLATFORMS = ["cortex-m4", "cortex-m0plus", "riscv32"]

SOURCE = """
#include <stdint.h>
#ifdef __arm__
#define MASK() __asm volatile("cpsid i" ::: "memory")
#define UNMASK() __asm volatile("cpsie i" ::: "memory")
#define SLEEP() __asm volatile("wfi" ::: "memory")
#else
#define MASK() __asm volatile("csrci mstatus, 8" ::: "memory")
#define UNMASK() __asm volatile("csrsi mstatus, 8" ::: "memory")
#define SLEEP() __asm volatile("wfi" ::: "memory")
#endif

volatile uint32_t ticks, high, low = 0xffffffff;
uint32_t plain_flag;
volatile uint32_t flag, data = 7;
static volatile int32_t scratch[4];

void tick_isr(void)
{
    ticks = ticks + 1;
    if (++low == 0) high++;
    plain_flag = flag = 1;
    data = 42;
    for (int i = 0; i < 4; i++) scratch[i] = -1;
}

void bump(void) { ticks += 1; /* bug */ }
void masked_bump(void) { MASK(); ticks += 1; UNMASK(); }

uint64_t clock_torn(void) { uint32_t l = low; return (uint64_t)high << 32 | l; /* bug */ }
uint64_t clock_twice(void)
{
    uint32_t h, l;
    do { h = high; l = low; } while (h != high);
    return (uint64_t)h << 32 | l;
}

uint32_t wait_plain(void) { for (;;) if (plain_flag) return data; /* bug */ }
uint32_t wait_dropped(void) { while (!plain_flag); return data; /* bug */ }
uint32_t wait_volatile(void) { while (!flag); return data; }

uint32_t sleep_late(void) { while (!flag) SLEEP(); return data; /* bug */ }
uint32_t sleep_masked(void)
{
    MASK();
    while (!flag) { SLEEP(); UNMASK(); MASK(); }
    UNMASK();
    return data;
}

int32_t sum_static(const int32_t *x)
{
    for (int i = 0; i < 4; i++) scratch[i] = x[i];
    return scratch[0] + scratch[1] + scratch[2] + scratch[3]; /* bug */
}
int32_t sum_stack(const int32_t *x)
{
    volatile int32_t own[4];
    for (int i = 0; i < 4; i++) own[i] = x[i];
    return own[0] + own[1] + own[2] + own[3];
}

uint32_t stays_masked(uint32_t n) { MASK(); if (n > 3) return 1; /* bug */ UNMASK(); return 0; }

/* A handler that changes a register which it has to keep. */
#ifdef __arm__
#define KEPT "r4"
#else
#define KEPT "s1"
#endif
#ifdef __arm__
void bad_isr(void) { __asm volatile("movs r4, #99"); /* bug */ }
void good_isr(void) { __asm volatile("movs r4, #99" ::: "r4"); }
#else
void bad_isr(void) { __asm volatile("li s1, 99"); /* bug */ }
void good_isr(void) { __asm volatile("li s1, 99" ::: "s1"); }
#endif
uint32_t uses_kept(uint32_t x)
{
    register uint32_t kept __asm(KEPT) = x;
    __asm volatile("" : "+r"(kept));
    __asm volatile("nop\\n nop" : "+r"(kept));
    return kept;
}

uint32_t dot(const int8_t *a, const int8_t *b, int32_t n, int32_t *sums)
{
    int32_t sum = 0;
    for (int32_t i = 0; i < n; i++) { sum += a[i] * b[i]; sums[i] = sum; }
    return (uint32_t)sum;
}
float scaled(const float *x, int32_t n)
{
    float sum = 0;
    for (int32_t i = 0; i < n; i++) sum += x[i] * 1.5f;
    return sum;
}
"""


@pytest.fixture(scope="module", params=PLATFORMS)
def module(request):
    with covp.Session(request.param) as session:
        yield session.load_c(SOURCE)


def line_of(text: str) -> str:
    """ "module.c:12" of the line of `SOURCE` with a text."""
    numbers = [n for n, line in enumerate(SOURCE.splitlines(), 1) if text in line]
    assert len(numbers) == 1
    return f"module.c:{numbers[0]}"


def check(module, name, *arguments, handler="tick_isr", **options):
    return check_interrupts(Kernel(module[name]), arguments, handler=handler, **options)


def test_a_lost_update(module):
    with pytest.raises(KernelError) as found:
        check(module, "bump")
    text = str(found.value)
    assert "variable ticks is 1, 2 with the interrupt before or after the call" in text
    assert text.count(line_of("void bump")) == 2 and "between bump+0x" in text
    assert check(module, "masked_bump") >= 6


def test_a_torn_read(module):
    with pytest.raises(
        KernelError,
        match=r"the result is 0, 4294967296 with the interrupt before|the result is 8589934591",
    ) as found:
        check(module, "clock_torn")
    assert line_of("uint64_t clock_torn") in str(found.value)
    assert check(module, "clock_twice") > 6


def test_a_flag_that_is_not_volatile(module):
    with pytest.raises(
        KernelError, match=r"does not end with an interrupt after \d+ inst"
    ) as found:
        check(module, "wait_plain", expected=42)
    assert line_of("uint32_t wait_plain") in str(found.value)
    with pytest.raises(KernelError, match=r"wait_dropped gives .*: it returns 7, not 42"):
        check(module, "wait_dropped", expected=42)
    assert check(module, "wait_volatile", expected=42) > 3
    assert check(module, "wait_volatile") > 3


def test_a_wake_up_that_is_lost(module):
    with pytest.raises(KernelError, match=r"sleep_late does not end .*endless sleep") as found:
        check(module, "sleep_late")
    assert line_of("uint32_t sleep_late") in str(found.value)
    assert check(module, "sleep_masked") > 3


def test_static_state_that_the_handler_shares(module):
    x = np.array([1, 2, 3, 4], np.int32)
    with pytest.raises(KernelError, match=r"sum_static gives .* it returns \d+, not 10"):
        check(module, "sum_static", x, expected=10)
    assert check(module, "sum_stack", x, expected=10) > 10


def test_interrupts_that_stay_masked(module):
    with pytest.raises(KernelError, match="stays_masked returns with interrupts masked: "):
        check(module, "stays_masked", 4)
    assert check(module, "stays_masked", 2) > 3


def test_registers_that_are_not_kept(module):
    kept = "r4" if module.session.platform.core.architecture == "arm" else "s1"
    with pytest.raises(KernelError, match=f"returns with 0x63 in {kept}, which a function has to"):
        check(module, "uses_kept", 5, handler="bad_isr")
    assert check(module, "uses_kept", 5, handler="good_isr") > 3
    with pytest.raises(KernelError, match=f"^bad_isr returns with 0x63 in {kept}, which"):
        check(module, "bad_isr")
    assert check(module, "good_isr") > 3


def test_kernels_that_share_nothing_are_right(module):
    rng = np.random.default_rng(0)
    a, b = rng.integers(-128, 128, (2, 9)).astype(np.int8)
    sums = np.zeros(9, np.int32)
    assert check(module, "dot", Buffer(a, offset=1), b, 9, sums) > 60
    assert not sums.any()  # the user's arrays are left alone
    x = rng.normal(size=4).astype(np.float32)
    assert check(module, "scaled", x, 4, at="random", examples=50, seed=3) > 20


def test_each_boundary_is_one_instruction(module):
    """Single stepping is the oracle: the interrupt is taken after as many instructions as named."""
    kernel = Kernel(module["dot"])
    a, sums = np.arange(5, dtype=np.int8), np.zeros(5, np.int32)
    kernel(a, a, 5, sums)
    calls = list(interrupted(kernel, (a, a, 5, sums), handler="tick_isr"))
    assert [call.taken for call in calls] == list(range(len(calls)))
    assert kernel.latest.instructions == len(calls) - 1
    assert {call.result for call in calls} == {30}
    assert all(call.arguments[3].tolist() == [0, 1, 5, 14, 30] for call in calls)
    assert all(call.variables["ticks"] == 1 for call in calls)


def test_a_critical_section_delays_it(module):
    calls = list(interrupted(Kernel(module["masked_bump"]), handler="tick_isr"))
    delayed = [call for call in calls if call.taken != call.boundary]
    assert len(delayed) >= 3
    assert len({call.taken for call in delayed}) == 1  # until the section is over
    assert all(call.variables["ticks"] == 2 for call in calls)


def test_afterwards_the_session_is_as_before(module):
    session, kernel = module.session, Kernel(module["bump"])
    before, memory = kernel.session.read(module.address("ticks"), 4), session.memory()
    for _ in interrupted(kernel, handler="tick_isr"):
        break
    with pytest.raises(KernelError):
        check(module, "bump")
    assert session.read(module.address("ticks"), 4) == before
    assert session.memory() == memory
    kernel()
    assert (kernel.latest.instructions or 99) < 10


def test_priorities_on_arm():
    source = """
    #include <stdint.h>
    volatile uint32_t ticks;
    void tick_isr(void) { ticks = ticks + 1; }
    void bump(void)
    {
        __asm volatile("msr basepri, %0" :: "r"(0x40) : "memory");
        ticks = ticks + 1;
        __asm volatile("msr basepri, %0" :: "r"(0) : "memory");
    }
    """
    with covp.Session("cortex-m4") as session:
        kernel = Kernel(session.load_c(source)["bump"])
        assert check_interrupts(kernel, handler="tick_isr") > 6
        assert check_interrupts(kernel, handler="tick_isr", priority=0x40) > 6
        with pytest.raises(KernelError, match="variable ticks is 1"):
            check_interrupts(kernel, handler="tick_isr", priority=0x20)


def test_if_then_blocks_and_multiple_loads():
    """An interrupt in the middle of an IT block goes on with its conditions."""
    source = """
    #include <stdint.h>
    void isr(void) { __asm volatile("cmp r0, r0\\n movs r1, #0\\n movs r2, #0" ::: "r1", "r2"); }
    uint32_t select(uint32_t a, uint32_t b)
    {
        uint32_t r = 1000;
        __asm volatile("cmp %1, %2\\n ittee hi\\n addhi %0, #1\\n addhi %0, #10\\n"
                       "addls %0, #100\\n addls %0, #200\\n push {r0-r3, r12}\\n pop {r0-r3, r12}"
                       : "+r"(r) : "r"(a), "r"(b) : "cc", "memory");
        return r;
    }
    """
    with covp.Session("cortex-m4") as session:
        kernel = Kernel(session.load_c(source)["select"])
        assert check_interrupts(kernel, (2, 1), handler="isr", expected=1011) > 8
        assert check_interrupts(kernel, (1, 2), handler="isr", expected=1300) > 8


def test_a_handler_with_the_attribute_interrupt():
    source = """
    #include <stdint.h>
    volatile uint32_t ticks;
    __attribute__((interrupt)) void tick_isr(void) { ticks = ticks + 1; }
    void bump(void) { ticks = ticks + 1; }
    uint32_t mix(uint32_t a, uint32_t b) { return (a ^ b << 3) * 17 + (a >> 2) * (b + 5); }
    """
    for platform in ("cortex-m4", "riscv32"):
        with covp.Session(platform) as session:
            module = session.load_c(source)
            assert check(module, "mix", 123, 456) > 5
            with pytest.raises(KernelError, match="variable ticks is 1, 2"):
                check(module, "bump")


def test_usage(module):
    with pytest.raises(UsageError, match="no symbol 'tick_irs': did you mean tick_isr"):
        check(module, "bump", handler="tick_irs")
    with pytest.raises(UsageError, match="at='often': \"every\""):
        check(module, "bump", at="often")
    with pytest.raises(UsageError, match="line 40"):
        check(module, "bump", line=40)
    assert check(module, "masked_bump", at=[0, 2]) == 2


@pytest.mark.parametrize("platform", PLATFORMS)
def test_long_blocks_of_code(platform):
    """The pc tells how many of 1500 instructions without a branch came before it."""
    source = """
    #include <stdint.h>
    volatile uint32_t ticks;
    void tick_isr(void) { ticks = ticks + 1; }
    void straight(void)
    {
        __asm volatile(".rept 1500\\n nop\\n .endr");
    }
    """
    wanted = [0, 1, 255, 510, 511, 512, 513, 1023, 1024, 1400, 1499, 1500]
    with covp.Session(platform) as session:
        kernel = Kernel(session.load_c(source)["straight"])
        seen: list[int] = []
        for call in interrupted(kernel, handler="tick_isr", at=wanted):
            assert call.variables["ticks"] == 1 and call.taken == call.boundary
            with inside(kernel, functools.partial(ends, seen=seen, instructions=call.boundary)):
                kernel()
        sizes = {(pc - seen[0]) / n for pc, n in zip(seen[1:], wanted[1:], strict=True)}
        assert sizes == {2}  # of a nop, compressed on RISC-V


def ends(span: Span, seen: list[int], instructions: int) -> None:
    """Run so many instructions of a kernel, note the pc, and run the rest."""
    pc = span.forward(instructions)
    seen.append(pc)
    span.finish(pc, 10_000)


@pytest.mark.parametrize("platform", ["cortex-m4", "riscv32"])
def test_with_the_sanitizer(platform):
    """What the core stores for an interrupt is no access of the program."""
    with covp.Session(platform, sanitize=True) as session:
        module = session.load_c(SOURCE)
        x = np.array([1, 2, 3, 4], np.int32)
        assert check(module, "sum_stack", x, expected=10) > 10
        with pytest.raises(KernelError, match="variable ticks is 1, 2 with"):
            check(module, "bump")


STACKED = """
#include <stdint.h>
volatile uint32_t ticks;
void tick_isr(void)
{
    ticks = ticks + 1;
    __asm volatile("movs r0, #0; movs r1, #0; movs r2, #0; movs r3, #0" ::: "r0", "r1", "r2", "r3");
}
void unwritten_isr(void)
{
    ticks = ticks + 1;
    __asm volatile("sub sp, #8; ldr r0, [sp]; ldr r1, [sp]; ldr r2, [sp]; ldr r3, [sp]; add sp, #8"
                   ::: "r0", "r1", "r2", "r3");
}
uint32_t loop(uint32_t n)
{
    uint32_t all = 0;
    __asm volatile("1: adds %0, %0, %1; subs %1, #1; bne 1b" : "+l"(all), "+l"(n) :: "cc");
    return all;
}
uint32_t interrupted(const uint32_t *a)
{
    uint32_t loaded, seen;
    __asm volatile("ldr %0, [%2]; nop; nop; ldr %1, [%3]; cmp %1, #0; beq 1f; "
                   "cmp %0, #5; beq 1f; 1:"
                   : "=&l"(loaded), "=&l"(seen) : "l"(a), "l"(&ticks) : "cc");
    return seen;
}
"""


@pytest.mark.parametrize("platform", ["cortex-m4", "cortex-m0plus"])
def test_undefined_bits_of_registers_that_are_stacked(platform):
    """Those of the interrupted code are its own again, and it gets none of the handler's."""
    with covp.Session(platform, sanitize=True) as session:
        module = session.load_c(STACKED)
        loop, kernel = Kernel(module["loop"]), Kernel(module["interrupted"])
        calls = list(interrupted(loop, (5,), handler="unwritten_isr", at="every"))
        assert len(calls) > 15 and {call.result for call in calls} == {15}
        never = Buffer(np.zeros(1, np.uint32), written=False)
        assert kernel(never) == 0
        for boundary in range(4):
            with pytest.raises(KernelError, match="decides a branch"):
                list(interrupted(kernel, (never,), handler="tick_isr", at=[boundary]))


LANES = """
#include <stdint.h>
volatile uint32_t ticks;
void tick_isr(void)
{
    uint32_t none = 0;
    __asm volatile("uadd8 %0, %0, %0" : "+r"(none));
    ticks = ticks + 1;
}
uint32_t lanes(uint32_t a, uint32_t b)
{
    uint32_t result;
    __asm volatile("uadd8 %0, %1, %1; nop; nop; sel %0, %1, %2" : "=&r"(result) : "r"(a), "r"(b));
    return result;
}
"""


def test_flags_of_lanes_are_stacked():
    """GE, part of xPSR (DDI0403E B1.4.2), is that of the interrupted code again."""
    with covp.Session("cortex-m4") as session:
        kernel = Kernel(session.load_c(LANES)["lanes"])
        calls = interrupted(kernel, (0xF00FF00F, 0x12345678), handler="tick_isr", at="every")
        assert {call.result for call in calls} == {0xF034F078}
