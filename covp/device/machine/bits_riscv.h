/* What RISC-V's instructions do to bits: RV32IMAFC by the unprivileged ISA manual 20191213. */
#ifndef COVP_BITS_RISCV_H
#define COVP_BITS_RISCV_H

#include <math.h>

#include "tracked.h"

static void set_riscv(Tracked *t, uint32_t number, Bits value) {
    if (number) t->r[number] = low_word(value);
}

static Bits high_product(Bits a, Bits b) { return right(product(a, b), 32); }

static Bits divided(Bits a, Bits b, uint32_t kind) {
    bool is_signed = !(kind & 1), remains = kind & 2;
    int64_t x = number_of(a, is_signed), y = number_of(b, is_signed);
    int64_t value = remains ? (y ? x % y : x) : (y ? x / y : -1);
    return any_of((uint64_t)value, 0xffffffff, a, b);
}

static Bits multiplied(Bits a, Bits b, uint32_t kind) {
    switch (kind) {
    case 0: return product(a, b);
    case 1: return high_product(sign_extended(a, 32), sign_extended(b, 32));
    case 2: return high_product(sign_extended(a, 32), b);
    case 3: return high_product(a, b);
    default: return divided(a, b, kind);
    }
}

static void riscv_registers(Tracked *t, uint32_t d, Bits a, Bits b, uint32_t key) {
    enum { OTHER = 0x20 << 3 };
    Bits result;
    switch (key) {
    case 0: result = sum(a, b); break;
    case OTHER: result = difference(a, b); break;
    case 1: result = shifted_by(SHIFT_LEFT, a, b, 31); break;
    case 2: result = is_less(a, b); break;
    case 3: result = is_below(a, b); break;
    case 4: result = bits_xor(a, b); break;
    case 5: result = shifted_by(SHIFT_RIGHT, a, b, 31); break;
    case OTHER | 5: result = shifted_by(SHIFT_SIGNED, a, b, 31); break;
    case 6: result = bits_or(a, b); break;
    case 7: result = bits_and(a, b); break;
    default: result = multiplied(a, b, key & 7);
    }
    set_riscv(t, d, result);
}

static void riscv_constant(Tracked *t, uint32_t i) {
    uint32_t d = i >> 7 & 31, by = i >> 20 & 31;
    Bits a = t->r[i >> 15 & 31], number = known((uint32_t)((int32_t)i >> 20)), result;
    switch (i >> 12 & 7) {
    case 0: result = sum(a, number); break;
    case 1: result = left(a, by); break;
    case 2: result = is_less(a, number); break;
    case 3: result = is_below(a, number); break;
    case 4: result = bits_xor(a, number); break;
    case 6: result = bits_or(a, number); break;
    case 7: result = bits_and(a, number); break;
    default: result = right(i >> 30 & 1 ? sign_extended(a, 32) : a, by);
    }
    set_riscv(t, d, result);
}

/* beq, bne, blt, bge, bltu, bgeu */
static void riscv_branch(Tracked *t, uint32_t kind, Bits a, Bits b) {
    decide(t, DECIDES_BRANCH, kind < 2 ? is_equal(a, b) : kind < 6 ? is_less(a, b) : is_below(a, b));
}

