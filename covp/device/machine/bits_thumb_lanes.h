/* What Arm's instructions on lanes, and its products, do to bits: DDI0403E A5.3.13 to A5.3.17. */
#ifndef COVP_BITS_THUMB_LANES_H
#define COVP_BITS_THUMB_LANES_H

#include "bits_arm.h"

/* -- lanes -------------------------------------------------------------------------------------------- */

/* Sums and differences of bytes or halfwords: sadd16, uqsub8, shasx ... */
static void thumb_lanes(Tracked *t, uint32_t i) {
    uint32_t op = i >> 20 & 7, kind = i >> 4 & 7, bits = op & 3 ? 16 : 8;
    bool is_signed = kind < 4;
    Bits a = arm(t, i >> 16 & 15), b = arm(t, i & 15), result = known(0);
    int64_t low = is_signed ? -(1ll << (bits - 1)) : 0;
    int64_t high = (1ll << (is_signed ? bits - 1 : bits)) - 1;
    for (uint32_t at = 0; at < 32; at += bits) {
        bool crosses = op == 2 || op == 6;
        bool subtracts = op == 4 || op == 5 || (op == 2 && !at) || (op == 6 && at);
        Bits x = part(a, at, bits, false), y = part(b, crosses ? 16 - at : at, bits, false), lane;
        if (is_signed) lane = signed_sum3(x, subtracts ? bits_not(y) : y, known(subtracts), bits);
        else lane = subtracts ? difference(x, y) : sum(x, y);
        if ((kind & 3) == 0) {
            Bits ge = part(lane, is_signed ? 63 : bits, 1, false);
            if (is_signed || subtracts) ge = negated(ge);
            for (uint32_t n = 0; n < bits / 8; n++) set_flag(t, FLAG_GE + at / 8 + n, ge);
        }
        if ((kind & 3) == 1) lane = saturated(lane, low, high);
        if ((kind & 3) == 2) lane = right(lane, 1);
        result = inserted(result, lane, at, bits);
    }
    set_arm(t, i >> 8 & 15, result);
}

static Bits selected(const Tracked *t, Bits a, Bits b) {
    Bits result = known(0);
    for (uint32_t n = 0; n < 4; n++) {
        Bits one = chosen(flag(t, FLAG_GE + n), part(a, 8 * n, 8, false), part(b, 8 * n, 8, false));
        result = inserted(result, one, 8 * n, 8);
    }
    return result;
}

static void thumb_extend(Tracked *t, uint32_t i) {
    uint32_t n = i >> 16 & 15, op = i >> 20 & 7, bits = op < 2 ? 16 : 8;
    bool is_signed = !(op & 1);
    Bits from = low_word(shifted(SHIFT_ROUND, arm(t, i & 15), (i >> 4 & 3) * 8)), result;
    if (op == 2 || op == 3) {
        Bits a = n == PC ? known(0) : arm(t, n);
        Bits low = sum(part(from, 0, 8, is_signed), a);
        Bits high = sum(part(from, 16, 8, is_signed), right(a, 16));
        result = inserted(masked(low, 0xffff), high, 16, 16);
    } else {
        Bits value = part(from, 0, bits, is_signed);
        result = n == PC ? value : sum(value, arm(t, n));
    }
    set_arm(t, i >> 8 & 15, result);
}

static void thumb_registers(Tracked *t, uint32_t i) {
    uint32_t n = i >> 16 & 15, d = i >> 8 & 15, op = i >> 20 & 15, kind = i >> 4 & 15;
    Bits a = arm(t, n), b = arm(t, i & 15);
    if (op < 8 && !kind) { /* shifts by registers */
        Bits result = shifted_by(op >> 1, with_carry(t, a), b, 255);
        if (op & 1) set_nzc(t, result);
        set_arm(t, d, result);
    } else if (op < 8) {
        thumb_extend(t, i);
    } else if (kind < 8) {
        thumb_lanes(t, i);
    } else if (op == 8) { /* qadd, qdadd, qsub, qdsub */
        Bits x = sign_extended(a, 32), y = sign_extended(b, 32);
        if (kind & 1) x = saturate(t, left(x, 1), INT32_MIN, INT32_MAX);
        Bits whole = kind & 2 ? difference(y, x) : sum(y, x);
        set_arm(t, d, saturate(t, whole, INT32_MIN, INT32_MAX));
    } else if (op == 9) {
        Bits halves = moved(b, swap_halves);
        set_arm(t, d, kind == 8 ? moved(b, swap_bytes) : kind == 9 ? halves
                      : kind == 10 ? moved(b, swap_bits) : sign_extended(halves, 16));
    } else {
        set_arm(t, d, op == 10 ? selected(t, a, b) : counted(b, leading_zeros));
    }
}

