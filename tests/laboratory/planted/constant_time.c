/* Times that tell something about the values. */
#include "planted.h"

/* same_tag: stops at the first byte that differs. */
int32_t same_tag(const uint8_t *x, const uint8_t *y, int32_t n)
{
    uint32_t differs = 0;
    for (int32_t i = 0; i < n; i++) {
        differs |= (uint32_t)(x[i] ^ y[i]);
        if (PLANTED(differs != 0, 0)) /* BUG: not constant time */
            break;
    }
    return differs == 0;
}

/* power_mod: multiplies for the bits of the key that are set. */
uint32_t power_mod(uint32_t base, uint32_t key)
{
    uint32_t result = 1;
    base &= 0xFFFF;
    for (int32_t bit = 0; bit < 16; bit++) {
        uint32_t product = result * base & 0xFFFF, set = key >> bit & 1;
        HIDE(set);
#ifdef BUG
        if (set) { /* BUG: not constant time */
            HIDE(product);
            result = product;
        }
#else
        uint32_t mask = 0u - set;
        HIDE(mask);
        result = (product & mask) | (result & ~mask);
#endif
        base = base * base & 0xFFFF;
    }
    return result;
}

/* weight_of: as many rounds as bits are set. */
int32_t weight_of(uint32_t key)
{
    int32_t weight = 0;
#ifdef BUG
    while (key) { /* BUG: not constant time */
        key &= key - 1;
        HIDE(key);
        weight++;
    }
#else
    for (int32_t bit = 0; bit < 32; bit++)
        weight += (int32_t)(key >> bit & 1);
#endif
    return weight; /* BUG: not constant time */
}

/* saturate_all: a value that saturates takes another way. */
void saturate_all(int32_t *x, int32_t n)
{
    for (int32_t i = 0; i < n; i++) {
#ifdef BUG
        if (x[i] > 127) { /* BUG: not constant time */
            int32_t limit = 127;
            HIDE(limit);
            __asm__ volatile("nop\n\tnop");
            x[i] = limit;
        }
#else
        int32_t over = 127 - x[i];
        HIDE(over);
        over >>= 31;
        HIDE(over);
        x[i] = (x[i] & ~over) | (127 & over);
#endif
    }
}

/* skip_zeros: leaves out what is multiplied by zero. */
int32_t skip_zeros(const int8_t *x, const int8_t *weights, int32_t n)
{
    int32_t sum = 0;
    for (int32_t i = 0; i < n; i++) {
        int32_t factor = weights[i];
        HIDE(factor);
        if (PLANTED(factor == 0, 0)) /* BUG: not constant time */
            continue;
        sum += x[i] * factor;
        HIDE(sum);
    }
    return sum;
}

/* remainder_of: subtracts as long as it can. */
uint32_t remainder_of(uint32_t x, uint32_t modulus)
{
    x &= 0xFF;
    modulus = (modulus & 0xF) | 0x10;
#ifdef BUG
    while (x >= modulus) { /* BUG: not constant time */
        x -= modulus;
        HIDE(x);
    }
#else
    for (int32_t bit = 3; bit >= 0; bit--) {
        uint32_t less = x - (modulus << bit), keep = (uint32_t)((int32_t)less >> 31);
        HIDE(keep);
        x = (x & keep) | (less & ~keep);
    }
#endif
    return x; /* BUG: not constant time */
}

/* select_row: reads as many rows as the secret says. */
int32_t select_row(const int32_t *table, int32_t rows, int32_t secret)
{
    int32_t found = 0;
    HIDE(rows);
    for (int32_t i = 0; i < PLANTED(secret + 1, rows); i++) { /* BUG: not constant time */
        uint32_t off = (uint32_t)(i ^ secret); /* BUG: not constant time */
        uint32_t mask = ((off | (0u - off)) >> 31) - 1; /* BUG: not constant time */
        HIDE(mask);
        found |= (int32_t)((uint32_t)table[i] & mask); /* BUG: not constant time */
    }
    return found;
}
