/* What Arm's floating-point instructions do to bits: DDI0403E A6. One undefined bit of an operand makes all
 * of a result undefined. Results in double precision, and of rarer operations, have no value here before
 * the next block.
 */
#ifndef COVP_BITS_THUMB_FLOAT_H
#define COVP_BITS_THUMB_FLOAT_H

#include <math.h>

#include "tracked.h"

/* The first of the single registers that a number in an instruction stands for. */
static uint32_t float_register(uint32_t i, int high, int low, bool is_double) {
    uint32_t number = i >> high & 15, bit = i >> low & 1;
    return FLOAT + (is_double ? (bit << 4 | number) * 2 % 32 : number << 1 | bit);
}

static uint64_t float_set(uint32_t first, uint32_t words) {
    return words > 31 ? 0xffffffffull << FLOAT : ((1ull << words) - 1) << (first & 63);
}

static Bits float_at(const Tracked *t, uint32_t number, bool is_double) {
    return is_double ? bits_or(left(t->r[(number + 1) & 63], 32), t->r[number]) : t->r[number];
}

static void set_float(Tracked *t, uint32_t number, bool is_double, Bits value) {
    t->r[number] = low_word(value);
    if (is_double) t->r[(number + 1) & 63] = right(value, 32);
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
        if (to_core && core == 15) t->flags = inserted(t->flags, t->float_flags, 28, 4), t->compares = false;
        else if (to_core) t->r[core] = left(t->float_flags, 28);
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
    t->float_flags = any_of(x == y ? 6 : x < y ? 8 : x > y ? 2 : 3, 15, a, b);
}

static float to_integer(float value, float low, float high) {
    return value != value ? 0 : value < low ? low : value > high ? high : value;
}

static void float_unary(Tracked *t, uint32_t i, uint32_t d, uint32_t m, bool is_double) {
    uint32_t op = i >> 16 & 15;
    bool high = i >> 7 & 1;
    uint64_t sign = is_double ? 1ull << 63 : 1u << 31, all = is_double ? ~0ull : 0xffffffff;
    if (op == 7) is_double = high; /* between single and double precision */
    if (op >= 8) { /* integers are single registers */
        bool to_integers = op >= 12;
        m = float_register(i, 0, 5, to_integers && is_double);
        d = float_register(i, 12, 22, !to_integers && is_double);
        Bits a = float_at(t, m, to_integers && is_double);
        float value = 0;
        if (op == 8) value = high ? (float)(int32_t)a.value : (float)(uint32_t)a.value;
        if (op < 12) {
            set_float(t, d, is_double, any_of(float_from(value, a, a).value, all, a, a));
        } else {
            int64_t number = op == 13 ? (int64_t)to_integer(float_of(a), -0x1p31f, 0x1.fffffep30f)
                                      : (int64_t)to_integer(float_of(a), 0, 0x1.fffffep31f);
            t->r[d] = any_of((uint64_t)number, 0xffffffff, a, a);
        }
        return;
    }
    Bits a = float_at(t, m, is_double);
    switch (op) {
    case 0: set_float(t, d, is_double, high ? masked(a, ~sign) : a); break; /* vabs, vmov */
    case 1:
        set_float(t, d, is_double, high ? float_from(sqrtf(float_of(a)), a, a) : bits_xor(a, known(sign)));
        if (high) set_float(t, d, is_double, any_of(t->r[d].value, all, a, a));
        break;
    case 4: float_compare(t, float_at(t, d, is_double), a); break;
    case 5: float_compare(t, float_at(t, d, is_double), known(0)); break;
    case 7:
        set_float(t, float_register(i, 12, 22, !high), !high, any_of(0, high ? 0xffffffff : ~0ull, a, a));
        break;
    default: set_float(t, d, is_double, any_of(0, all, a, a));
    }
}

/* VFPExpandImm of a float, A6.4.1. */
static uint32_t float_constant(uint32_t byte) {
    return (byte & 0x80) << 24 | (byte & 0x40 ? 0x3e000000 : 0x40000000) | (byte & 63) << 19;
}

static void float_arithmetic(Tracked *t, uint32_t i) {
    bool is_double = i >> 8 & 1, second = i >> 6 & 1;
    uint32_t d = float_register(i, 12, 22, is_double), n = float_register(i, 16, 7, is_double);
    uint32_t m = float_register(i, 0, 5, is_double), op = i >> 20 & 11;
    if (i >> 28 != 15 && op == 11) {
        uint32_t byte = (i >> 12 & 0xf0) | (i & 15);
        if (second) float_unary(t, i, d, m, is_double);
        else set_float(t, d, is_double, known(float_constant(byte)));
        return;
    }
    Bits a = float_at(t, n, is_double), b = float_at(t, m, is_double), c = float_at(t, d, is_double);
    float x = float_of(a), y = float_of(b), z = float_of(c), value = 0;
    bool adds = op == 0 || op == 1 || op == 9 || op == 10;
    switch (i >> 28 == 15 ? 16 : op) {
    case 0: value = second ? z - x * y : z + x * y; break;
    case 1: value = second ? x * y - z : -z - x * y; break;
    case 2: value = second ? -(x * y) : x * y; break;
    case 3: value = second ? x - y : x + y; break;
    case 8: value = x / y; break;
    case 9: value = second ? fmaf(-x, y, -z) : fmaf(x, y, -z); break;
    case 10: value = fmaf(second ? -x : x, y, z); break;
    default: adds = false; /* vsel, vmaxnm ... */
    }
    Bits other = adds && c.undefined ? c : b;
    if (i >> 28 == 15 && t->flags.undefined) other = t->flags;
    uint64_t all = is_double ? ~0ull : 0xffffffff;
    set_float(t, d, is_double, any_of(float_from(value, a, b).value, all, a, other));
}

static void thumb_vector(Tracked *t, uint32_t i) {
    if ((i >> 9 & 7) != 5) t->forgets = true;
    else if ((i & 0x0fe00000) == 0x0c400000) float_pair_move(t, i);
    else if ((i & 0x0e000000) == 0x0c000000) float_access(t, i, float_register(i, 12, 22, i >> 8 & 1));
    else if ((i & 0x0f000010) == 0x0e000010) float_move(t, i);
    else float_arithmetic(t, i);
}

#endif
