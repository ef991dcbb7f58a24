/* What Arm's floating-point instructions do to bits: DDI0403E A6; the cores' units are single precision. One
 * undefined bit of an operand makes all of a result undefined. Results of conversions from and to halves and
 * numbers with a fixed point have no value here before the next block.
 */
#ifndef COVP_BITS_THUMB_FLOAT_H
#define COVP_BITS_THUMB_FLOAT_H

#include <math.h>

#include "bits_arm.h"

/* The first of the single registers that a number in an instruction stands for. */
static uint32_t float_register(uint32_t i, int high, int low, bool is_double) {
    uint32_t number = i >> high & 15, bit = i >> low & 1;
    return FLOAT + (is_double ? (bit << 4 | number) * 2 % 32 : number << 1 | bit);
}

static uint64_t float_set(uint32_t first, uint32_t words) {
    return words > 31 ? 0xffffffffull << FLOAT : ((1ull << words) - 1) << (first & 63);
}

/* Loads and stores. */
static void float_access(Tracked *t, uint32_t i, uint32_t first) {
    uint32_t base = i >> 16 & 15, words = i & 0xff;
    bool loads = i >> 20 & 1, is_double = i >> 8 & 1;
    Bits from = base == 15 ? known(0) : t->r[base];
    uint64_t data = float_set(first, is_double ? 2 : 1);
    if ((i & 0x01200000) != 0x01000000) { /* vldm, vstm */
        Bits end = i >> 23 & 1 ? sum(from, known(4 * words)) : difference(from, known(4 * words));
        data = float_set(first, is_double ? words & ~1u : words);
        if (!(i >> 23 & 1)) from = end;
        if (i >> 21 & 1) t->r[base] = low_word(end);
    }
    access_words(t, loads, data, from);
}

/* Between core registers and others. */
static void float_move(Tracked *t, uint32_t i) {
    bool is_double = i >> 8 & 1, to_core = i >> 20 & 1;
    uint32_t core = i >> 12 & 15, which = float_register(i, 16, 7, is_double) + (is_double ? i >> 21 & 1 : 0);
    if ((i & 0x0fe00fff) == 0x0ee00a10) { /* vmrs, vmsr */
        if (!to_core) t->fpscr = t->r[core];
        else if (core < PC) t->r[core] = t->fpscr;
        else t->flags = inserted(t->flags, right(t->fpscr, FLAG_V), FLAG_V, 4), t->compares = false;
    } else if (to_core) {
        t->r[core] = t->r[which];
    } else {
        t->r[which] = t->r[core];
    }
}

static void float_pair_move(Tracked *t, uint32_t i) {
    uint32_t first = float_register(i, 0, 5, i >> 8 & 1), low = i >> 12 & 15, high = i >> 16 & 15;
    uint32_t second = (first + 1) & 63;
    if (i >> 20 & 1) t->r[low] = t->r[first], t->r[high] = t->r[second];
    else t->r[first] = t->r[low], t->r[second] = t->r[high];
}

static void float_compare(Tracked *t, Bits a, Bits b) {
    float x = float_of(a), y = float_of(b);
    Bits nzcv = any_of(x == y ? 6 : x < y ? 8 : x > y ? 2 : 3, 15, a, b);
    t->fpscr = inserted(t->fpscr, nzcv, FLAG_V, 4);
}

static void float_unary(Tracked *t, uint32_t i, uint32_t d, Bits a) {
    uint32_t op = i >> 16 & 15;
    bool high = i >> 7 & 1;
    float x = float_of(a);
    switch (op) {
    case 0: t->r[d] = high ? masked(a, 0x7fffffff) : a; break; /* vabs, vmov */
    case 1: t->r[d] = high ? float_from(sqrtf(x), a, a) : bits_xor(a, known(0x80000000)); break;
    case 3: t->r[d] = inserted(t->r[d], any_of(0, 0xffff, a, a), high ? 16 : 0, 16); break; /* to a half */
    case 4: float_compare(t, t->r[d], a); break;
    case 5: float_compare(t, t->r[d], known(0)); break;
    case 6: case 7: t->r[d] = float_from(op == 6 && high ? truncf(x) : rintf(x), a, a); break;
    case 8: t->r[d] = float_from((float)number_of(a, high), a, a); break;
    case 12: case 13: t->r[d] = integer_from(high ? x : rintf(x), op == 13, 0, a); break;
    case 2: t->r[d] = any_of(0, 0xffffffff, a, a); break; /* of a half */
    default: t->r[d] = any_of(0, 0xffffffff, t->r[d], t->r[d]); /* numbers with a fixed point */
    }
}

/* VFPExpandImm of a float, A6.4.1. */
static uint32_t float_constant(uint32_t byte) {
    return (byte & 0x80) << 24 | (byte & 0x40 ? 0x3e000000 : 0x40000000) | (byte & 63) << 19;
}

/* Those of Armv8-M: vsel, vmaxnm, vminnm, and roundings by name (DDI0553B C2.4). */
static void float_newer(Tracked *t, uint32_t i, uint32_t d, Bits a, Bits b) {
    static const uint8_t conditions[4] = {0, 6, 10, 12};
    bool second = i >> 6 & 1;
    float x = float_of(a), y = float_of(b), whole;
    if (!(i >> 23 & 1)) {
        t->r[d] = chosen(condition_of(t, conditions[i >> 20 & 3]), a, b);
    } else if ((i >> 20 & 3) != 3) {
        t->r[d] = float_from(second ? fminf(x, y) : fmaxf(x, y), a, b);
    } else {
        switch (i >> 16 & 3) {
        case 0: whole = roundf(y); break;
        case 1: whole = rintf(y); break;
        case 2: whole = ceilf(y); break;
        default: whole = floorf(y);
        }
        t->r[d] = i >> 18 & 1 ? integer_from(whole, i >> 7 & 1, 0, b) : float_from(whole, b, b);
    }
}

static void float_arithmetic(Tracked *t, uint32_t i) {
    bool second = i >> 6 & 1;
    uint32_t d = float_register(i, 12, 22, false), op = i >> 20 & 11;
    Bits a = t->r[float_register(i, 16, 7, false)], b = t->r[float_register(i, 0, 5, false)], c = t->r[d];
    float x = float_of(a), y = float_of(b), z = float_of(c), value;
    if (i >> 28 == 15) {
        float_newer(t, i, d, a, b);
        return;
    }
    switch (op) {
    case 0: value = second ? z - x * y : z + x * y; break;
    case 1: value = second ? -z - x * y : x * y - z; break;
    case 2: value = second ? -(x * y) : x * y; break;
    case 3: value = second ? x - y : x + y; break;
    case 8: value = x / y; break;
    case 9: value = second ? fmaf(-x, y, -z) : fmaf(x, y, -z); break;
    case 10: value = fmaf(second ? -x : x, y, z); break;
    default:
        if (second) float_unary(t, i, d, b);
        else t->r[d] = known(float_constant((i >> 12 & 0xf0) | (i & 15)));
        return;
    }
    bool adds = op < 2 || op == 9 || op == 10;
    t->r[d] = float_from(value, a, adds && c.undefined ? c : b);
}

static void thumb_vector(Tracked *t, uint32_t i) {
    if ((i >> 9 & 7) != 5) t->forgets = true;
    else if ((i & 0x0fe00000) == 0x0c400000) float_pair_move(t, i);
    else if ((i & 0x0e000000) == 0x0c000000) float_access(t, i, float_register(i, 12, 22, i >> 8 & 1));
    else if ((i & 0x0f000010) == 0x0e000010) float_move(t, i);
    else float_arithmetic(t, i);
}

#endif
