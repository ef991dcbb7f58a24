/* The formulas are those of the network's training (mlcommons/tiny, training/streaming_wakeword,
 * get_lfbe_func): pre-emphasis, a Hamming window, the power spectrum, triangular bands at equal
 * distances on the mel scale, decibels, and (dB + 52) / 64 limited to 0..1. Quantization truncates
 * towards zero as evaluate.py there does; what lies above the range is saturated.
 * covp/firmware/mlperf/log_mel.py makes the tables and has the same in double precision.
 *
 * Fixed point: a sample of 1 is 32 (pre-emphasis by 31/32 is exact), 2^14 in the transform, whose
 * nine stages halve, and so 32 in the spectrum; quiet windows are doubled before as often as they
 * fit. No value of the transform is above 2^30.5: the magnitude of a butterfly's result is at most
 * the mean of those of its operands. */
#include "log_mel.h"

#include <string.h>

#include "log_mel_tables.h"

#define POINTS (LOG_MEL_WINDOW / 2) /* of the complex transform of pairs of real samples */

void log_mel_reset(log_mel_state *state)
{
    memset(state, 0, sizeof *state);
}

/* The high word of a product: half of it where one factor is a fraction with 31 bits. */
static inline int32_t high(int32_t a, int32_t b)
{
    return (int32_t)(((int64_t)a * b) >> 32);
}

/* A sample with pre-emphasis: below 2^21. */
static inline int32_t emphasized(int32_t sample, int32_t previous)
{
    return 32 * sample - 31 * previous;
}

/* How often all values of the window can be doubled and stay below 2^21. */
static uint32_t headroom(const log_mel_state *state, const int16_t *samples, uint32_t stride)
{
    uint32_t bits = 1, shift = 0;
    int32_t previous = state->previous;
    for (uint32_t i = 0; i < LOG_MEL_HOP; i++) {
        int32_t sample = samples[i * stride], value = emphasized(sample, previous);
        bits |= (uint32_t)(value < 0 ? -value : value);
        bits |= (uint32_t)(state->half[i] < 0 ? -state->half[i] : state->half[i]);
        previous = sample;
    }
    while (bits << shift < 1u << 20)
        shift++;
    return shift;
}

/* The window over the previous hop and the new one, which becomes the previous: pairs of samples
 * as complex numbers, in bit-reversed order. */
static void load(log_mel_state *state, const int16_t *samples, uint32_t stride, uint32_t shift)
{
    int32_t *half = state->half, *work = state->work, previous = state->previous;
    int32_t factor = (int32_t)(1024u << shift);
    for (uint32_t i = 0; i < LOG_MEL_HOP; i++) {
        int32_t sample = samples[i * stride], value = emphasized(sample, previous);
        uint32_t place = 2u * log_mel_reversed[i / 2] + i % 2u;
        work[place] = high(half[i] * factor, log_mel_window[i]);
        /* the second half of the pairs: odd places, as the highest bit becomes the lowest */
        work[place + 2u] = high(value * factor, log_mel_window[LOG_MEL_HOP - 1u - i]);
        half[i] = value;
        previous = sample;
    }
    state->previous = previous;
}

/* Two stages at once, which need no multiplication: transforms of four neighbours. */
static void first_stages(int32_t *work)
{
    for (uint32_t i = 0; i < 2u * POINTS; i += 8) {
        int32_t *z = work + i;
        for (uint32_t j = 0; j < 8; j++)
            z[j] >>= 2;
        int32_t a_re = z[0] + z[2], a_im = z[1] + z[3], b_re = z[0] - z[2], b_im = z[1] - z[3];
        int32_t c_re = z[4] + z[6], c_im = z[5] + z[7], d_re = z[4] - z[6], d_im = z[5] - z[7];
        z[0] = a_re + c_re;
        z[1] = a_im + c_im;
        z[2] = b_re + d_im;
        z[3] = b_im - d_re;
        z[4] = a_re - c_re;
        z[5] = a_im - c_im;
        z[6] = b_re - d_im;
        z[7] = b_im + d_re;
    }
}

