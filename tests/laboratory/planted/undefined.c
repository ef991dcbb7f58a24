/* What the C standard leaves undefined: found by the compiler's checks, on the core itself. */
#include "planted.h"

/* sum_squares: an accumulator of 32 bits for squares of 16. */
int32_t sum_squares(const int16_t *x, int32_t n)
{
    PLANTED(int32_t, uint32_t) sum = 0;
    for (int32_t i = 0; i < n; i++)
        sum += x[i] * x[i] PLANTED(, / 2); /* BUG: signed integer overflow */
    return (int32_t)sum;
}

/* rescale: the product of accumulator and multiplier needs 64 bits. */
int32_t rescale(int32_t acc, int32_t multiplier)
{
    return (int32_t)(acc * PLANTED(multiplier, (int64_t)multiplier) >> 31); /* BUG: signed integer overflow */
}

/* difference: the distance of two extremes. */
int32_t difference(int32_t a, int32_t b)
{
    int64_t d = PLANTED(a - b, (int64_t)a - b); /* BUG: signed integer overflow */
    return d > INT32_MAX ? INT32_MAX : d < INT32_MIN ? INT32_MIN : (int32_t)d;
}

/* magnitude: there is no positive counterpart of the least integer. */
int32_t magnitude(int32_t x)
{
    if (PLANTED(0, x == INT32_MIN))
        return INT32_MAX;
    return x < 0 ? -x : x; /* BUG: signed integer overflow */
}

/* pixel_area: two unsigned halfwords are promoted to int. */
uint32_t pixel_area(uint16_t width, uint16_t height)
{
    return (uint32_t)(PLANTED(width, (uint32_t)width) * height); /* BUG: signed integer overflow */
}

/* next_index: an index that counts on beyond the greatest integer. */
int32_t next_index(int32_t index)
{
    return index == PLANTED(INT32_MIN, INT32_MAX) ? 0 : index + 1; /* BUG: signed integer overflow */
}

/* mask_of: all bits is a shift by 32. */
uint32_t mask_of(uint32_t bits)
{
    return bits == PLANTED(33, 32) ? UINT32_MAX : ((uint32_t)1 << bits) - 1; /* BUG: shift by 32 */
}

/* scale_by: a negative exponent is a right shift in the quantizer's convention only. */
int32_t scale_by(int32_t x, int32_t exponent)
{
    if (PLANTED(0, exponent < 0))
        return x >> -exponent;
    return (int32_t)((uint32_t)x << exponent); /* BUG: shift by - */
}

/* to_fixed: the shift of a negative number to the left. */
int32_t to_fixed(int16_t x)
{
    return PLANTED(x << 8, x * 256); /* BUG: left shift of */
}

/* top_bit: one shifted into the sign. */
int32_t top_bit(int32_t position)
{
    return PLANTED(3, 3u) << position == 0; /* BUG: left shift of */
}

/* quotient: the one division that overflows. */
int32_t quotient(int32_t x, int32_t step)
{
    if (step == 0 || PLANTED(0, (x == INT32_MIN && step == -1)))
        return INT32_MAX;
    return x / step; /* BUG: signed integer overflow */
}

/* mean: of no elements. */
int32_t mean(int32_t sum, int32_t n)
{
    return sum / PLANTED(n, (n > 0 ? n : 1)); /* BUG: division by zero */
}

/* wrap: a buffer of no elements. */
uint32_t wrap(uint32_t head, uint32_t size)
{
    return PLANTED(1, size) ? head % size : 0; /* BUG: division by zero */
}

/* sigmoid_table: the table ends before the greatest input. */
int32_t sigmoid_table(int32_t x)
{
    static const int8_t table[] = {3, 7, 18, 44, 88, 121, 127};
    int32_t at = x < 0 ? 0 : x > PLANTED(7, 6) ? PLANTED(7, 6) : x;
    return table[at]; /* BUG: index */
}

