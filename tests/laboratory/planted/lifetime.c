/* Memory that is not a kernel's any more, or never was its to write. */
#include "planted.h"

/* sum_later: the pointer is kept beyond the call; `remember` keeps it. */
static const int32_t *kept;
static int32_t copied[8];

void remember(const int32_t *x)
{
    memcpy(copied, x, sizeof copied);
    kept = PLANTED(x, copied);
}

int32_t sum_later(void)
{
    int32_t sum = 0;
    for (int32_t i = 0; i < 8; i++)
        sum += kept[i]; /* BUG: use after free */
    return sum;
}

/* finish_later: writes the result where an earlier call's output was; `start` keeps the pointer. */
static int32_t *output, own_result;

void start(int32_t *out)
{
    *out = 0;
    own_result = 0;
    output = PLANTED(out, &own_result);
}

void finish_later(int32_t value)
{
    *output = value; /* BUG: use after free */
}

/* next_state: a cell keeps its caller's state instead of a copy; `first_state` sets it. */
static struct { int16_t *values, copy[4]; } cell;

void first_state(int16_t *state)
{
    memcpy(cell.copy, state, sizeof cell.copy);
    cell.values = PLANTED(state, cell.copy);
}

int32_t next_state(int32_t x)
{
    int32_t sum = x;
    for (int32_t i = 0; i < 4; i++)
        sum += cell.values[i]; /* BUG: use after free */
    return sum;
}

/* normalize: the input's mean is taken off in place, though it is const. */
void normalize(const int16_t *x, int16_t *out, int32_t n)
{
    int32_t sum = 0;
    HIDE(out);
    int16_t *work = PLANTED((int16_t *)(uintptr_t)x, out);
    for (int32_t i = 0; i < n; i++)
        sum += x[i];
    int16_t mean = (int16_t)(sum / n);
    HIDE(work);
    for (int32_t i = 0; i < n; i++)
        work[i] = (int16_t)(x[i] - mean); /* BUG: write to const */
}

/* parse_fields: ends each field in the text itself, as strtok does. */
int32_t parse_fields(const char *text, int32_t n, char *work)
{
    char *at = PLANTED((char *)(uintptr_t)text, work);
    int32_t fields = 1;
    memcpy(work, text, (size_t)n);
    HIDE(at);
    for (int32_t i = 0; i < n; i++)
        if (at[i] == ',') {
            at[i] = 0; /* BUG: write to const */
            fields++;
        }
    return fields;
}

/* reorder_weights: packs the weights in their own memory. */
int32_t reorder_weights(const int8_t *weights, int8_t *packed, int32_t pairs)
{
    memcpy(packed, weights, (size_t)pairs * 2);
    uintptr_t address = (uintptr_t)PLANTED(weights, packed);
    HIDE(address);
    for (int32_t i = 0; i < pairs; i++) {
        int8_t *pair = (int8_t *)address + 2 * i, swapped = pair[0];
        pair[0] = pair[1]; /* BUG: write to const */
        pair[1] = swapped; /* BUG: write to const */
    }
    return packed[0];
}

/* clamp_all: destination and source of memmove exchanged. */
int32_t clamp_all(const int8_t *x, int8_t *out, int32_t n)
{
    const int8_t *from = PLANTED(out, x);
    int8_t *to = PLANTED((int8_t *)(uintptr_t)x, out);
    memmove(to, from, (size_t)n); /* BUG: write to const */
    return out[0];
}

/* set_gain: a constant of the program itself, in flash. */
const int32_t default_gain = 7;
int32_t gain;

int32_t set_gain(int32_t value)
{
    int32_t *where = PLANTED((int32_t *)(uintptr_t)&default_gain, &gain);
    HIDE(where);
    *where = value; /* BUG: write to const or write to read-only memory */
    return default_gain + gain;
}

/* patch_code: writes an instruction over a function. */
uint16_t shadow;

NOINLINE int32_t patched(int32_t value)
{
    HIDE(value);
    return value + 1;
}

int32_t patch_code(int32_t value)
{
    uintptr_t where = PLANTED((uintptr_t)patched & ~(uintptr_t)1, (uintptr_t)&shadow);
    HIDE(where);
    *(volatile uint16_t *)where = 0; /* BUG: store to code */
    return patched(value);
}

/* moving_average: the address of a local array is returned and read by the caller. */
static NOINLINE int32_t *window_of(const int32_t *x, int32_t *window)
{
    int32_t local[4];
    int32_t *result = local;
    HIDE(result);
    HIDE(window);
    result = PLANTED(result, window);
    for (int32_t i = 0; i < 4; i++)
        result[i] = x[i];
    HIDE(result);
    return result;
}

int32_t moving_average(const int32_t *x, int32_t *out)
{
    const int32_t *window = window_of(x, out);
    return (window[0] + window[1] + window[2] + window[3]) / 4; /* BUG: use after return */
}