/* The other stages of the decimation in time (Cooley and Tukey), in place. */
static void transform(int32_t *z)
{
    first_stages(z);
    for (uint32_t half = 4; half < POINTS; half *= 2) {
        uint32_t step = LOG_MEL_WINDOW / (2u * half);
        for (uint32_t k = 0; k < half; k++) {
            int32_t sine = log_mel_sine[k * step], cosine = log_mel_sine[256u + k * step];
            for (int32_t *low = z + 2u * k; low < z + 2u * POINTS; low += 4u * half) {
                int32_t *other = low + 2u * half;
                int32_t re = high(other[0], cosine) + high(other[1], sine);
                int32_t im = high(other[1], cosine) - high(other[0], sine);
                int32_t low_re = low[0] >> 1, low_im = low[1] >> 1;
                low[0] = low_re + re;
                low[1] = low_im + im;
                other[0] = low_re - re;
                other[1] = low_im - im;
            }
        }
    }
}

/* From the transform of the pairs to bins 1 to 511 of the real samples, in place: bins k and
 * 512 - k come of the same two numbers. Neither bin 0 nor bin 512 has a weight in any band. */
static void separate(int32_t *z)
{
    for (uint32_t k = 1; k <= POINTS / 2u; k++) {
        int32_t *low = z + 2u * k, *upper = z + 2u * (POINTS - k);
        int32_t sine = log_mel_sine[k], cosine = log_mel_sine[256u + k];
        int32_t a_re = low[0] >> 1, a_im = low[1] >> 1, b_re = upper[0] >> 1, b_im = upper[1] >> 1;
        int32_t even_re = a_re + b_re, even_im = a_im - b_im;
        int32_t odd_re = a_im + b_im, odd_im = b_re - a_re;
        int32_t re = 2 * (high(odd_re, cosine) + high(odd_im, sine));
        int32_t im = 2 * (high(odd_im, cosine) - high(odd_re, sine));
        upper[0] = even_re - re;
        upper[1] = im - even_im; /* of the conjugate; only its square counts */
        low[0] = even_re + re;
        low[1] = even_im + im;
    }
}

/* The logarithm to base 2 with 16 bits after the point, of a value above 0: each squaring of the
 * mantissa gives a bit. */
static int32_t log2_of(uint64_t value)
{
    int32_t exponent = 63;
    for (; !(value >> 63); value <<= 1)
        exponent--;
    uint32_t mantissa = (uint32_t)(value >> 32); /* 2^31 is 1 */
    uint32_t fraction = 0;
    for (uint32_t i = 0; i < 16; i++) {
        uint64_t square = (uint64_t)mantissa * mantissa; /* 2^62 is 1 */
        uint32_t bit = (uint32_t)(square >> 63);
        mantissa = (uint32_t)(square >> (31u + bit));
        fraction = 2u * fraction + bit;
    }
    return (int32_t)((uint32_t)exponent << 16 | fraction);
}

/* The stored value of an energy whose samples were doubled so often. */
static int8_t quantized(uint64_t energy, uint32_t shift)
{
    if (energy == 0)
        return LOG_MEL_LEAST;
    int64_t octaves = log2_of(energy) - (int32_t)(2u * shift << 16); /* 2^16 is 1 */
    int64_t value = octaves * LOG_MEL_STEPS + LOG_MEL_OFFSET;        /* 2^32 is 1 */
    int64_t stored = value / ((int64_t)1 << 32);
    if (stored > LOG_MEL_GREATEST)
        return LOG_MEL_GREATEST;
    if (stored < LOG_MEL_LEAST)
        return LOG_MEL_LEAST;
    return (int8_t)stored;
}

/* Between two neighbouring centres, the share of a bin's power that rises with the upper band falls
 * from the lower one. */
void log_mel_row(log_mel_state *state, const int16_t *samples, uint32_t stride,
                 int8_t row[LOG_MEL_BANDS])
{
    uint32_t shift = headroom(state, samples, stride);
    load(state, samples, stride, shift);
    transform(state->work);
    separate(state->work);
    uint64_t risen = 0;
    for (uint32_t band = 0, bin = 1; band <= LOG_MEL_BANDS; band++) {
        uint64_t all = 0, rising = 0;
        for (; bin < log_mel_ends[band]; bin++) {
            int64_t re = state->work[2u * bin], im = state->work[2u * bin + 1u];
            uint64_t power = (uint64_t)(re * re + im * im) >> 16; /* below 2^45 */
            all += power << 16;
            rising += power * log_mel_share[bin];
        }
        if (band > 0)
            row[band - 1u] = quantized(risen + (all - rising), shift);
        risen = rising;
    }
}
