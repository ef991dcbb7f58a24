/* Writes outside the tensors that a call was given. */
#include "planted.h"

/* relu_s8: one element more than there are. */
void relu_s8(const int8_t *x, int8_t *out, int32_t n)
{
    for (int32_t i = 0; i < PLANTED(n + 1, n); i++) {
        int32_t k = i < n ? i : 0;
        out[i] = x[k] > 0 ? x[k] : 0; /* BUG: out-of-bounds write */
    }
}

/* pad_left: the first value of the padding lies before the output. */
void pad_left(const int16_t *x, int16_t *out, int32_t n, int32_t padding)
{
    for (int32_t i = 0; i < padding; i++)
        out[i - PLANTED(1, 0)] = -1; /* BUG: out-of-bounds write */
    for (int32_t i = 0; i < n; i++)
        out[padding + i] = x[i];
}

/* im2col: the scratch has room for whole patches, the last patch is counted twice. */
int32_t im2col(const int8_t *x, int16_t *scratch, int32_t n, int32_t k)
{
    int32_t at = 0;
    for (int32_t i = 0; i + k <= n; i++)
        for (int32_t j = 0; j < k; j++)
            scratch[at++] = x[i + j];
    for (int32_t j = 0; j < PLANTED(k, 0); j++)
        scratch[at++] = x[n - k + j]; /* BUG: out-of-bounds write */
    return at;
}

/* fill_words: rounds the length up to whole words. */
void fill_words(uint8_t *out, int32_t n, uint32_t value)
{
    int32_t i = 0;
    value = (value & 0xFF) * 0x01010101u;
    for (; i < PLANTED(n, n - 3); i += 4)
        memcpy(out + i, &value, 4); /* BUG: out-of-bounds write */
    for (; i < n; i++)
        out[i] = (uint8_t)value;
}

/* transpose: rows and columns of the output exchanged. */
void transpose(const int32_t *x, int32_t *out, int32_t rows, int32_t columns)
{
    for (int32_t r = 0; r < rows; r++)
        for (int32_t c = 0; c < columns; c++)
            out[c * PLANTED(columns, rows) + r] = x[r * columns + c]; /* BUG: out-of-bounds write */
}

/* push_all: the ring wraps one element too late. */
int32_t push_all(int32_t *ring, int32_t n, const int32_t *x, int32_t count)
{
    int32_t head = 0;
    for (int32_t i = 0; i < count; i++) {
        ring[head] = x[i]; /* BUG: out-of-bounds write */
        head = head + 1 > PLANTED(n, n - 1) ? 0 : head + 1;
    }
    return head;
}

/* upsample: twice as many outputs, and one to round off. */
void upsample(const int16_t *x, int16_t *out, int32_t n)
{
    for (int32_t i = 0; i < n; i++) {
        out[2 * i] = x[i];
        out[2 * i + PLANTED(2, 1)] = x[i]; /* BUG: out-of-bounds write */
    }
}

/* histogram: a value of exactly the maximum has no bin. */
void histogram(const uint8_t *x, int32_t n, uint32_t *bins, int32_t nbins)
{
    for (int32_t i = 0; i < n; i++)
        bins[x[i] * nbins / PLANTED(255, 256)]++; /* BUG: out-of-bounds read */
}

/* clear_scratch: the length in bytes where memset is given elements, and the other way round. */
int32_t clear_scratch(int16_t *scratch, int32_t n)
{
    memset(scratch, 0, (size_t)n * PLANTED(sizeof(int32_t), sizeof(int16_t))); /* BUG: out-of-bounds write */
    return scratch[0];
}

/* put_u16: a halfword at the last byte. */
int32_t put_u16(uint8_t *packet, int32_t n, uint32_t checksum)
{
    uint16_t low = (uint16_t)checksum;
    memcpy(packet + n - PLANTED(1, 2), &low, 2); /* BUG: out-of-bounds write */
    return packet[0];
}

/* write_pair: an output of one element gets a pair. */
void write_pair(int32_t *out, int32_t minimum, int32_t maximum)
{
    out[0] = minimum;
    HIDE(out);
    out[PLANTED(1, 0)] = maximum; /* BUG: out-of-bounds write */
}

/* scatter: an index that was not checked. */
void scatter(const int32_t *index, const int16_t *x, int16_t *out, int32_t n, int32_t size)
{
    for (int32_t i = 0; i < n; i++)
        if (index[i] < size PLANTED(, && index[i] >= 0))
            out[index[i]] = x[i]; /* BUG: out-of-bounds write */
}

/* swap_arguments: output and length of the inner call exchanged with those of the scratch. */
static NOINLINE void store_ramp(int32_t *out, int32_t n)
{
    for (int32_t i = 0; i < n; i++) {
        int32_t value = i;
        HIDE(value);
        out[i] = value; /* BUG: out-of-bounds write */
    }
}

int32_t swap_arguments(int32_t *out, int32_t n, int32_t *scratch, int32_t nscratch)
{
    store_ramp(scratch, PLANTED(n, nscratch));
    store_ramp(out, PLANTED(nscratch, n));
    return out[0] + scratch[0];
}
