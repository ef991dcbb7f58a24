/* What Arm's instructions of 16 bits do to bits: DDI0403E A5.2. */
#ifndef COVP_BITS_THUMB_SHORT_H
#define COVP_BITS_THUMB_SHORT_H

#include "bits_arm.h"

static void thumb_data(Tracked *t, uint32_t i, bool flags) {
    static const uint8_t operators[16] = {DO_AND, DO_EOR, 0, 0, 0, DO_ADC, DO_SBC, 0,
                                          DO_AND, 0, DO_SUB, DO_ADD, DO_ORR, 0, DO_BIC, 0};
    uint32_t to = i & 7, op = i >> 6 & 15;
    Bits a = arm(t, to), b = arm(t, i >> 3 & 7);
    if ((op >= 2 && op <= 4) || op == 7) { /* shifts */
        Bits result = shifted_by(op == 7 ? SHIFT_ROUND : op - 2, with_carry(t, a), b, 255);
        if (flags) set_nzc(t, result);
        set_arm(t, to, result);
    } else if (op == 9) {
        subtract_arm(t, to, known(0), b, flags);
    } else if (op == 13) { /* muls */
        Bits result = with_carry(t, product(a, b));
        if (flags) set_nzc(t, result);
        set_arm(t, to, result);
    } else if (op == 15) { /* mvn */
        operate(t, DO_ORN, to, known(0), with_carry(t, b), flags);
    } else {
        bool tests = op == 8 || op == 10 || op == 11;
        operate(t, operators[op], tests ? PC : to, a, with_carry(t, b), flags || tests);
    }
}

static void thumb_high(Tracked *t, uint32_t i) {
    uint32_t to = (i & 7) | (i >> 4 & 8), from = i >> 3 & 15;
    switch (i >> 8 & 3) {
    case 0: set_arm(t, to, sum(arm(t, to), arm(t, from))); break;
    case 1: subtract_arm(t, PC, arm(t, to), arm(t, from), true); break;
    case 2: set_arm(t, to, arm(t, from)); break;
    default:
        set_arm(t, PC, arm(t, from)); /* bx, blx */
        if (i & 0x80) set_arm(t, LR, known((t->pc + 2) | 1));
    }
}

/* Registers one after the other, from an address on. */
static void thumb_block(Tracked *t, bool loads, uint64_t data, uint32_t base, bool down, bool writes) {
    uint32_t bytes = 4 * one_bits(data);
    Bits first = arm(t, base), start = down ? difference(first, known(bytes)) : first;
    access_words(t, loads, data, start);
    if (writes) set_arm(t, base, down ? start : sum(first, known(bytes)));
}

static void thumb_misc(Tracked *t, uint32_t i) {
    uint32_t to = i & 7;
    Bits from = arm(t, i >> 3 & 7);
    if ((i & 0xf500) == 0xb100) decide(t, DECIDES_BRANCH, is_equal(arm(t, to), known(0))); /* cbz */
    else if ((i & 0xfe00) == 0xb400) thumb_block(t, false, (i & 0xff) | (i >> 8 & 1) << LR, SP, true, true);
    else if ((i & 0xfe00) == 0xbc00) thumb_block(t, true, (i & 0xff) | (i >> 8 & 1) << PC, SP, false, true);
    else if ((i & 0xff00) == 0xb200) set_arm(t, to, part(from, 0, i & 0x40 ? 8 : 16, !(i & 0x80)));
    else if ((i & 0xffc0) == 0xba00) set_arm(t, to, moved(from, swap_bytes));
    else if ((i & 0xffc0) == 0xba40) set_arm(t, to, moved(from, swap_halves));
    else if ((i & 0xffc0) == 0xbac0) set_arm(t, to, sign_extended(moved(from, swap_halves), 16));
    else if ((i & 0xff00) == 0xb000)
        set_arm(t, SP, sum(arm(t, SP), known(i & 0x80 ? -4ull * (i & 127) : 4 * (i & 127))));
    else if ((i & 0xff00) == 0xbf00 && i & 15) t->it = (uint8_t)i;
}

static void thumb_short_access(Tracked *t, uint32_t i) {
    static const uint8_t bytes[8] = {4, 2, 1, 1, 4, 2, 1, 2};
    uint32_t to = i & 7, wide = i >> 8 & 7, by = i >> 6 & 31;
    Bits base = arm(t, i >> 3 & 7);
    bool loads = i >> 11 & 1;
    switch (i >> 12) {
    case 5: {
        uint32_t op = i >> 9 & 7;
        access_memory(t, op >= 3, R(to), bytes[op], sum(base, arm(t, by & 7)), op == 3 || op == 7);
        break;
    }
    case 6: access_memory(t, loads, R(to), 4, sum(base, known(4 * by)), false); break;
    case 7: access_memory(t, loads, R(to), 1, sum(base, known(by)), false); break;
    case 8: access_memory(t, loads, R(to), 2, sum(base, known(2 * by)), false); break;
    case 9: access_memory(t, loads, R(wide), 4, arm(t, SP), false); break;
    default: thumb_block(t, loads, i & 0xff, wide, false, !(loads && i >> wide & 1));
    }
}

static void thumb_short(Tracked *t, uint32_t i, bool flags) {
    uint32_t to = i & 7, wide = i >> 8 & 7;
    Bits from = arm(t, i >> 3 & 7), number = known(i & 0xff);
    switch (i >> 12) {
    case 0: case 1:
        if (i >> 11 == 3) {
            Bits other = i & 0x400 ? known(i >> 6 & 7) : arm(t, i >> 6 & 7);
            operate(t, i & 0x200 ? DO_SUB : DO_ADD, to, from, other, flags);
        } else {
            uint32_t by = i >> 6 & 31, type = i >> 11 & 3;
            Bits result = shifted(type, with_carry(t, from), by || !type ? by : 32);
            if (flags) set_nzc(t, result);
            set_arm(t, to, result);
        }
        break;
    case 2:
        if (i & 0x800) subtract_arm(t, PC, arm(t, wide), number, true);
        else operate(t, DO_ORR, wide, known(0), with_carry(t, number), flags);
        break;
    case 3: operate(t, i & 0x800 ? DO_SUB : DO_ADD, wide, arm(t, wide), number, flags); break;
    case 4:
        if (i & 0x800) access_memory(t, true, R(wide), 4, known(0), false);
        else if (i & 0x400) thumb_high(t, i);
        else thumb_data(t, i, flags);
        break;
    case 10: set_arm(t, wide, sum(i & 0x800 ? arm(t, SP) : arm(t, PC), known(4 * (i & 0xff)))); break;
    case 11: thumb_misc(t, i); break;
    case 13:
        if ((i >> 8 & 15) < 14) decide(t, DECIDES_BRANCH, condition_of(t, i >> 8 & 15));
        break;
    case 14: t->jumps = true; break; /* b */
    default: thumb_short_access(t, i);
    }
}

#endif
