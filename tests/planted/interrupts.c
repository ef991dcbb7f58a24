/* State that an interrupt handler shares with the code it interrupts. */
#include "planted.h"

#if defined(__arm__)
#define DISABLE() __asm__ volatile("cpsid i" : : : "memory")
#define ENABLE() __asm__ volatile("cpsie i" : : : "memory")
#else
#define DISABLE() __asm__ volatile("csrci mstatus, 8" : : : "memory")
#define ENABLE() __asm__ volatile("csrsi mstatus, 8" : : : "memory")
#endif
#define CORRECT_ONLY(statement) PLANTED(, statement)

/* count_events: a counter read, incremented and written while the handler does the same. */
static volatile uint32_t events, handled;

void count_events_handler(void)
{
    events++;
    handled++;
}

uint32_t count_events(uint32_t n)
{
    events = handled = 0;
    for (uint32_t i = 0; i < n; i++) {
        CORRECT_ONLY(DISABLE());
        events++; /* BUG: interrupt-unsafe */
        CORRECT_ONLY(ENABLE());
    }
    CORRECT_ONLY(DISABLE());
    uint32_t lost = n + handled - events;
    CORRECT_ONLY(ENABLE());
    return lost;
}

/* read_clock: a 64-bit time read in two halves while the handler carries. */
static volatile uint32_t clock_low = UINT32_MAX, clock_high;

void read_clock_handler(void)
{
    uint32_t low = clock_low + 1;
    clock_low = low;
    clock_high += low == 0;
}

uint32_t read_clock(void)
{
    uint32_t high, low;
    clock_low = UINT32_MAX;
    clock_high = 0;
    do {
        high = clock_high;
        low = clock_low; /* BUG: interrupt-unsafe */
    } while (PLANTED(0, high != clock_high));
    return (high == 0 && low == UINT32_MAX) || (high == 1 && low < 1000);
}

/* pop_sample: the count is lowered before the sample is taken. */
static volatile int32_t queue[4], queued;

void pop_sample_handler(void)
{
    queue[queued & 3] = 7;
    queued = (queued & 3) + 1;
}

int32_t pop_sample(void)
{
    int32_t sample;
    queue[0] = 1;
    queued = 1;
    CORRECT_ONLY(DISABLE());
    queued--; /* BUG: interrupt-unsafe */
    sample = queue[0];
    CORRECT_ONLY(ENABLE());
    return sample == 1 || sample == 7 ? sample == 1 || queued > 1 : 0;
}

/* limits_of: two values that belong together, changed one after the other. */
static volatile int32_t lower, upper = 10, broken;

void limits_of_handler(void)
{
    broken |= upper - lower != 10;
}

int32_t limits_of(int32_t shift)
{
    broken = 0;
    lower = 0;
    upper = 10;
    broken = 0;
    CORRECT_ONLY(DISABLE());
    lower += shift; /* BUG: interrupt-unsafe */
    upper += shift;
    CORRECT_ONLY(ENABLE());
    return broken;
}

/* flag_update: bits of one word set by both sides. */
static volatile uint32_t flags;

void flag_update_handler(void)
{
    flags |= 0x80;
}

uint32_t flag_update(uint32_t mask)
{
    flags = 0;
    uint32_t before;
    CORRECT_ONLY(DISABLE());
    before = flags;
    flags = before | (mask & 0x7F); /* BUG: interrupt-unsafe */
    CORRECT_ONLY(ENABLE());
    return flags;
}

/* shared_scratch: the handler works in the same memory as the function it interrupts. */
static int32_t scratch[4];

static NOINLINE int32_t sum_in(volatile int32_t *work, int32_t x)
{
    int32_t sum = 0;
    for (int32_t i = 0; i < 4; i++)
        work[i] = x + i;
    for (int32_t i = 0; i < 4; i++)
        sum += work[i]; /* BUG: interrupt-unsafe */
    return sum;
}

void shared_scratch_handler(void)
{
    int32_t own[4];
    int32_t *to = own;
    HIDE(to);
    sum_in(PLANTED(scratch, to), 100);
}

int32_t shared_scratch(int32_t x)
{
    return sum_in(scratch, x);
}
