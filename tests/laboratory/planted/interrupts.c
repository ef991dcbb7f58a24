/* State that an interrupt handler shares with the code it interrupts. */
#include "planted.h"

#if defined(__arm__)
#define DISABLE() __asm__ volatile("cpsid i" : : : "memory")
#define ENABLE() __asm__ volatile("cpsie i" : : : "memory")
#else
#define DISABLE() __asm__ volatile("csrci mstatus, 8" : : : "memory")
#define ENABLE() __asm__ volatile("csrsi mstatus, 8" : : : "memory")
#endif
#define CORRECT(statement) PLANTED(, statement)

/* count_events: a counter is read, incremented and written while the handler does the same. */
volatile uint32_t events;

void count_events_handler(void)
{
    events++;
}

void count_events(uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        CORRECT(DISABLE());
        events++; /* BUG: interrupt */
        CORRECT(ENABLE());
    }
}

/* read_clock: a 64-bit time is read in two halves while the handler carries. */
volatile uint32_t clock_low = UINT32_MAX, clock_high;

void read_clock_handler(void)
{
    clock_low++;
    clock_high += clock_low == 0;
}

uint64_t read_clock(void)
{
    uint32_t high, low;
    do {
        high = clock_high; /* BUG: interrupt */
        low = clock_low; /* BUG: interrupt */
    } while (PLANTED(0, high != clock_high));
    return (uint64_t)high << 32 | low;
}

/* pop_sample: the number of samples is lowered before the sample is taken. */
volatile int32_t queue[4] = {5, 6}, queued = 2;

void pop_sample_handler(void)
{
    int32_t at = queued;
    queue[at] = 7;
    queued = at + 1;
}

int32_t pop_sample(void)
{
    CORRECT(DISABLE());
    int32_t at = queued - 1; /* BUG: interrupt */
    queued = at;             /* BUG: interrupt */
    int32_t sample = queue[at]; /* BUG: interrupt */
    CORRECT(ENABLE());
    return sample;
}

/* move_limits: two values that belong together are changed one after the other. */
volatile int32_t lower, upper = 10, seen;

void move_limits_handler(void)
{
    seen = upper - lower;
}

void move_limits(int32_t by)
{
    CORRECT(DISABLE());
    lower += by; /* BUG: interrupt */
    upper += by; /* BUG: interrupt */
    CORRECT(ENABLE());
}

/* set_flags: bits of one word are set by both sides. */
volatile uint32_t flags;

void set_flags_handler(void)
{
    flags |= 0x80;
}

void set_flags(uint32_t mask)
{
    CORRECT(DISABLE());
    flags |= mask; /* BUG: interrupt */
    CORRECT(ENABLE());
}

/* shared_scratch: the handler works in the memory of the function that it interrupts. */
volatile int32_t shared[4], own[4];

static NOINLINE int32_t sum_in(volatile int32_t *work, int32_t x)
{
    int32_t sum = 0;
    for (int32_t i = 0; i < 4; i++) /* BUG: interrupt */
        work[i] = x + i; /* BUG: interrupt */
    for (int32_t i = 0; i < 4; i++) /* BUG: interrupt */
        sum += work[i]; /* BUG: interrupt */
    return sum;
}

void shared_scratch_handler(void)
{
    sum_in(PLANTED(shared, own), 100);
}

int32_t shared_scratch(int32_t x)
{
    return sum_in(shared, x);
}

/* wait_for_flag: the flag that the handler sets is read once. */
PLANTED(int32_t, volatile int32_t) arrived;

void wait_for_flag_handler(void)
{
    arrived = 1;
}

int32_t wait_for_flag(int32_t value)
{
    volatile int32_t rounds = 0;
    while (!arrived) /* BUG: does not end */
        rounds = 1; /* BUG: does not end */
    (void)rounds;
    return value + 1;
}

/* leave_masked: one way out of the function leaves interrupts off. */
volatile int32_t level;

void leave_masked_handler(void)
{
    level = 9;
}

int32_t leave_masked(int32_t x)
{
    DISABLE();
    int32_t now = level;
    if (x < 0) {
        CORRECT(ENABLE());
        return now; /* BUG: returns with interrupts masked */
    }
    level = now + x;
    ENABLE();
    return now;
}

/* publish: the index tells of a sample that is not there yet. */
volatile uint32_t ring[4], head, tail, taken;

void publish_handler(void)
{
    taken = 99;
    if (tail != head) {
        taken = ring[tail & 3];
        tail++;
    }
}

void publish(uint32_t sample)
{
    uint32_t at = head;
    PLANTED(head = at + 1, ring[at & 3] = sample); /* BUG: interrupt */
    PLANTED(ring[at & 3] = sample, head = at + 1); /* BUG: interrupt */
}

/* scale_level: what was tested is not what is used. */
volatile int32_t input = 5;

void scale_level_handler(void)
{
    input = -3;
}

int32_t scale_level(int32_t by)
{
    int32_t now = input;                          /* BUG: interrupt */
    return now > 0 ? PLANTED(input, now) * by : 0; /* BUG: interrupt */
}

/* to_text: a static buffer that the handler writes into as well. */
char text[4], handlers_text[4];
volatile char shown;

static NOINLINE char *digits(int32_t value, char *to)
{
    to[0] = (char)('0' + value % 10); /* BUG: interrupt */
    HIDE(to);
    to[1] = (char)('0' + value / 10 % 10); /* BUG: interrupt */
    HIDE(to);
    return to; /* BUG: interrupt */
}

void to_text_handler(void)
{
    shown = *digits(99, PLANTED(text, handlers_text));
}

int32_t to_text(int32_t value)
{
    char *at = digits(value, text);
    return at[0] + at[1] * 256; /* BUG: interrupt */
}

/* update_both: the inner function ends the lock of the outer one. */
volatile uint32_t first_count, second_count;

void update_both_handler(void)
{
    first_count += 10;
    second_count += first_count;
}

static NOINLINE void update_first(int32_t is_locked)
{
    DISABLE();
    first_count++;
    if (!is_locked)
        ENABLE(); /* BUG: interrupt */
} /* BUG: interrupt */

void update_both(void)
{
    DISABLE();
    update_first(PLANTED(0, 1));
    second_count += first_count; /* BUG: interrupt */
    ENABLE();
}
