/* Reads outside the tensors that a call was given. */
#include "planted.h"

/* dot_s8: one product more than there are. */
int32_t dot_s8(const int8_t *x, const int8_t *weights, int32_t n)
{
    int32_t sum = 0;
    for (int32_t i = 0; i < PLANTED(n + 1, n); i++)
        sum += x[i] * weights[i]; /* BUG: out-of-bounds read */
    return sum;
}

/* fir_s16: the first outputs take samples from before the first. */
void fir_s16(const int16_t *x, const int16_t *taps, int32_t n, int32_t ntaps, int32_t *out)
{
    for (int32_t i = 0; i < n; i++) {
        int32_t sum = 0;
        for (int32_t k = 0; k < PLANTED(ntaps, (i + 1 < ntaps ? i + 1 : ntaps)); k++)
            sum += taps[k] * x[i - k]; /* BUG: out-of-bounds read */
        out[i] = sum;
    }
}

/* conv1d_s8: the last window is one weight too long. */
void conv1d_s8(const int8_t *x, const int8_t *weights, int32_t n, int32_t k, int32_t *out)
{
    for (int32_t i = 0; i + k < n; i++) {
        int32_t sum = 0;
        for (int32_t j = 0; j < PLANTED(k + 1, k); j++)
            sum += x[i + j] * weights[j]; /* BUG: out-of-bounds read */
        out[i] = sum;
    }
}

/* add_bias: one bias for each element instead of one for each channel. */
void add_bias(int32_t *acc, const int32_t *bias, int32_t pixels, int32_t channels)
{
    for (int32_t i = 0; i < pixels * channels; i++)
        acc[i] += bias[PLANTED(i, i % channels)]; /* BUG: out-of-bounds read */
}

/* sum_words: four bytes at a time, and the tail as a whole word. */
uint32_t sum_words(const uint8_t *x, int32_t n)
{
    uint32_t sum = 0;
    int32_t i = 0;
    for (; i < PLANTED(n, n - 3); i += 4) {
        uint32_t word;
        memcpy(&word, x + i, 4); /* BUG: out-of-bounds read */
        sum += (word & 0xFF) + (word >> 8 & 0xFF) + (word >> 16 & 0xFF) + (word >> 24);
    }
    for (; i < n; i++)
        sum += x[i];
    return sum;
}

/* dot_unrolled: four products per round whatever the length. */
int32_t dot_unrolled(const int16_t *x, const int16_t *y, int32_t n)
{
    int32_t sum = 0, i = 0;
    for (; i < PLANTED(n, n - 3); i += 4) {
        sum += x[i] * y[i]; /* BUG: out-of-bounds read */
        sum += x[i + 1] * y[i + 1]; /* BUG: out-of-bounds read */
        sum += x[i + 2] * y[i + 2]; /* BUG: out-of-bounds read */
        sum += x[i + 3] * y[i + 3]; /* BUG: out-of-bounds read */
    }
    for (; i < n; i++)
        sum += x[i] * y[i];
    return sum;
}

/* max_pool: the last window is not cut at the right edge. */
void max_pool(const int8_t *x, int32_t width, int32_t window, int8_t *out)
{
    for (int32_t start = 0; start < width; start += window) {
        int32_t end = PLANTED(start + window, (start + window < width ? start + window : width));
        int8_t best = INT8_MIN;
        for (int32_t i = start; i < end; i++)
            if (x[i] > best) /* BUG: out-of-bounds read */
                best = x[i];
        out[start / window] = best;
    }
}

/* column_sum: steps by the number of rows where it should be columns. */
int32_t column_sum(const int32_t *x, int32_t rows, int32_t columns, int32_t column)
{
    uint32_t sum = 0;
    HIDE(columns);
    for (int32_t i = 0; i < rows; i++)
        sum += (uint32_t)x[i * PLANTED(rows, columns) + column]; /* BUG: out-of-bounds read */
    return (int32_t)sum;
}

/* lookup: a table of 256 entries indexed by the signed byte. */
void lookup(const int8_t *x, const int16_t *table, int32_t n, int16_t *out)
{
    for (int32_t i = 0; i < n; i++)
        out[i] = table[x[i] + PLANTED(0, 128)]; /* BUG: out-of-bounds read */
}

/* sum_pcm16: 16-bit samples out of a stream that ends within one. */
int32_t sum_pcm16(const uint8_t *stream, int32_t bytes)
{
    int32_t sum = 0;
    for (int32_t i = 0; i < PLANTED(bytes, bytes - 1); i += 2) {
        int16_t sample;
        memcpy(&sample, stream + i, 2); /* BUG: out-of-bounds read */
        sum += sample; /* BUG: out-of-bounds read */
    }
    return sum;
}