/* -- products ----------------------------------------------------------------------------------------- */

static Bits half_of(Bits word, uint32_t top) { return part(word, top ? 16 : 0, 16, true); }

/* Of the lower halves and of the upper ones; `crosses`: those of b change places. */
static Bits two_products(Bits a, Bits b, bool crosses, bool subtracts) {
    Bits low = product(half_of(a, 0), half_of(b, crosses));
    Bits high = product(half_of(a, 1), half_of(b, !crosses));
    return subtracts ? difference(low, high) : sum(low, high);
}

static void thumb_short_products(Tracked *t, uint32_t i) {
    uint32_t addend = i >> 12 & 15, op = i >> 20 & 7, kind = i >> 4 & 15;
    Bits a = arm(t, i >> 16 & 15), b = arm(t, i & 15);
    Bits wide_a = sign_extended(a, 32), wide_b = sign_extended(b, 32);
    Bits c = addend == PC ? known(0) : sign_extended(arm(t, addend), 32), result;
    bool sets_q = true;
    switch (op) {
    case 0:
        result = kind ? difference(c, product(a, b)) : sum(c, product(a, b));
        sets_q = false;
        break;
    case 1: result = sum(c, product(half_of(a, kind >> 1 & 1), half_of(b, kind & 1))); break;
    case 2: result = sum(c, two_products(a, b, kind & 1, false)); break;
    case 3: result = sum(c, right(product(wide_a, half_of(b, kind & 1)), 16)); break;
    case 4: result = sum(c, two_products(a, b, kind & 1, true)); break;
    case 5: case 6: {
        Bits p = product(wide_a, wide_b), all = op == 5 ? sum(left(c, 32), p) : difference(left(c, 32), p);
        result = right(kind & 1 ? sum(all, known(0x80000000)) : all, 32);
        sets_q = false;
        break;
    }
    default: /* usad8, usada8 */
        result = c;
        for (uint32_t n = 0; n < 32; n += 8) {
            Bits gap = difference(part(a, n, 8, false), part(b, n, 8, false));
            result = sum(result, chosen(part(gap, 63, 1, false), difference(known(0), gap), gap));
        }
        sets_q = false;
    }
    if (op == 3) result = sign_extended(result, 48);
    if (sets_q) set_q_of(t, result, INT32_MIN, INT32_MAX);
    set_arm(t, i >> 8 & 15, result);
}

static Bits quotient(Bits a, Bits b, bool is_signed) {
    int64_t x = number_of(a, is_signed), y = number_of(b, is_signed);
    return any_of(y ? (uint64_t)(x / y) : 0, 0xffffffff, a, b);
}

static void thumb_multiply(Tracked *t, uint32_t i) {
    if (!(i >> 23 & 1)) {
        thumb_short_products(t, i);
        return;
    }
    uint32_t low = i >> 12 & 15, high = i >> 8 & 15, op = i >> 20 & 7, kind = i >> 4 & 15;
    Bits a = arm(t, i >> 16 & 15), b = arm(t, i & 15);
    Bits wide_a = sign_extended(a, 32), wide_b = sign_extended(b, 32);
    Bits before = bits_or(left(arm(t, high), 32), arm(t, low)), result;
    switch (op) {
    case 0: result = product(wide_a, wide_b); break;
    case 1: case 3: set_arm(t, high, quotient(a, b, op == 1)); return;
    case 2: result = product(a, b); break;
    case 4:
        result = kind == 0   ? product(wide_a, wide_b)
                 : kind < 12 ? product(half_of(a, kind >> 1 & 1), half_of(b, kind & 1))
                             : two_products(a, b, kind & 1, false);
        result = sum(before, result);
        break;
    case 5: result = sum(before, two_products(a, b, kind & 1, true)); break;
    default: /* umlal, umaal */
        result = kind ? sum(sum(product(a, b), arm(t, low)), arm(t, high)) : sum(before, product(a, b));
    }
    set_arm(t, low, result);
    set_arm(t, high, right(result, 32));
}

#endif