/* row_of: an index that is one row off within a table of rows. */
int32_t row_of(int32_t row, int32_t column)
{
    static const int16_t filters[3][4] = {{1, 2, 3, 4}, {5, 6, 7, 8}, {9, 10, 11, 12}};
    return filters[row][column - PLANTED(1, 0)]; /* BUG: index */
}

/* ring_slot: the remainder of a negative number is negative. */
int32_t ring_slot(int32_t at, int32_t value)
{
    int32_t ring[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    int32_t slot = PLANTED(at % 8, (at & 7));
    ring[slot] += value & 0xFF; /* BUG: index */
    return ring[slot];
}

/* quantize: a float beyond the range of its integer. */
int32_t quantize(float x, float scale)
{
    float scaled = x / scale;
#ifndef BUG
    scaled = scaled >= 127.0f ? 127.0f : scaled > -128.0f ? scaled : -128.0f;
#endif
    return (int8_t)scaled; /* BUG: conversion to */
}

/* to_unsigned: a negative float to an unsigned integer. */
uint32_t to_unsigned(float x)
{
    return (uint32_t)(PLANTED(x, (x > 0 && x < 4e9f ? x : 0))); /* BUG: conversion to */
}

/* read_field: a packet's word through a pointer to words. */
uint32_t read_field(const uint8_t *packet)
{
#ifdef BUG
    return *(const uint32_t *)(const void *)packet; /* BUG: misaligned */
#else
    uint32_t word;
    memcpy(&word, packet, sizeof word);
    return word;
#endif
}

/* gain_of: parameters that the caller need not give. */
struct gains { int32_t first, second; };

static NOINLINE int32_t second_gain(const struct gains *gains)
{
    return PLANTED(1, gains != NULL) ? gains->second : 1; /* BUG: null pointer */
}

int32_t gain_of(int32_t given)
{
    struct gains gains = {given, given};
    return second_gain(given ? &gains : NULL);
}

/* enabled: a bool out of a byte that is neither 0 nor 1. */
int32_t enabled(const uint8_t *flags)
{
    return PLANTED(*(const _Bool *)flags, *flags != 0) ? 3 : 5; /* BUG: load of */
}

/* leading_zeros: the builtin is undefined for zero. */
int32_t leading_zeros(uint32_t x)
{
    return PLANTED(1, x != 0) ? __builtin_clz(x) : 32; /* BUG: clz of 0 */
}

/* bits_of: a case that cannot be is. */
int32_t bits_of(int32_t kind)
{
    switch (kind) {
    case 0:
        return 8;
    case 1:
        return 16;
    default:
#ifdef BUG
        __builtin_unreachable(); /* BUG: cannot be reached */
#else
        return 32;
#endif
    }
}

/* local_of: an array of no or negative length. */
int32_t local_of(int32_t n)
{
    uint8_t local[PLANTED(n, (n > 0 && n < 64 ? n : 64))]; /* BUG: array of */
    uint8_t *to = local;
    HIDE(to);
    to[0] = 1;
    HIDE(to);
    return to[0];
}

/* end_of: a pointer that leaves the address space. */
int32_t end_of(const int32_t *x, uint32_t n)
{
    const int32_t *end = x + PLANTED(n, (n & 15)); /* BUG: pointer arithmetic */
    HIDE(end);
    return end > x;
}

/* mac_q15: the sum of two products of the least value. */
int32_t mac_q15(const int16_t *x, const int16_t *y)
{
    int32_t low = x[0] * y[0], high = x[1] * y[1];
    int64_t sum = PLANTED(low + high, (int64_t)low + high); /* BUG: signed integer overflow */
    return (int32_t)(sum > INT32_MAX ? INT32_MAX : sum) >> 15;
}

/* countdown: a counter that is decremented once more. */
int32_t countdown(int32_t n, int32_t step)
{
    int32_t left = n;
    for (int32_t i = 0; i < 4; i++)
        left = PLANTED(left - step, (left > INT32_MIN + step ? left - step : left)); /* BUG: signed integer overflow */
    return left;
}