/* find_end: looks for a terminator that need not be there. */
int32_t find_end(const uint8_t *text, int32_t n)
{
    int32_t i = 0;
    while (PLANTED(1, i < n) && text[i] != 0) /* BUG: out-of-bounds read */
        i++;
    return n - i;
}

/* lower_bound: the search looks at the element after the last. */
int32_t lower_bound(const int32_t *sorted, int32_t n, int32_t value)
{
    int32_t low = 0, high = n;
    while (PLANTED(low <= high, low < high)) {
        int32_t middle = (low + high) / 2;
        if (sorted[middle] < value) /* BUG: out-of-bounds read */
            low = middle + 1;
        else
            high = middle - PLANTED(1, 0);
    }
    return low;
}

/* shift_delay_line: moves one sample too many. */
void shift_delay_line(int16_t *line, int32_t n, int16_t sample)
{
    for (int32_t i = 0; i < PLANTED(n, n - 1); i++) {
        int16_t next = line[i + 1]; /* BUG: out-of-bounds read */
        HIDE(next);
        line[i] = next;
    }
    line[n - 1] = sample;
}

/* copy_block: memcpy of one element too many. */
int32_t copy_block(const int32_t *x, int32_t *out, int32_t n)
{
    memcpy(out, x, (size_t)(n + PLANTED(1, 0)) * sizeof *x); /* BUG: out-of-bounds read */
    return out[0];
}

/* depthwise: multipliers are per output channel, and this counts inputs. */
void depthwise(const int8_t *x, const int32_t *multipliers, int32_t channels, int32_t times,
               int32_t *out)
{
    for (int32_t c = 0; c < channels; c++)
        for (int32_t m = 0; m < times; m++)
            out[c * times + m] =
                x[PLANTED(c * times + m, c)] * multipliers[c]; /* BUG: out-of-bounds read */
}

/* first_of: the first element is read before the length is looked at. */
int32_t first_of(const int16_t *x, int32_t n)
{
    int32_t best = INT16_MIN;
#ifdef BUG
    best = x[0]; /* BUG: out-of-bounds read */
#endif
    for (int32_t i = 0; i < n; i++)
        best = x[i] > best ? x[i] : best;
    return best;
}

/* sum_backwards: counts down to the element before the first. */
int32_t sum_backwards(const int8_t *x, int32_t n)
{
    int32_t sum = 0;
    for (const int8_t *p = x + n - 1; p >= x - PLANTED(1, 0); p--)
        sum += *p; /* BUG: out-of-bounds read */
    return sum;
}

/* bilinear: the right neighbour of the last column. */
void bilinear(const uint8_t *row, int32_t width, int32_t scale, uint8_t *out)
{
    for (int32_t i = 0; i < width * scale; i++) {
        int32_t left = i / scale, right = left + 1;
        if (PLANTED(0, 1) && right > width - 1)
            right = width - 1;
        int32_t part = i % scale;
        out[i] = (uint8_t)((row[left] * (scale - part) + row[right] * part) / scale); /* BUG: out-of-bounds read */
    }
}

/* conv2d_same: the row above the first is skipped, the one below the last is not. */
void conv2d_same(const int8_t *x, const int8_t *weights, int32_t height, int32_t width, int32_t *out)
{
    for (int32_t y = 0; y < height; y++)
        for (int32_t c = 0; c < width; c++) {
            int32_t sum = 0;
            for (int32_t dy = -1; dy <= 1; dy++)
                if (y + dy >= 0 && y + dy < height + PLANTED(1, 0))
                    sum += x[(y + dy) * width + c] * weights[dy + 1]; /* BUG: out-of-bounds read */
            out[y * width + c] = sum;
        }
}

/* block_max: reads four words at once with the core's multiple load. */
int32_t block_max(const int32_t *x, int32_t n)
{
    int32_t best = INT32_MIN, i = 0;
    for (; i < PLANTED(n, n - 3); i += 4) {
        int32_t block[4];
#if defined(__arm__)
        const int32_t *from = x + i, *end = from;
        int32_t *to = block;
        __asm__ volatile("ldm %0!, {r2, r3, r4, r5}" : "+l"(end) : : "r2", "r3", "r4", "r5", "memory"); /* BUG: out-of-bounds read */
        for (int32_t k = 0; k < 4; k++)
            to[k] = from[k];
#else
        memcpy(block, x + i, sizeof block); /* BUG: out-of-bounds read */
#endif
        for (int32_t k = 0; k < 4; k++)
            best = block[k] > best ? block[k] : best;
    }
    for (; i < n; i++)
        best = x[i] > best ? x[i] : best;
    return best;
}