static void riscv_float(Tracked *t, uint32_t i) {
    uint32_t d = i >> 7 & 31, kind = i >> 12 & 7;
    Bits a = t->r[FLOAT + (i >> 15 & 31)], b = t->r[FLOAT + (i >> 20 & 31)], core = t->r[i >> 15 & 31];
    float x = float_of(a), y = float_of(b), value = 0;
    Bits sign = masked(b, 0x80000000), rest = masked(a, 0x7fffffff);
    switch (i >> 25) {
    case 0x00: value = x + y; break;
    case 0x04: value = x - y; break;
    case 0x08: value = x * y; break;
    case 0x0c: value = x / y; break;
    case 0x10: /* fsgnj, fsgnjn, fsgnjx */
        if (kind) sign = bits_xor(sign, kind == 1 ? known(0x80000000) : masked(a, 0x80000000));
        t->r[FLOAT + d] = bits_or(rest, sign);
        return;
    case 0x14: value = kind ? fmaxf(x, y) : fminf(x, y); break;
    case 0x2c: value = sqrtf(x), b = a; break;
    case 0x50: set_riscv(t, d, any_of(kind == 2 ? x == y : kind ? x < y : x <= y, 1, a, b)); return;
    case 0x60: {
        bool is_signed = !(i >> 20 & 1);
        set_riscv(t, d, integer_from(kind == 1 ? x : rintf(x), is_signed, is_signed ? INT32_MAX : UINT32_MAX, a));
        return;
    }
    case 0x68: t->r[FLOAT + d] = float_from((float)number_of(core, !(i >> 20 & 1)), core, core); return;
    case 0x70: set_riscv(t, d, kind ? any_of(0, 0x3ff, a, a) : a); return;
    case 0x78: t->r[FLOAT + d] = core; return;
    }
    t->r[FLOAT + d] = float_from(value, a, b);
}

static void riscv_fused(Tracked *t, uint32_t i) {
    Bits a = t->r[FLOAT + (i >> 15 & 31)], b = t->r[FLOAT + (i >> 20 & 31)], c = t->r[FLOAT + (i >> 27)];
    uint32_t kind = i >> 2 & 3; /* fmadd, fmsub, fnmsub, fnmadd */
    float x = kind & 2 ? -float_of(a) : float_of(a), z = kind == 1 || kind == 3 ? -float_of(c) : float_of(c);
    t->r[FLOAT + (i >> 7 & 31)] = float_from(fmaf(x, float_of(b), z), a, b.undefined ? b : c);
}

static void riscv_long(Tracked *t, uint32_t i) {
    uint32_t d = i >> 7 & 31, number = i >> 20 & 31, kind = i >> 12 & 7;
    Bits a = t->r[i >> 15 & 31], b = t->r[number];
    Bits from = sum(a, known((uint32_t)((int32_t)i >> 20)));
    Bits to = sum(a, known(((uint32_t)((int32_t)i >> 25) << 5) | d));
    switch (i & 0x7f) {
    case 0x03: access_memory(t, true, R(d), 1u << (kind & 3), from, kind < 2); break;
    case 0x07: access_words(t, true, R(FLOAT + d), from); break;
    case 0x23: access_memory(t, false, R(number), 1u << kind, to, false); break;
    case 0x27: access_words(t, false, R(FLOAT + number), to); break;
    case 0x2f: /* lr, and those that load and store: what they leave has a value */
        decide(t, DECIDES_ADDRESS, a);
        set_riscv(t, d, known(0));
        break;
    case 0x13: riscv_constant(t, i); break;
    case 0x33: riscv_registers(t, d, a, b, i >> 25 << 3 | kind); break;
    case 0x17: set_riscv(t, d, known(t->pc + (i & ~0xfffu))); break;
    case 0x37: set_riscv(t, d, known(i & ~0xfffu)); break;
    case 0x67: decide(t, DECIDES_BRANCH, masked(from, ~1u)); /* fall through */
    case 0x6f: set_riscv(t, d, known(t->pc + 4)); break;
    case 0x63: riscv_branch(t, kind, a, b); break;
    case 0x73: set_riscv(t, d, known(0)); break;
    case 0x53: riscv_float(t, i); break;
    case 0x43: case 0x47: case 0x4b: case 0x4f: riscv_fused(t, i); break;
    case 0x0f: break;
    case 0x0b: case 0x2b: case 0x5b: case 0x7b: /* custom */
        set_riscv(t, d, any_of(0, 0xffffffff, a, b));
        break;
    default: t->forgets = true;
    }
}

static uint32_t six(uint32_t i) { return (uint32_t)((int32_t)((i >> 12 & 1) << 31) >> 26) | (i >> 2 & 31); }

