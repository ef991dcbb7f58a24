/* The cycle counter of a core: mcycle, DWT's CYCCNT, or SysTick where there is neither. */
#include "board.h"
#include "board_config.h"
#include "cycles.h"

static uint64_t first;

#if defined(__riscv)

static uint32_t mcycle(void)
{
    uint32_t value;
    __asm__ volatile("csrr %0, mcycle" : "=r"(value));
    return value;
}

static uint32_t mcycleh(void)
{
    uint32_t value;
    __asm__ volatile("csrr %0, mcycleh" : "=r"(value));
    return value;
}

/* The Privileged Architecture 3.1.10: read high, low, high until both highs agree. */
static uint64_t counter(void)
{
    uint32_t high, low;
    do {
        high = mcycleh();
        low = mcycle();
    } while (high != mcycleh());
    return (uint64_t)high << 32 | low;
}

static void start(void)
{
}

#elif defined(__ARM_ARCH) && __ARM_ARCH >= 7 || defined(__ARM_ARCH_8M_MAIN__)

/* Armv7-M Architecture Reference Manual C1.6.5 (DEMCR), C1.8 (DWT); of the lock, which the Cortex-M7
   has, CoreSight Architecture Specification B2.3.10. */
#define DEMCR (*(volatile uint32_t *)0xe000edfcu)
#define DWT_CTRL (*(volatile uint32_t *)0xe0001000u)
#define DWT_CYCCNT (*(volatile uint32_t *)0xe0001004u)
#define DWT_LAR (*(volatile uint32_t *)0xe0001fb0u)

static uint64_t extended;

static uint64_t counter(void)
{
    extended += (uint32_t)(DWT_CYCCNT - (uint32_t)extended);
    return extended;
}

static void start(void)
{
    DEMCR |= 1u << 24; /* TRCENA */
    DWT_LAR = 0xc5acce55u;
    DWT_CYCCNT = 0;
    DWT_CTRL |= 1u; /* CYCCNTENA */
    extended = 0;
}

#else

/* Armv6-M Architecture Reference Manual B3.3: SysTick counts down from 2**24 - 1. */
#define SYST_CSR (*(volatile uint32_t *)0xe000e010u)
#define SYST_RVR (*(volatile uint32_t *)0xe000e014u)
#define SYST_CVR (*(volatile uint32_t *)0xe000e018u)
#define LONGEST 0xffffffu

static volatile uint32_t wraps;

void SysTick_Handler(void);
void SysTick_Handler(void)
{
    wraps++;
}

static uint64_t counter(void)
{
    uint32_t before, value;
    do {
        before = wraps;
        value = SYST_CVR;
    } while (before != wraps);
    return (uint64_t)before * (LONGEST + 1u) + (LONGEST - value);
}

static void start(void)
{
    SYST_RVR = LONGEST;
    SYST_CVR = 0;
    SYST_CSR = 7u; /* core clock, interrupt, enable */
}

#endif

void cycles_start(void)
{
    start();
    first = counter();
}

uint64_t board_cycles(void)
{
    return counter() - first;
}

uint64_t board_microseconds(void)
{
    const uint64_t cycles = board_cycles();
    const uint32_t hz = BOARD_CLOCK_HZ;
    return cycles / hz * 1000000u + cycles % hz * 1000000u / hz;
}
