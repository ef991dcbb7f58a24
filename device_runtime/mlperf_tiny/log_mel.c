/* The formulas are those of the network's training (mlcommons/tiny, training/streaming_wakeword,
 * get_lfbe_func): pre-emphasis, a Hamming window, the power spectrum, triangular bands at equal
 * distances on the mel scale, decibels, and (dB + 52) / 64 limited to 0..1. Quantization truncates
 * towards zero as evaluate.py there does; what lies above the range is saturated.
 * covp/mlperf/log_mel.py makes the tables and has the same in double precision. */
#include "log_mel.h"

#include <math.h>
#include <string.h>

#include "log_mel_tables.h"

#define POINTS (LOG_MEL_WINDOW / 2) /* of the complex transform of pairs of real samples */

void log_mel_reset(log_mel_state *state)
{
    memset(state, 0, sizeof *state);
}

/* The window over the previous hop and the new one, which becomes the previous: pairs of samples
 * as complex numbers, in bit-reversed order. */
static void load(log_mel_state *state, const int16_t *samples, uint32_t stride)
{
    const float emphasis = 1.0f - 1.0f / 32.0f;
    float *half = state->half, *work = state->work, previous = state->previous;
    for (uint32_t i = 0; i < LOG_MEL_HOP; i++) {
        float sample = (float)samples[i * stride], value = sample - emphasis * previous;
        uint32_t place = 2u * log_mel_reversed[i / 2] + i % 2u;
        work[place] = half[i] * log_mel_window[i];
        /* the second half of the pairs: odd places, as the highest bit becomes the lowest */
        work[place + 2u] = value * log_mel_window[LOG_MEL_HOP - 1u - i];
        half[i] = value;
        previous = sample;
    }
    state->previous = previous;
}

/* Two stages at once, which need no multiplication: transforms of four neighbours. */
static void first_stages(float *z)
{
    for (uint32_t i = 0; i < 2u * POINTS; i += 8) {
        float a_re = z[i] + z[i + 2], a_im = z[i + 1] + z[i + 3];
        float b_re = z[i] - z[i + 2], b_im = z[i + 1] - z[i + 3];
        float c_re = z[i + 4] + z[i + 6], c_im = z[i + 5] + z[i + 7];
        float d_re = z[i + 4] - z[i + 6], d_im = z[i + 5] - z[i + 7];
        z[i] = a_re + c_re, z[i + 1] = a_im + c_im;
        z[i + 2] = b_re + d_im, z[i + 3] = b_im - d_re;
        z[i + 4] = a_re - c_re, z[i + 5] = a_im - c_im;
        z[i + 6] = b_re - d_im, z[i + 7] = b_im + d_re;
    }
}

/* The other stages of the decimation in time (Cooley and Tukey), in place. */
static void transform(float *z)
{
    first_stages(z);
    for (uint32_t half = 4; half < POINTS; half *= 2) {
        uint32_t step = LOG_MEL_WINDOW / (2u * half);
        for (uint32_t k = 0; k < half; k++) {
            float sine = log_mel_sine[k * step], cosine = log_mel_sine[256u + k * step];
            for (uint32_t low = 2u * k; low < 2u * POINTS; low += 4u * half) {
                uint32_t high = low + 2u * half;
                float re = z[high] * cosine + z[high + 1] * sine;
                float im = z[high + 1] * cosine - z[high] * sine;
                z[high] = z[low] - re, z[high + 1] = z[low + 1] - im;
                z[low] += re, z[low + 1] += im;
            }
        }
    }
}

/* Four times the power of the bins 1 to 511 of the real samples, over the real parts: bins k and
 * 512 - k come of the same two numbers. Bin 0 has no weight in any band, bin 512 neither. */
static void powers(float *z)
{
    for (uint32_t k = 1; k <= POINTS / 2u; k++) {
        float *low = z + 2u * k, *high = z + 2u * (POINTS - k);
        float sine = log_mel_sine[k], cosine = log_mel_sine[256u + k];
        float even_re = low[0] + high[0], even_im = low[1] - high[1];
        float odd_re = low[1] + high[1], odd_im = high[0] - low[0];
        float re = odd_re * cosine + odd_im * sine, im = odd_im * cosine - odd_re * sine;
        float sum_re = even_re + re, sum_im = even_im + im;
        float difference_re = even_re - re, difference_im = even_im - im;
        high[0] = difference_re * difference_re + difference_im * difference_im;
        low[0] = sum_re * sum_re + sum_im * sum_im;
    }
}

static int8_t quantized(float energy, float scale, int32_t zero_point)
{
    float value = LOG_MEL_FACTOR * logf(energy) + LOG_MEL_OFFSET;
    value = fminf(fmaxf(value, 0.0f), 1.0f) / scale + (float)zero_point;
    return (int8_t)fminf(fmaxf(value, -128.0f), 127.0f);
}

/* Between two neighbouring centres, the share of a bin's power that rises with the upper band falls
 * from the lower one. */
void log_mel_row(log_mel_state *state, const int16_t *samples, uint32_t stride, float scale,
                 int32_t zero_point, int8_t row[LOG_MEL_BANDS])
{
    load(state, samples, stride);
    transform(state->work);
    powers(state->work);
    float risen = 0.0f;
    for (uint32_t band = 0, bin = 1; band <= LOG_MEL_BANDS; band++) {
        float all = 0.0f, rising = 0.0f;
        for (; bin < log_mel_ends[band]; bin++) {
            float power = state->work[2u * bin];
            all += power;
            rising += power * log_mel_share[bin];
        }
        if (band > 0)
            row[band - 1] = quantized(risen + (all - rising), scale, zero_point);
        risen = rising;
    }
}
