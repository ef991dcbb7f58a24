/* What GDB looks at in test_gdbserver.py, which finds lines by their remarks. */
#include <stdint.h>

volatile int32_t total;
volatile float ratio = 1.5f;
int32_t table[4] = {3, 1, 4, 1};

__attribute__((noinline)) int32_t square(int32_t x)
{
    int32_t y = x * x;                  /* at: square */
    total += y;                         /* at: add */
    return y;                           /* at: result */
}

__attribute__((noinline)) int32_t sum_squares(const int32_t *values, int32_t count)
{
    int32_t sum = 0;                    /* at: start */
    for (int32_t i = 0; i < count; i++) /* at: loop */
        sum += square(values[i]);       /* at: call */
    return sum;                         /* at: summed */
}

__attribute__((noinline)) void poke(volatile int32_t *where)
{
    *where = 7;                         /* at: poke */
}

__attribute__((noinline)) void spin(void)
{
    for (;;)
        total++;                        /* at: spin */
}

int main(void)
{
    ratio = ratio * 2.0f;               /* at: main */
    int32_t sum = sum_squares(table, 4);
    for (int32_t i = 0; i < 100; i++) sum += i & 1; /* at: long */
    if (total < 0) {
        poke(table);
        spin();
    }
    return sum;                         /* at: return */
}
