/* Results that differ from what numpy computes from the specification. */
#include "planted.h"

static int32_t clamp(int32_t x, int32_t low, int32_t high)
{
    return x < low ? low : x > high ? high : x;
}

/* add_q7: wraps where it should saturate. */
void add_q7(const int8_t *x, const int8_t *y, int8_t *out, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        out[i] = (int8_t)PLANTED(x[i] + y[i], clamp(x[i] + y[i], -128, 127)); /* BUG: wrong result */
}

/* sub_q15: saturates at one end only. */
void sub_q15(const int16_t *x, const int16_t *y, int16_t *out, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        out[i] = (int16_t)clamp(x[i] - y[i], PLANTED(-65535, -32768), 32767); /* BUG: wrong result */
}

/* round_shift: ties of negative numbers go up instead of away from zero. */
int32_t round_shift(int32_t x, int32_t shift)
{
    int64_t half = (int64_t)1 << shift >> 1;
    return (int32_t)((x + half PLANTED(, - (x < 0 && shift))) >> shift); /* BUG: wrong result */
}

/* requantize: the high half of the product without its doubling's rounding. */
int32_t requantize(int32_t acc, int32_t multiplier)
{
    int64_t product = (int64_t)acc * multiplier;
    return (int32_t)((product + PLANTED(0, ((int64_t)1 << 30))) >> 31); /* BUG: wrong result */
}

/* relu6_s8: the upper limit of the activation is missing. */
void relu6_s8(const int8_t *x, int8_t *out, int32_t n, int32_t low, int32_t high)
{
    for (int32_t i = 0; i < n; i++)
        out[i] = (int8_t)clamp(x[i], low, PLANTED(127, high)); /* BUG: wrong result */
    (void)high;
}

/* pad_zero_point: the padding of a quantized tensor is its zero point, not 0. */
void pad_zero_point(const int8_t *x, int8_t *out, int32_t n, int32_t padding, int32_t zero_point)
{
    int32_t value = PLANTED(0 * zero_point, zero_point); /* BUG: wrong result */
    for (int32_t i = 0; i < n + 2 * padding; i++)
        out[i] = (int8_t)(i < padding || i >= n + padding ? value : x[i - padding]);
}

/* fully_connected: the input's offset has the wrong sign. */
int32_t fully_connected(const int8_t *x, const int8_t *weights, int32_t n, int32_t zero_point)
{
    int32_t sum = 0;
    for (int32_t i = 0; i < n; i++)
        sum += (x[i] PLANTED(+, -) zero_point) * weights[i]; /* BUG: wrong result */
    return sum;
}

/* read_big_endian: the bytes of a big-endian halfword the other way round. */
void read_big_endian(const uint8_t *bytes, uint16_t *out, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        out[i] = (uint16_t)(bytes[2 * i + PLANTED(1, 0)] << 8 | bytes[2 * i + PLANTED(0, 1)]); /* BUG: wrong result */
}

/* sum_s8: 16 bits for a sum that needs 32. */
int32_t sum_s8(const int8_t *x, int32_t n)
{
    PLANTED(uint16_t, uint32_t) sum = 0;
    for (int32_t i = 0; i < n; i++)
        sum = (PLANTED(uint16_t, uint32_t))(sum + (uint32_t)(x[i] * 127)); /* BUG: wrong result */
    return PLANTED((int16_t), (int32_t))sum;
}

/* sample_12bit: the sign of a 12-bit sample is in bit 11. */
int32_t sample_12bit(uint32_t word)
{
    int32_t value = (int32_t)(word & 0xFFF);
    return value >= PLANTED(0x1000, 0x800) ? value - 0x1000 : value; /* BUG: wrong result */
}

/* join_bytes: the low byte is signed and takes the high one along. */
int32_t join_bytes(const int8_t *bytes)
{
    return (int16_t)(bytes[1] * 256 + PLANTED(bytes[0], (uint8_t)bytes[0])); /* BUG: wrong result */
}

/* sum_char: plain char is unsigned here. */
int32_t sum_char(const int8_t *x, int32_t n)
{
    int32_t sum = 0;
    for (int32_t i = 0; i < n; i++)
        sum += (PLANTED(char, signed char))x[i]; /* BUG: wrong result */
    return sum;
}

/* invert_high: ~ works on an int, so the shift brings ones in. */
int32_t invert_high(uint8_t x)
{
    return PLANTED(~x, (uint8_t)~x) >> 4 & 0xFF; /* BUG: wrong result */
}

/* halve: a shift rounds to minus infinity, a division to zero. */
void halve(const int32_t *x, int32_t *out, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        out[i] = x[i] PLANTED(>> 1, / 2); /* BUG: wrong result */
}

/* average_pool: rounds half up where the specification rounds away from zero. */
int32_t average_pool(const int8_t *x, int32_t n)
{
    int32_t sum = 0;
    for (int32_t i = 0; i < n; i++)
        sum += x[i];
    return (sum > 0 || PLANTED(1, 0) ? sum + n / 2 : sum - n / 2) / n; /* BUG: wrong result */
}

