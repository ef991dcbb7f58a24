/* Code whose result depends on the compiler, its level or the core. */
#include "planted.h"

/* float_bits: bits of a float through a pointer of another type. */
static NOINLINE int32_t stored(PLANTED(int32_t, float) *bits, float *value)
{
    *bits = 1;
    *value = 2.0f;
    return (int32_t)*bits; /* BUG: strict aliasing, -O0 and -O2 */
}

int32_t float_bits(float *cell)
{
    return stored((void *)cell, cell) PLANTED(, - 1);
}

/* scale_into: restrict promises that input and output do not overlap. */
static NOINLINE int32_t add_into(int32_t *PLANTED(restrict, ) out, const int32_t *PLANTED(restrict, ) x)
{
    *out = 5;
    *out += *x;
    return *out + *x; /* BUG: restrict, -O0 and -O2 */
}

int32_t scale_into(int32_t *cell)
{
    int32_t *same = cell;
    HIDE(same);
    return add_into(cell, same);
}

/* shift_wide: a shift by the register's width gives what the core gives. */
static NOINLINE uint32_t shifted(uint32_t x, uint32_t by)
{
    return PLANTED(1, by < 32) ? x >> by : 0; /* BUG: shift by 32, Arm and RISC-V */
}

uint32_t shift_wide(uint32_t x, uint32_t by)
{
    return shifted(x, by & 63);
}

/* divide: by zero. */
static NOINLINE int32_t divided(int32_t x, int32_t by)
{
    return PLANTED(1, by != 0) ? x / by : 0; /* BUG: division by zero, Arm and RISC-V */
}

int32_t divide(int32_t x, int32_t by)
{
    return divided(x & 0xFFFF, by & 3);
}

/* float_to_int: a NaN as an integer. */
int32_t float_to_int(float x)
{
    return PLANTED(1, x == x && x < 1e9f && x > -1e9f) ? (int32_t)x : 0; /* BUG: NaN, Arm and RISC-V */
}

/* sum_of_char: plain char is signed on this machine and unsigned on Arm and RISC-V. */
int32_t sum_of_char(const uint8_t *x, int32_t n)
{
    int32_t sum = 0;
    for (int32_t i = 0; i < n; i++)
        sum += (PLANTED(char, unsigned char))x[i]; /* BUG: char, Arm and the host */
    return sum;
}

/* parse_record: how many bytes an enumeration has is the compiler's choice. */
enum kind { EMPTY, NUMBER };
struct record { PLANTED(enum kind, uint32_t) kind; int8_t value; };

int32_t parse_record(const uint8_t *packet)
{
    struct record record;
    memcpy(&record, packet, sizeof record);
    return record.kind == NUMBER ? record.value : 0; /* BUG: enum, zig and GCC */
}

/* uninitialised_sum: a local that is set for some inputs only. */
static NOINLINE void set_if(int32_t *value, int32_t x)
{
    if (x > 0 PLANTED(, || 1))
        *value = x;
}

int32_t uninitialised_sum(int32_t x)
{
    int32_t value;
    set_if(&value, x);
    return value; /* BUG: uninitialised, -O0 and -O2 */
}

/* overflow_check: a test for overflow that the compiler may drop. */
int32_t overflow_check(int32_t x, int32_t y)
{
    int32_t by = y & 0x7FFFFFFF;
    return PLANTED(x + by < x, x > INT32_MAX - by); /* BUG: signed overflow, -O0 and -O2 */
}
