/* Bits that nothing has set: where they decide something they are found; else nothing is. `//! name` marks lines. */
#include <stdint.h>
#include <string.h>

#define HIDE(value) __asm__ volatile("" : "+r"(value) : : "memory")
#define NOINLINE __attribute__((noinline))

struct fields { uint32_t mode : 3, gain : 5, on : 1, rate : 9; int32_t offset : 14; };
struct narrow { uint8_t low : 4, high : 4; };
struct limits { int32_t least, most; uint8_t kind; };

/* The lower halves of words. */
static NOINLINE void set_low(void *words, uint16_t first, uint16_t second, uint16_t third)
{
    uint16_t *halves = words;
    halves[0] = first;
    halves[2] = second;
    halves[4] = third;
    HIDE(halves);
}

/* -- correct ---------------------------------------------------------------------------------- */

int32_t count_bytes(int32_t n)
{
    volatile uint8_t count;
    count = 0;
    for (int32_t i = 0; i < n; i++)
        count++;
    return count;
}

int32_t count_halves(int32_t n)
{
    volatile uint16_t count;
    count = 3;
    for (int32_t i = 0; i < n; i++)
        count += 2;
    return count == 3 + 2 * n;
}

static NOINLINE void set_fields(struct fields *f, int32_t x)
{
    f->mode = (uint32_t)x & 7;
    HIDE(f);
    f->offset = -x;
    HIDE(f);
    f->gain = 9;
    HIDE(f);
    f->rate = (uint32_t)x;
}

int32_t all_fields(int32_t x)
{
    struct fields f, *at = &f;
    HIDE(at);
    set_fields(at, x);
    HIDE(at);
    at->on = 1;
    return (int32_t)(at->mode + at->gain + at->on + at->rate) + at->offset;
}

int32_t some_fields(int32_t x)
{
    struct fields f, *at = &f;
    HIDE(at);
    set_fields(at, x);
    return at->gain == 9 && at->offset == -x ? (int32_t)at->rate : -1;
}

int32_t narrow_fields(int32_t x)
{
    struct narrow f[3], *at = f;
    HIDE(at);
    at[1].high = (uint8_t)x & 15;
    HIDE(at);
    return at[1].high;
}

uint32_t masked_by(uint32_t mask, uint32_t *words)
{
    set_low(words, 0x1234, 1, 1);
    uint32_t sum = words[0] & mask;
    return sum | (words[1] & (mask >> 8));
}

/* Sums whose lower half alone is used: the compiler may load and add all of both. */
uint32_t lower_halves(uint32_t *words)
{
    set_low(words, 3, 4, 5);
    uint32_t sum = words[0] + words[1] * 5 - words[2];
    HIDE(sum);
    return (uint16_t)sum;
}

uint32_t either(const uint32_t *words, uint32_t x)
{
    uint32_t value = words[0];
    uint32_t some = x & 1 ? x : value;
    HIDE(some);
    return x & 1 ? some : 5;
}

#ifdef __ARM_FEATURE_DSP
uint32_t packed(uint32_t *words)
{
    set_low(words, 0x10, 0x20, 0);
    uint32_t a = words[0], b = words[1], both, sum, lanes, wide;
    __asm__("pkhbt %0, %1, %2, lsl #16" : "=r"(both) : "r"(a), "r"(b));
    __asm__("sadd16 %0, %1, %2" : "=r"(lanes) : "r"(a), "r"(b));
    __asm__("add %0, %1, %2" : "=r"(sum) : "r"(a), "r"(b));
    __asm__("smlabb %0, %1, %2, %3" : "=r"(wide) : "r"(a), "r"(b), "r"(7));
    return both == 0x00200010 && (lanes & 0xffff) == 0x30 && (uint16_t)sum == 0x30 ? wide : 0;
}
#endif

/* -- planted ---------------------------------------------------------------------------------- */

int32_t branch(int32_t x)
{
    volatile int32_t never, *at = &never;
    HIDE(at);
    if (*at > x) //! branch
        return 1;
    return 2;
}

int32_t index_of(const int32_t *table)
{
    volatile uint32_t never, *at = &never;
    HIDE(at);
    return table[*at & 3]; //! index_of
}

void element(int32_t *y, int32_t n)
{
    volatile int32_t never, *at = &never;
    HIDE(at);
    for (int32_t i = 0; i < n; i++)
        y[i] = i == 2 ? *at + 1 : i; //! element
}

int32_t returned(int32_t x)
{
    volatile int32_t never, *at = &never;
    HIDE(at);
    return *at * x; //! returned
}

static NOINLINE void set_limits(struct limits *limits, int32_t least)
{
    limits->least = least;
    limits->kind = 1;
}

static NOINLINE int32_t clamped(const struct limits *limits, int32_t x)
{
    if (x < limits->least)
        return limits->least;
    if (x > limits->most) //! partly_set
        return limits->most;
    return x;
}

int32_t partly_set(int32_t x)
{
    struct limits limits, copy, *at = &limits;
    HIDE(at);
    set_limits(at, -5);
    memcpy(&copy, at, sizeof copy);
    at = &copy;
    HIDE(at);
    return clamped(at, x);
}

int32_t one_bit(int32_t x)
{
    struct fields f, *at = &f;
    HIDE(at);
    set_fields(at, x);
    HIDE(at);
    return at->on ? x : 7; //! one_bit
}

int32_t carried(uint32_t *words, uint32_t x)
{
    set_low(words, 0xffff, 0, 0);
    uint32_t sum = words[0] + x; //! carried
    return sum >> 31 ? 3 : 4; //! carried
}

int32_t by_shift(int32_t x)
{
    volatile uint8_t never, *at = &never;
    HIDE(at); //! by_shift
    return (x << (*at & 7)) > 99 ? 1 : 0; //! by_shift
}

int32_t copied(const int32_t *x, int32_t *all, int32_t *y, int32_t n)
{
    memcpy(all, x, (size_t)(n - 1) * sizeof *x);
    HIDE(all);
    for (int32_t i = 0; i < n; i++)
        y[i] = all[i] / 2; //! copied
    return 0;
}