/* pool_same: divides by the window where the padding does not count. */
void pool_same(const uint8_t *x, uint8_t *out, int32_t n)
{
    for (int32_t i = 0; i < n; i++) {
        int32_t sum = 0, count = 0;
        for (int32_t k = i - 1; k <= i + 1; k++)
            if (k >= 0 && k < n) {
                sum += x[k];
                count++;
            }
        HIDE(count);
        out[i] = (uint8_t)(sum / PLANTED(3, count)); /* BUG: wrong result */
    }
}

/* argmax: the last of equal elements instead of the first. */
int32_t argmax(const int8_t *x, int32_t n)
{
    int32_t best = 0;
    for (int32_t i = 1; i < n; i++)
        if (x[i] PLANTED(>=, >) x[best]) /* BUG: wrong result */
            best = i;
    return best;
}

/* smooth_in_place: reads samples that it has overwritten. */
static NOINLINE void smooth(const int16_t *x, int16_t *out, int32_t n)
{
    int32_t before = x[0];
    for (int32_t i = 1; i < n; i++) {
        int32_t here = x[i];
        out[i] = (int16_t)((PLANTED(x[i - 1], before) + here) / 2); /* BUG: wrong result */
        before = here;
    }
    (void)before;
}

void smooth_in_place(int16_t *x, int32_t n)
{
    smooth(x, x, n);
}

/* reverse: the second half gets back what the first half lost. */
void reverse(int32_t *x, int32_t n)
{
    for (int32_t i = 0; i < n / 2; i++) {
        int32_t other = x[i];
        x[i] = x[n - 1 - i];
        x[n - 1 - i] = PLANTED(x[i], other); /* BUG: wrong result */
        HIDE(other);
    }
}

/* integrate: the sum of the call before is still there. */
int32_t integrate(const int16_t *x, int32_t n)
{
    static int32_t sum;
#ifndef BUG
    sum = 0;
#endif
    for (int32_t i = 0; i < n; i++)
        sum += x[i]; /* BUG: wrong result */
    return sum;
}

/* compare_counts: a negative number is great when it is unsigned. */
int32_t compare_counts(int32_t available, uint32_t needed)
{
    return PLANTED((uint32_t)available >= needed, available >= (int64_t)needed); /* BUG: wrong result */
}

/* max_float: a NaN at the front stays where numpy.fmax drops it. */
float max_float(const float *x, int32_t n)
{
    float best = PLANTED(x[0], -__builtin_inff()); /* BUG: wrong result */
    for (int32_t i = 0; i < n; i++)
        best = x[i] > best ? x[i] : best;
    return best;
}

/* dot_offset: the weights' offset is applied to the sum of all inputs but one. */
int32_t dot_offset(const int8_t *x, const int8_t *weights, int32_t n, int32_t offset)
{
    int32_t sum = 0, inputs = 0;
    for (int32_t i = 0; i < n; i++) {
        sum += x[i] * weights[i];
        if (i > PLANTED(0, -1))
            inputs += x[i]; /* BUG: wrong result */
    }
    return sum + offset * inputs;
}

/* strided_copy: strides in elements taken for strides in bytes. */
void strided_copy(const int16_t *x, int16_t *out, int32_t n, int32_t stride)
{
    for (int32_t i = 0; i < n; i++)
        out[i] = x[i * stride / PLANTED(2, 1)]; /* BUG: wrong result */
}

/* partial_output: the last element of an odd length is never written. */
void partial_output(const int8_t *x, int8_t *out, int32_t n)
{
    for (int32_t i = 0; i + PLANTED(1, 0) < n; i++)
        out[i] = (int8_t)(x[i] ^ 0x55); /* BUG: wrong result */
}

/* double_word: inline assembly that stores to memory and does not say so. */
#if defined(__arm__)
#define STORE "str %2, [%1]\n\tmov %0, %2"
#else
#define STORE "sw %2, 0(%1)\n\tmv %0, %2"
#endif

int32_t double_word(int32_t *cell, int32_t value)
{
    int32_t stored;
    *cell = value;
    __asm__(STORE : "=&r"(stored) : "r"(cell), "r"(value + value) PLANTED(, : "memory"));
    return *cell + (stored - 2 * value); /* BUG: wrong result */
}

/* keep_sum: inline assembly that changes registers and does not say so. */
#if defined(__arm__)
#define CHANGED "r0", "r1", "r2", "r3", "cc"
#define CHANGE "movs r0, #1\n\tmovs r1, #2\n\tmovs r2, #3\n\tmovs r3, #4"
#else
#define CHANGED "a0", "a1", "a2", "a3", "a4", "a5"
#define CHANGE "li a0, 1\n\tli a1, 2\n\tli a2, 3\n\tli a3, 4\n\tli a4, 5\n\tli a5, 6"
#endif

int32_t keep_sum(int32_t a, int32_t b, int32_t c, int32_t d)
{
    int32_t sum = a ^ b, other = c ^ d, third = a ^ d;
    HIDE(sum);
    HIDE(other);
    HIDE(third);
#ifdef BUG
    __asm__ volatile(CHANGE); /* BUG: wrong result */
#else
    __asm__ volatile(CHANGE : : : CHANGED);
#endif
    return sum ^ other * 3 ^ third * 5;
}
