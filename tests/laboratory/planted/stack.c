/* Stacks that are too small. */
#include "planted.h"

/* depth_of: a recursion whose end is never met with odd lengths. */
NOINLINE int32_t depth_of(int32_t n) /* BUG: stack overflow */
{ /* BUG: stack overflow */
    volatile int32_t here = n;
    if (PLANTED(n == 0, n <= 0))
        return 0;
    return here + depth_of(n - 2) - here + 1; /* BUG: stack overflow */
}

/* flood_fill: one frame for each pixel of the area. */
static NOINLINE int32_t fill_from(uint8_t *pixels, int32_t n, int32_t at) /* BUG: stack overflow */
{ /* BUG: stack overflow */
    volatile int32_t saved[4] = {at, n, at, n}; /* BUG: stack overflow */
    if (at < 0 || at >= n || pixels[at])
        return 0;
    pixels[at] = 1;
    return 1 + fill_from(pixels, n, at + 1) + saved[0] - saved[2]; /* BUG: stack overflow */
}

int32_t flood_fill(uint8_t *pixels, int32_t n)
{
    int32_t filled = 0;
    for (int32_t i = 0; i < n; i += PLANTED(n, 8))
        filled += fill_from(pixels, i + PLANTED(n, 8) < n ? i + PLANTED(n, 8) : n, i);
    return filled;
}

/* big_frame: an array of the whole image on the stack. */
int32_t big_frame(const uint8_t *x, int32_t n) /* BUG: stack overflow */
{ /* BUG: stack overflow */
    uint8_t copy[PLANTED(9000, 64)];
    uint8_t *to = copy;
    int32_t sum = 0;
    HIDE(to);
    for (int32_t i = 0; i < n; i++)
        to[i] = x[i]; /* BUG: stack overflow */
    HIDE(to);
    for (int32_t i = 0; i < n; i++) /* BUG: stack overflow */
        sum += to[i]; /* BUG: stack overflow */
    return sum;
}

/* local_of_length: an array whose length is the caller's. */
int32_t local_of_length(int32_t n)
{
    uint8_t local[PLANTED(n, (n < 64 ? n : 64))];
    uint8_t *to = local;
    HIDE(to);
    to[0] = (uint8_t)n; /* BUG: stack overflow */
    HIDE(to);
    return to[0];
}

/* write_past_local: a negative index of a local array, below the frame. */
static NOINLINE void set_element(int32_t *array, int32_t at, int32_t value)
{
    array[at] = value; /* BUG: out-of-bounds write */
}

int32_t write_past_local(int32_t n)
{
    int32_t local[8] = {0};
    set_element(local, PLANTED(-4 * n, n & 7), n);
    return local[n & 7];
}

/* smash_caller: an index beyond the frames of this call, into those of whoever called. */
static NOINLINE void set_above(int32_t *array, int32_t at, int32_t value)
{
    array[at] = value; /* BUG: out-of-bounds write */
}

int32_t smash_caller(int32_t n)
{
    int32_t local[8] = {0};
    set_above(local, PLANTED(n + 8, n & 7), n);
    return local[n & 7];
}
