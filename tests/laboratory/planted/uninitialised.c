/* Reads of memory that nothing has written. */
#include "planted.h"

/* accumulate: the scratch is added to and never cleared. */
int32_t accumulate(const int8_t *x, int32_t n, int32_t *scratch)
{
#ifndef BUG
    *scratch = 0;
#endif
    for (int32_t i = 0; i < n; i++)
        *scratch += x[i]; /* BUG: uninitialised read */
    return *scratch; /* BUG: uninitialised read */
}

/* sum_patches: the last element of the scratch is left out where it is cleared. */
int32_t sum_patches(const int16_t *x, int32_t n, int32_t *scratch, int32_t patch)
{
    for (int32_t i = 0; i < patch - PLANTED(1, 0); i++)
        scratch[i] = 0;
    for (int32_t i = 0; i < n; i++)
        scratch[i % patch] += x[i]; /* BUG: uninitialised read */
    return scratch[0];
}

/* even_only: the padding between pairs is read and was never set. */
int32_t even_only(const int16_t *x, int32_t n, int16_t *scratch)
{
    int32_t sum = 0;
    for (int32_t i = 0; i < n; i++) {
        scratch[2 * i] = x[i];
#ifndef BUG
        scratch[2 * i + 1] = 0;
#endif
    }
    HIDE(scratch);
    for (int32_t i = 0; i < 2 * n; i++)
        sum += scratch[i]; /* BUG: uninitialised read */
    return sum;
}

/* fill_and_sum: a local array of which one element too few is written. */
static NOINLINE void fill(int32_t *to, const int8_t *x, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        to[i] = x[i];
}

static NOINLINE int32_t sum_of(const int32_t *x, int32_t n)
{
    int32_t sum = 0;
    for (int32_t i = 0; i < n; i++)
        sum += x[i]; /* BUG: uninitialised read */
    return sum;
}

int32_t fill_and_sum(const int8_t *x, int32_t n)
{
    int32_t local[16];
    fill(local, x, n - PLANTED(1, 0));
    return sum_of(local, n);
}

/* quantize_with: one member of the parameters is not set. */
struct parameters { int32_t multiplier, shift, zero_point; };

static NOINLINE void prepare(struct parameters *p, int32_t multiplier)
{
    p->multiplier = multiplier;
    p->shift = 3;
#ifndef BUG
    p->zero_point = -1;
#endif
}

static NOINLINE int32_t apply(const struct parameters *p, int32_t x)
{
    int32_t scaled = x * p->multiplier >> p->shift;
    return scaled + p->zero_point; /* BUG: uninitialised read */
}

int32_t quantize_with(int32_t x, int32_t multiplier)
{
    struct parameters p;
    prepare(&p, multiplier);
    return apply(&p, x);
}

/* select_mode: copied by memcpy without harm, then a branch depends on it. */
struct options { uint8_t mode, channel; uint16_t gain; };

static NOINLINE void default_options(struct options *o)
{
    o->channel = 1;
    o->gain = 7;
#ifndef BUG
    o->mode = 2;
#endif
}

static NOINLINE int32_t run_with(const struct options *o, int32_t x)
{
    if (o->mode == 2) /* BUG: uninitialised read */
        x *= 3;
    return x * o->gain + o->channel;
}

int32_t select_mode(int32_t x)
{
    struct options defaults, own, *from = &defaults;
    default_options(from);
    HIDE(from);
    memcpy(&own, from, sizeof own); /* BUG: uninitialised read */
    return run_with(&own, x) + 1;   /* BUG: uninitialised read */
}

/* copy_padded: a structure with padding copied by assignment, and one member of it forgotten. */
struct layer { uint8_t kind; uint32_t size; uint8_t flag; uint16_t channels; };

static NOINLINE void describe(struct layer *layer, uint32_t size)
{
    layer->kind = 3;
    layer->size = size;
    layer->channels = 8;
#ifndef BUG
    layer->flag = 1;
#endif
}

static NOINLINE uint32_t cost_of(const struct layer *layer)
{
    uint32_t cost = layer->kind * layer->size * layer->channels;
    return layer->flag ? cost : 0; /* BUG: uninitialised read */
}

uint32_t copy_padded(uint32_t size)
{
    struct layer first, second, *from = &first;
    describe(from, size);
    HIDE(from);
    second = *from; /* BUG: uninitialised read */
    return cost_of(&second) + 1; /* BUG: uninitialised read */
}

