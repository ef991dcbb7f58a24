/* What Arm's instructions do to bits: Armv6-M to Armv8-M by DDI0403E A5 and A7, without vectors. */
#ifndef COVP_BITS_THUMB_H
#define COVP_BITS_THUMB_H

#include "bits_thumb_float.h"
#include "bits_thumb_lanes.h"
#include "bits_thumb_short.h"

static uint32_t thumb_immediate(uint32_t i) {
    uint32_t code = (i >> 26 & 1) << 11 | (i >> 12 & 7) << 8 | (i & 0xff), byte = i & 0xff;
    switch (code >> 8) {
    case 0: return byte;
    case 1: return byte << 16 | byte;
    case 2: return byte << 24 | byte << 8;
    case 3: return byte << 24 | byte << 16 | byte << 8 | byte;
    default: {
        uint32_t value = 0x80 | (code & 0x7f), by = code >> 7;
        return value >> by | value << (32 - by);
    }
    }
}

/* The second operand of operators that registers and constants share, with its carry. */
static Bits thumb_operand(const Tracked *t, uint32_t i, bool has_constant) {
    if (has_constant) {
        uint32_t value = thumb_immediate(i);
        bool turned = (i >> 26 & 1) || (i >> 14 & 1);
        return turned ? inserted(known(value), known(value >> 31), 32, 1) : with_carry(t, known(value));
    }
    uint32_t by = (i >> 12 & 7) << 2 | (i >> 6 & 3), type = i >> 4 & 3;
    Bits a = with_carry(t, arm(t, i & 15));
    if (by || !type) return shifted(type, a, by);
    if (type != SHIFT_ROUND) return shifted(type, a, 32);
    Bits turned = bits_or(right(low_word(a), 1), left(flag(t, FLAG_C), 31)); /* rrx */
    return inserted(turned, a, 32, 1);
}

static void thumb_operator(Tracked *t, uint32_t i, bool has_constant) {
    uint32_t n = i >> 16 & 15, d = i >> 8 & 15, op = i >> 21 & 15;
    Bits a = arm(t, n), b = thumb_operand(t, i, has_constant);
    if (op == 6) { /* pkhbt, pkhtb */
        bool top = i >> 5 & 1;
        set_arm(t, d, top ? inserted(a, b, 0, 16) : inserted(b, a, 0, 16));
        return;
    }
    if ((op == DO_ORR || op == DO_ORN) && n == PC) a = known(0); /* mov, mvn */
    operate(t, op, d, a, b, i >> 20 & 1);
}

/* ssat, usat, and those of two halfwords */
static void thumb_saturate(Tracked *t, uint32_t i, uint32_t by, bool is_signed) {
    uint32_t d = i >> 8 & 15, bits = (i & 31) + is_signed, shifts = i >> 21 & 1;
    int64_t low = is_signed ? -(1ll << (bits - 1)) : 0;
    int64_t high = (1ll << (is_signed ? bits - 1 : bits)) - 1;
    Bits a = arm(t, i >> 16 & 15), result = known(0);
    if (!shifts || by) {
        if (shifts || by) a = low_word(shifted(shifts ? SHIFT_SIGNED : SHIFT_LEFT, a, by));
        result = saturate(t, sign_extended(a, 32), low, high);
    } else {
        for (uint32_t n = 0; n < 32; n += 16)
            result = inserted(result, saturate(t, part(a, n, 16, true), low, high), n, 16);
    }
    set_arm(t, d, result);
}

static void thumb_plain_constant(Tracked *t, uint32_t i) {
    uint32_t n = i >> 16 & 15, d = i >> 8 & 15, low = (i >> 12 & 7) << 2 | (i >> 6 & 3);
    uint32_t twelve = (i >> 26 & 1) << 11 | (i >> 12 & 7) << 8 | (i & 0xff);
    Bits a = arm(t, n);
    switch (i >> 20 & 31) {
    case 0: set_arm(t, d, sum(a, known(twelve))); break;        /* addw, adr */
    case 10: set_arm(t, d, difference(a, known(twelve))); break; /* subw, adr */
    case 4: set_arm(t, d, known(n << 12 | twelve)); break;
    case 12: set_arm(t, d, inserted(arm(t, d), known(n << 12 | twelve), 16, 16)); break;
    case 16: case 18: thumb_saturate(t, i, low, true); break;
    case 24: case 26: thumb_saturate(t, i, low, false); break;
    case 20: set_arm(t, d, part(a, low, (i & 31) + 1, true)); break;
    case 28: set_arm(t, d, part(a, low, (i & 31) + 1, false)); break;
    case 22:
        if ((i & 31) < low) break;
        set_arm(t, d, inserted(arm(t, d), n == PC ? known(0) : a, low, (i & 31) - low + 1)); /* bfi */
        break;
    default: t->forgets = true;
    }
}

