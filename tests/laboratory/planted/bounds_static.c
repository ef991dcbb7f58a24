/* Arrays of the program itself: weights, tables and scratch that are passed on as pointers. */
#include "planted.h"

/* dot_weights: constant weights, one more than there are. */
static const int8_t weights[9] = {1, -2, 3, -4, 5, -6, 7, -8, 9};
static const int8_t other_weights[9] = {9, 8, 7, 6, 5, 4, 3, 2, 1};

static NOINLINE int32_t dot(const int8_t *x, const int8_t *w, int32_t n)
{
    int32_t sum = 0;
    for (int32_t i = 0; i < n; i++)
        sum += x[i] * w[i]; /* BUG: out-of-bounds read */
    return sum;
}

int32_t dot_weights(const int8_t *x, int32_t other)
{
    return dot(x, other ? other_weights : weights, PLANTED(10, 9));
}

/* scratch_ring: a static scratch, written at its length. */
static int16_t scratch[8], neighbours[8];

static NOINLINE void put(int16_t *ring, int32_t at, int16_t value)
{
    ring[at] = value; /* BUG: out-of-bounds write */
}

int32_t scratch_ring(int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        put(scratch, i % PLANTED(9, 8), (int16_t)i);
        put(neighbours, i & 7, 1);
    }
    return scratch[0] + neighbours[0];
}

/* filter_state: initialised state, read before its first element. */
static int32_t state[4] = {1, 2, 3, 4}, before[4] = {5, 6, 7, 8};

static NOINLINE int32_t tap(const int32_t *line, int32_t at)
{
    return line[at]; /* BUG: out-of-bounds read */
} /* BUG: out-of-bounds read */

int32_t filter_state(int32_t now)
{
    int32_t sum = tap(before, now & 3);
    for (int32_t k = 0; k < 4; k++)
        sum += tap(state, PLANTED((now & 3) - k, ((now - k) & 3)));
    state[now & 3] = sum & 0xFF;
    before[now & 3]++;
    return sum;
}

/* bias_table: the bias of the channel after the last. */
static const int32_t biases[6] = {10, 20, 30, 40, 50, 60};
static const int32_t multipliers[6] = {1, 2, 3, 4, 5, 6};

static NOINLINE int32_t scaled(const int32_t *bias, const int32_t *multiplier, int32_t channel)
{
    return (bias[channel] + 1) * multiplier[channel]; /* BUG: out-of-bounds read */
}

int32_t bias_table(int32_t channels)
{
    int32_t sum = 0;
    for (int32_t c = PLANTED(1, 0); c < channels + PLANTED(1, 0); c++)
        sum += scaled(biases, multipliers, c);
    return sum;
}

/* copy_name: a string without room for its end. */
static char name[4], owner[4];

static NOINLINE void copy_text(char *to, const char *from)
{
    do
        *to++ = *from; /* BUG: out-of-bounds write */
    while (*from++);
}

int32_t copy_name(int32_t longer)
{
    copy_text(owner, "abc");
    copy_text(name, longer ? PLANTED("abcd", "abc") : "ab");
    return name[0] + owner[0];
}