/* first_run: a state that is only set from the second run on. */
int32_t first_run(int32_t *state, int32_t runs, int32_t x)
{
    for (int32_t run = 0; run < runs; run++) {
        if (run > PLANTED(0, -1) && run < 1 + PLANTED(1, 0))
            *state = x;
        HIDE(state);
        x += *state; /* BUG: uninitialised read */
    }
    return x;
}

/* word_of_bytes: three of the four bytes of a word are set. */
uint32_t word_of_bytes(const uint8_t *x, uint8_t *scratch)
{
    for (int32_t i = 0; i < PLANTED(3, 4); i++) {
        uint8_t byte = x[i];
        HIDE(byte);
        scratch[i] = byte;
    }
    HIDE(scratch);
    return *(const uint32_t *)(const void *)scratch * 3; /* BUG: uninitialised read */
}

/* first_result: returns what a first round would have set. */
int32_t first_result(int32_t *best, int32_t rounds)
{
    for (int32_t i = PLANTED(1, 0); i <= rounds; i++)
        *best = 7 * i;
    HIDE(best);
    return *best; /* BUG: uninitialised read */
} /* BUG: uninitialised read */

/* pass_by_value: a structure with padding as argument and as result, one member of it forgotten. */
static NOINLINE struct layer shaped(uint32_t size)
{
    struct layer layer, *to = &layer;
    HIDE(to);
    to->kind = 1;
    to->size = size;
    to->flag = 0;
#ifndef BUG
    to->channels = 3;
#endif
    HIDE(to);
    return *to;
}

static NOINLINE uint32_t area(struct layer layer)
{
    return layer.size * layer.channels + layer.flag; /* BUG: uninitialised read */
}

uint32_t pass_by_value(uint32_t size)
{
    struct layer layer = shaped(size), copies[2], *to = copies;
    HIDE(to);
    to[0] = layer;
    memmove(to + 1, to, sizeof *to);
    HIDE(to);
    return area(to[1]); /* BUG: uninitialised read */
}

/* checksum: the unused part of a buffer goes into its sum. */
static NOINLINE uint32_t sum_bytes(const uint8_t *bytes, int32_t n)
{
    uint32_t sum = 0;
    for (int32_t i = 0; i < n; i++)
        sum = sum * 31 + bytes[i]; /* BUG: uninitialised read */
    return sum;
}

uint32_t checksum(const uint8_t *message, int32_t n)
{
    uint8_t frame[32];
    memcpy(frame, message, (size_t)n);
    HIDE(n);
    return sum_bytes(frame, PLANTED((int32_t)sizeof frame, n));
}

/* keep_history: a copy of a buffer that has one unwritten sample carries it along. */
int32_t keep_history(const int16_t *x, int32_t n, int16_t *history, int16_t *saved)
{
    for (int32_t i = 0; i < n - PLANTED(1, 0); i++)
        history[i] = x[i];
    HIDE(history);
    memcpy(saved, history, (size_t)n * sizeof *history);
    HIDE(saved);
    int32_t energy = 0;
    for (int32_t i = 0; i < n; i++)
        energy += saved[i] * saved[i]; /* BUG: uninitialised read */
    return energy;
}

/* look_up: an index that nothing has set. */
struct cursor { int32_t row, column; };

static NOINLINE void to_start(struct cursor *at)
{
    at->row = 0;
#ifndef BUG
    at->column = 2;
#endif
}

static NOINLINE int32_t element(const int32_t *table, const struct cursor *at)
{
    int32_t column = at->column & 3; /* BUG: uninitialised read */
    return table[at->row + column];  /* BUG: uninitialised read */
} /* BUG: uninitialised read */

int32_t look_up(const int32_t *table)
{
    struct cursor at;
    to_start(&at);
    return element(table, &at) + 1; /* BUG: uninitialised read */
}

/* float_gain: a float that is compared before it has a value. */
static NOINLINE void set_gains(float *gains, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        gains[i] = 0.5f * (float)i;
}

static NOINLINE int32_t above(const float *gains, int32_t n, float limit)
{
    int32_t count = 0;
    for (int32_t i = 0; i < n; i++)
        if (gains[i] > limit) /* BUG: uninitialised read */
            count++;
    return count;
}

int32_t float_gain(int32_t n, float limit)
{
    float gains[8];
    set_gains(gains, n - PLANTED(1, 0));
    return above(gains, n, limit) + 1;
}

/* count_rounds: the end of a loop that nothing has set. */
int32_t count_rounds(int32_t *limits, int32_t start)
{
    int32_t rounds = 0;
    limits[0] = start;
    limits[PLANTED(2, 1)] = start + 3;
    HIDE(limits);
    for (int32_t i = limits[0]; i < limits[1]; i++) /* BUG: uninitialised read */
        rounds++;
    return rounds;
}