/* Of two words, tables to jump by, exclusive ones. */
static void thumb_double(Tracked *t, uint32_t i) {
    uint32_t n = i >> 16 & 15, first = i >> 12 & 15, second = i >> 8 & 15;
    bool loads = i >> 20 & 1;
    if ((i & 0xfff0ffe0) == 0xe8d0f000) { /* tbb, tbh */
        Bits at = left(arm(t, i & 15), i >> 4 & 1);
        access_memory(t, true, R(NOWHERE_TO), 1 + (i >> 4 & 1), sum(arm(t, n), at), false);
        return;
    }
    if (!(i & 0x01200000)) {
        bool whole = !(i >> 23 & 1); /* ldrex, strex; else those of bytes and halfwords */
        uint32_t bytes = whole ? 4 : 1 + (i >> 4 & 1);
        access_memory(t, loads, R(first), bytes, arm(t, n), false);
        if (!loads) set_arm(t, whole ? second : i & 15, known(0));
        return;
    }
    Bits by = known(i >> 23 & 1 ? 4 * (i & 0xff) : -4ull * (i & 0xff));
    access_words(t, loads, R(first) | R(second), i >> 24 & 1 ? sum(arm(t, n), by) : arm(t, n));
    if (first > second) t->accesses.swapped = (uint8_t)(first + 1);
    if (first == second) t->accesses.bytes = 8;
    if (i >> 21 & 1) set_arm(t, n, sum(arm(t, n), by));
}

static void thumb_multiple(Tracked *t, uint32_t i) {
    if (i >> 22 & 1) thumb_double(t, i);
    else thumb_block(t, i >> 20 & 1, i & 0xffff, i >> 16 & 15, i >> 24 & 1, i >> 21 & 1);
}

static void thumb_single(Tracked *t, uint32_t i) {
    uint32_t n = i >> 16 & 15, to = i >> 12 & 15;
    bool loads = i >> 20 & 1, indexed = false;
    Bits base = arm(t, n), by = known(i & 0xfff);
    if (n == PC) base = known(0);
    else if (!(i >> 23 & 1) && i & 0x800) {
        by = known(i >> 9 & 1 ? i & 0xff : -(uint64_t)(i & 0xff));
        indexed = i >> 8 & 1;
    } else if (!(i >> 23 & 1)) by = left(arm(t, i & 15), i >> 4 & 3);
    if (loads && to == PC && (i >> 21 & 3) != 2) return; /* pld */
    bool after = indexed && !(i >> 10 & 1);
    access_memory(t, loads, R(to), 1u << (i >> 21 & 3), after ? base : sum(base, by), i >> 24 & 1);
    if (indexed) set_arm(t, n, sum(base, by));
}

static void thumb_branch(Tracked *t, uint32_t i) {
    bool conditional = !(i & 0x5000) && (i >> 23 & 7) != 7;
    if (conditional) decide(t, DECIDES_BRANCH, condition_of(t, i >> 22 & 15));
    else if (i & 0x1000) t->jumps = true;
    if ((i & 0xd000) == 0xd000) set_arm(t, LR, known((t->pc + 4) | 1)); /* bl */
    else if ((i & 0xfff0d000) == 0xf3e08000) set_arm(t, i >> 8 & 15, known(0)); /* mrs */
    if (!conditional && (i & 0xfff0d0ff) == 0xf3e08000) set_arm(t, i >> 8 & 15, t->flags); /* ... apsr */
}

static void thumb_long(Tracked *t, uint32_t i) {
    uint32_t op = i >> 20 & 0x7f;
    bool is_vector = op & 0x40;
    switch (i >> 27 & 3) {
    case 1:
        if (is_vector) thumb_vector(t, i);
        else if (op & 0x20) thumb_operator(t, i, false);
        else thumb_multiple(t, i);
        break;
    case 2:
        if (i & 0x8000) thumb_branch(t, i);
        else if (op & 0x20) thumb_plain_constant(t, i);
        else thumb_operator(t, i, true);
        break;
    default:
        if (is_vector) thumb_vector(t, i);
        else if (op & 0x20 && op & 0x10) thumb_multiply(t, i);
        else if (op & 0x20) thumb_registers(t, i);
        else if (op & 0x10 && !(op & 1)) t->forgets = true;
        else thumb_single(t, i);
    }
}

/* What would have been without the instruction, where a condition that is undefined decides. */
static void merge(Tracked *t, const Tracked *before, Bits condition) {
    for (int n = 0; n < REGISTERS; n++) t->r[n] = chosen(condition, t->r[n], before->r[n]);
    t->flags = chosen(condition, t->flags, before->flags);
    t->fpscr = chosen(condition, t->fpscr, before->fpscr);
    t->compares = false;
    if (t->accesses.is_any) decide(t, DECIDES_ADDRESS, condition);
    if (t->jumps) decide(t, DECIDES_BRANCH, condition);
}

void track_thumb(Tracked *t, Instruction i) {
    uint32_t it = t->it, condition = it ? it >> 4 : 14;
    bool flags = !it;
    if (it) t->it = it & 7 ? (uint8_t)((it & 0xe0) | (it << 1 & 0x1f)) : 0;
    Bits happens = condition_of(t, condition);
    if (!happens.value && !happens.undefined) return;
    Tracked before = {.pc = 0};
    t->jumps = false;
    if (happens.undefined) before = *t;
    if (i.bytes == 4) thumb_long(t, i.bits);
    else thumb_short(t, i.bits, flags);
    if (happens.undefined) merge(t, &before, happens);
}

#endif