static void riscv_short_arithmetic(Tracked *t, uint32_t i) {
    uint32_t d = (i >> 7 & 7) + 8, by = i >> 2 & 31;
    Bits a = t->r[d], b = t->r[(i >> 2 & 7) + 8], result;
    static const uint8_t plain[4] = {0, 4, 6, 7}; /* sub, xor, or, and */
    switch (i >> 10 & 3) {
    case 0: result = right(a, by); break;
    case 1: result = right(sign_extended(a, 32), by); break;
    case 2: result = masked(a, six(i)); break;
    default: {
        uint32_t op = i >> 5 & 3;
        riscv_registers(t, d, a, b, plain[op] | (op ? 0 : 0x20 << 3));
        return;
    }
    }
    set_riscv(t, d, result);
}

static void riscv_short_memory(Tracked *t, uint32_t i) {
    uint32_t low = (i >> 2 & 7) + 8;
    Bits base = t->r[(i >> 7 & 7) + 8];
    Bits at = sum(base, known((i >> 7 & 0x38) | (i >> 4 & 4) | (i << 1 & 0x40)));
    switch (i >> 13) {
    case 0: { /* c.addi4spn */
        Bits by = known((i >> 7 & 0x30) | (i >> 1 & 0x3c0) | (i >> 4 & 4) | (i >> 2 & 8));
        set_riscv(t, low, sum(t->r[2], by));
        break;
    }
    case 2: access_words(t, true, R(low), at); break;
    case 3: access_words(t, true, R(FLOAT + low), at); break;
    case 6: access_words(t, false, R(low), at); break;
    case 7: access_words(t, false, R(FLOAT + low), at); break;
    default: t->forgets = true;
    }
}

static void riscv_short_jump(Tracked *t, uint32_t i, uint32_t d, uint32_t b) {
    bool links = i >> 12 & 1;
    if (b) {
        set_riscv(t, d, links ? sum(t->r[d], t->r[b]) : t->r[b]);
        return;
    }
    decide(t, DECIDES_BRANCH, t->r[d]);
    if (links) set_riscv(t, 1, known(t->pc + 2));
}

static void riscv_short(Tracked *t, uint32_t i) {
    uint32_t d = i >> 7 & 31, b = i >> 2 & 31;
    Bits zero = known(0), lower = t->r[(i >> 7 & 7) + 8];
    Bits up = known(i >> 12 & 1 ? 0xfffe0000 | b << 12 : b << 12);
    uint32_t upper = (uint32_t)((int32_t)((i >> 12 & 1) << 31) >> 22); /* of c.addi16sp */
    Bits sp_step = known(upper | (i >> 2 & 16) | (i << 1 & 64) | (i << 4 & 0x180) | (i << 3 & 32));
    switch ((i & 3) << 3 | i >> 13) {
    case 8: set_riscv(t, d, sum(t->r[d], known(six(i)))); break;
    case 9: set_riscv(t, 1, known(t->pc + 2)); break;
    case 10: set_riscv(t, d, known(six(i))); break;
    case 11: set_riscv(t, d, d == 2 ? sum(t->r[2], sp_step) : up); break;
    case 12: riscv_short_arithmetic(t, i); break;
    case 13: break;
    case 14: case 15: riscv_branch(t, 0, lower, zero); break;
    case 16: set_riscv(t, d, left(t->r[d], b)); break;
    case 18: access_words(t, true, R(d), t->r[2]); break;
    case 19: access_words(t, true, R(FLOAT + d), t->r[2]); break;
    case 20: riscv_short_jump(t, i, d, b); break;
    case 22: access_words(t, false, R(b), t->r[2]); break;
    case 23: access_words(t, false, R(FLOAT + b), t->r[2]); break;
    default:
        if (i & 3) t->forgets = true;
        else riscv_short_memory(t, i);
    }
}

void track_riscv(Tracked *t, Instruction i) {
    if (i.bytes == 4) riscv_long(t, i.bits);
    else riscv_short(t, i.bits);
}

#endif
