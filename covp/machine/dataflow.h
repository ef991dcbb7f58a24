/* Where the registers' bits go: what an instruction reads, writes, copies, loads and stores.
 *
 * Armv6-M to Armv8-M by DDI0403E A5 and A7; RV32IMAFC with Zb* and Zcb by the unprivileged ISA manual
 * 20191213. What is not known here counts as writing everything, so that nothing false is derived.
 */
#ifndef COVP_DATAFLOW_H
#define COVP_DATAFLOW_H

#include "counter_state.h"

enum { FLOAT = 32 }; /* number of the first floating-point register; Arm's are the single ones */
enum { FLOW_OTHER, FLOW_BITS, FLOW_LOAD, FLOW_STORE, FLOW_UNKNOWN };
#define R(N) (1ull << (N))

/* What an instruction does. FLOW_BITS: `to` gets ((from << left) >> right) & mask, and bits of `also` and
 * of itself.
 */
typedef struct {
    uint32_t kind;
    uint64_t uses;   /* registers whose values matter: operands of arithmetic, addresses */
    uint64_t writes; /* registers that get a new value; not those that memory is loaded into */
    uint64_t data;   /* of loads and stores: the registers, in the order of addresses */
    uint8_t second;  /* of a pair of loads or stores: the register of the higher address, plus 1; else 0 */
    uint8_t to, from, left, right;
    uint8_t is_signed; /* shifts to the right, and loads, extend the sign */
    uint32_t mask;
    uint64_t also;
    struct { uint8_t number, bytes; } parts[2]; /* registers of which only some bytes matter */
    uint32_t keep; /* bits of `to` that stay */
} Flow;

static Flow uses(uint64_t read, uint64_t written) {
    return (Flow){.kind = FLOW_OTHER, .uses = read, .writes = written};
}

static Flow bits_from(uint32_t to, uint32_t from, uint32_t left, uint32_t right, bool is_signed,
                      uint32_t mask) {
    return (Flow){.kind = FLOW_BITS, .to = (uint8_t)to, .from = (uint8_t)from, .left = (uint8_t)left,
                  .right = (uint8_t)right, .is_signed = is_signed, .mask = mask};
}

static Flow copies(uint32_t to, uint32_t from) { return bits_from(to, from, 0, 0, false, ~0u); }

/* AND, OR, XOR of two registers. */
static Flow mixes(uint32_t to, uint32_t a, uint32_t b) {
    Flow f = copies(to, a);
    f.also = R(b);
    return f;
}

/* `bits` bits from `low` on. */
static Flow extracts(uint32_t to, uint32_t from, uint32_t low, uint32_t bits, bool is_signed) {
    uint32_t left = low + bits < 32 ? 32 - low - bits : 0;
    return bits_from(to, from, left, bits < 32 ? 32 - bits : 0, is_signed, ~0u);
}

static Flow shifts(uint32_t to, uint32_t from, uint32_t type, uint32_t by) {
    if (type == 0) return bits_from(to, from, by, 0, false, ~0u);
    if (type == 3) return mixes(to, from, from);
    return bits_from(to, from, 0, by ? by : 31, type == 2, ~0u);
}

static Flow accesses(bool loads, uint64_t data, uint64_t address, bool is_signed) {
    return (Flow){.kind = loads ? FLOW_LOAD : FLOW_STORE, .data = data, .uses = address,
                  .is_signed = is_signed};
}

static Flow unknown_flow(void) { return (Flow){.kind = FLOW_UNKNOWN}; }

/* Uses a register's `bytes`, a bit for each, from byte `first` on and round. */
static void uses_part(Flow *f, int which, uint32_t number, uint32_t bytes, uint32_t first) {
    f->parts[which].number = (uint8_t)number;
    f->parts[which].bytes = (uint8_t)((bytes << first | bytes >> (4 - first)) & 15);
}

/* -- Arm: 16 bits ---------------------------------------------------------------------------------- */

static Flow thumb_arithmetic(uint32_t i) {
    uint32_t to = i & 7, from = i >> 3 & 7;
    switch (i >> 6 & 15) {
    case 0: case 1: case 12: case 14: return mixes(to, to, from); /* and, eor, orr, bic */
    case 15: return copies(to, from); /* mvn */
    case 8: case 10: case 11: return uses(R(to) | R(from), 0);
    case 9: return uses(R(from), R(to));
    default: return uses(R(to) | R(from), R(to));
    }
}

static Flow thumb_high(uint32_t i) {
    uint32_t to = (i & 7) | (i >> 4 & 8), from = i >> 3 & 15;
    switch (i >> 8 & 3) {
    case 0: return uses(R(to) | R(from), R(to));
    case 1: return uses(R(to) | R(from), 0);
    case 2: return copies(to, from);
    default: return uses(R(from), 0);
    }
}

static Flow thumb_misc(uint32_t i) {
    uint32_t to = i & 7, from = i >> 3 & 7;
    if ((i & 0xf500) == 0xb100) return uses(R(to), 0); /* cbz, cbnz */
    if ((i & 0xfe00) == 0xb400) return accesses(false, (i & 0xff) | (i >> 8 & 1) << 14, 0, false);
    if ((i & 0xfe00) == 0xbc00) return accesses(true, (i & 0xff) | (i >> 8 & 1) << 15, 0, false);
    if ((i & 0xff00) == 0xb200) return extracts(to, from, 0, i & 0x40 ? 8 : 16, !(i & 0x80));
    if ((i & 0xff00) == 0xba00) return mixes(to, from, from); /* rev */
    return uses(0, 0);
}

static Flow thumb_short(uint32_t i) {
    uint32_t to = i & 7, from = i >> 3 & 7, wide = i >> 8 & 7;
    switch (i >> 12) {
    case 0: return shifts(to, from, i >> 11 & 1, i >> 6 & 31);
    case 1:
        if (!(i & 0x800)) return shifts(to, from, 2, i >> 6 & 31);
        return uses(R(from) | (i & 0x400 ? 0 : R(i >> 6 & 7)), R(to));
    case 2: return i & 0x800 ? uses(R(wide), 0) : uses(0, R(wide));
    case 3: return uses(R(wide), R(wide));
    case 4:
        if (i & 0x800) return accesses(true, R(wide), 0, false);
        return i & 0x400 ? thumb_high(i) : thumb_arithmetic(i);
    case 5: {
        uint32_t op = i >> 9 & 7;
        return accesses(op >= 3, R(to), R(from) | R(i >> 6 & 7), op == 3 || op == 7);
    }
    case 6: case 7: case 8: return accesses(i >> 11 & 1, R(to), R(from), false);
    case 9: return accesses(i >> 11 & 1, R(wide), 0, false);
    case 10: return uses(0, R(wide));
    case 11: return thumb_misc(i);
    case 12: return accesses(i >> 11 & 1, i & 0xff, R(wide), false);
    default: return uses(0, 0); /* branches */
    }
}

/* -- Arm: 32 bits ---------------------------------------------------------------------------------- */

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

/* The operators that registers and constants share. */
static Flow thumb_operator(uint32_t i, bool has_constant) {
    uint32_t n = i >> 16 & 15, d = i >> 8 & 15, r = i & 15, op = i >> 21 & 15;
    uint64_t right = has_constant ? 0 : R(r);
    uint32_t constant = has_constant ? thumb_immediate(i) : 0;
    bool tests = d == 15;
    if (op == 2 && n == 15) { /* mov, and shifts by a constant */
        if (has_constant) return uses(0, R(d));
        return shifts(d, r, i >> 4 & 3, (i >> 12 & 7) << 2 | (i >> 6 & 3));
    }
    if (op == 3 && n == 15) return has_constant ? uses(0, R(d)) : copies(d, r); /* mvn */
    if (op == 0 && !tests && has_constant) return bits_from(d, n, 0, 0, false, constant);
    if ((op == 1 || op == 2) && has_constant) return bits_from(d, n, 0, 0, false, ~constant);
    if (op <= 4 && !tests) return has_constant ? copies(d, n) : mixes(d, n, r);
    if (op == 6) return mixes(d, n, r); /* pkh */
    return uses(R(n) | right, tests ? 0 : R(d));
}

/* bfi, and bfc with n = 15: bits low to high */
static Flow inserts(uint32_t d, uint32_t n, uint32_t low, uint32_t high) {
    uint32_t field = high >= low ? (high - low == 31 ? ~0u : ((1u << (high - low + 1)) - 1) << low) : 0;
    Flow f = bits_from(d, n == 15 ? d : n, n == 15 ? 0 : low, 0, false, n == 15 ? 0 : field);
    f.keep = ~field;
    return f;
}

static Flow thumb_plain_constant(uint32_t i) {
    uint32_t n = i >> 16 & 15, d = i >> 8 & 15, low = (i >> 12 & 7) << 2 | (i >> 6 & 3);
    switch (i >> 20 & 31) {
    case 4: return uses(0, R(d)); /* movw */
    case 12: return bits_from(d, d, 0, 0, false, 0xffff); /* movt */
    case 20: return extracts(d, n, low, (i & 31) + 1, true);
    case 28: return extracts(d, n, low, (i & 31) + 1, false);
    case 22: return inserts(d, n, low, i & 31);
    default: return uses(R(n), R(d)); /* addw, subw, ssat, usat */
    }
}

static Flow thumb_multiple(uint32_t i) {
    uint32_t n = i >> 16 & 15;
    if (!(i >> 22 & 1)) return accesses(i >> 20 & 1, i & 0xffff, n == 13 ? 0 : R(n), false);
    if ((i & 0xfff0ffe0) == 0xe8d0f000) return uses(R(n) | R(i & 15), 0); /* tbb, tbh */
    if (!(i & 0x01200000)) return unknown_flow(); /* exclusive */
    Flow f = accesses(i >> 20 & 1, R(i >> 12 & 15) | R(i >> 8 & 15), R(n), false);
    f.second = (i >> 8 & 15) + 1;
    f.data = R(i >> 12 & 15);
    return f;
}

static Flow thumb_single(uint32_t i) {
    uint32_t n = i >> 16 & 15, t = i >> 12 & 15;
    bool has_constant = i >> 23 & 1 || i & 0x800 || n == 15;
    uint64_t address = (n == 15 || n == 13 ? 0 : R(n)) | (has_constant ? 0 : R(i & 15));
    bool loads = i >> 20 & 1;
    if (loads && t == 15 && (i >> 21 & 3) != 2) return uses(0, 0); /* pld */
    return accesses(loads, R(t), address, i >> 24 & 1);
}

static Flow thumb_registers(uint32_t i) {
    uint32_t n = i >> 16 & 15, d = i >> 8 & 15, r = i & 15, op = i >> 20 & 15;
    if (op < 8 && !(i & 0xf0)) return uses(R(n) | R(r), R(d)); /* shifts by registers */
    if (op < 6 && i & 0x80) {
        uint32_t rotation = (i >> 4 & 3) * 8;
        if (n != 15) { /* sxtah, sxtab16, sxtab and the unsigned ones */
            Flow f = uses(R(n), R(d));
            uses_part(&f, 0, r, op < 2 ? 3 : op < 4 ? 5 : 1, rotation / 8);
            return f;
        }
        if (op == 2 || op == 3) return mixes(d, r, r); /* sxtb16, uxtb16 */
        if (rotation) return extracts(d, r, rotation, op < 2 ? 16 : 8, !(op & 1));
        return extracts(d, r, 0, op < 2 ? 16 : 8, !(op & 1));
    }
    if (op == 9 && (i & 0xc0) == 0x80) return mixes(d, r, r); /* rev, rbit */
    return uses(R(n) | R(r), R(d));
}

static Flow thumb_multiply(uint32_t i) {
    uint32_t a = i >> 12 & 15, d = i >> 8 & 15;
    uint64_t read = R(i >> 16 & 15) | R(i & 15);
    if (!(i >> 23 & 1)) {
        uint64_t addend = a == 15 ? 0 : R(a);
        if ((i >> 20 & 7) != 1) return uses(read | addend, R(d));
        Flow f = uses(addend, R(d)); /* smulbb, smlabb and their kin: halves */
        uses_part(&f, 0, i >> 16 & 15, 3, i >> 4 & 2);
        uses_part(&f, 1, i & 15, 3, i >> 3 & 2);
        return f;
    }
    uint32_t op = i >> 20 & 7;
    if (op & 4) read |= R(a) | R(d);
    return uses(read, R(d) | (op == 1 || op == 3 ? 0 : R(a)));
}

static uint32_t vector_register(uint32_t i, int high, int low, bool is_double) {
    uint32_t number = i >> high & 15, bit = i >> low & 1;
    return FLOAT + (is_double ? (bit << 4 | number) * 2 % 32 : number << 1 | bit);
}

static uint64_t vector_set(uint32_t first, uint32_t words) {
    return words > 31 ? 0 : ((1ull << words) - 1) << (first & 63);
}

static Flow thumb_vector(uint32_t i) {
    bool is_double = i >> 8 & 1;
    uint32_t d = vector_register(i, 12, 22, is_double), n = vector_register(i, 16, 7, is_double);
    uint32_t r = vector_register(i, 0, 5, is_double), base = i >> 16 & 15, words = is_double ? 2 : 1;
    uint64_t address = base == 15 || base == 13 ? 0 : R(base);
    if ((i >> 9 & 7) != 5) return unknown_flow();
    if ((i & 0x0f200000) == 0x0d000000) /* vldr, vstr */
        return accesses(i >> 20 & 1, vector_set(d, words), address, false);
    if ((i & 0x0fe00000) == 0x0c400000) return unknown_flow(); /* two core registers */
    if ((i & 0x0e000000) == 0x0c000000) /* vldm, vstm */
        return accesses(i >> 20 & 1, vector_set(d, i & 0xff), address, false);
    if ((i & 0x0f000010) == 0x0e000010) {
        if (is_double || (i >> 21 & 7)) return unknown_flow(); /* also vmrs, vmsr */
        uint32_t t = i >> 12 & 15;
        return i >> 20 & 1 ? copies(t, n) : copies(n, t);
    }
    if (is_double) return unknown_flow();
    if ((i & 0x0fbf0ed0) == 0x0eb00a40) return copies(d, r); /* vmov */
    if ((i & 0x0fb00000) == 0x0eb00000) {                     /* one operand, comparisons */
        bool compares = (i & 0x000e0000) == 0x00040000;
        if (!(i & 0x40)) return uses(0, R(d)); /* vmov of a constant */
        return uses(R(r) | (compares ? R(d) : 0), compares ? 0 : R(d));
    }
    return uses(R(n) | R(r) | (i & 0x00a00000 ? 0 : R(d)), R(d));
}

static Flow thumb_long(uint32_t i) {
    uint32_t op = i >> 20 & 0x7f;
    switch (i >> 27 & 3) {
    case 1:
        if (op & 0x40) return thumb_vector(i);
        return op & 0x20 ? thumb_operator(i, false) : thumb_multiple(i);
    case 2:
        if (i & 0x8000) return (i & 0xfff0d000) == 0xf3e08000 ? uses(0, R(i >> 8 & 15)) : uses(0, 0);
        return op & 0x20 ? thumb_plain_constant(i) : thumb_operator(i, true);
    default:
        if (op & 0x40) return thumb_vector(i);
        if (op & 0x20) return op & 0x10 ? thumb_multiply(i) : thumb_registers(i);
        return op & 0x10 && !(op & 1) ? unknown_flow() : thumb_single(i);
    }
}

/* -- RISC-V ---------------------------------------------------------------------------------------- */

static Flow riscv_constant(uint32_t i) {
    uint32_t d = i >> 7 & 31, a = i >> 15 & 31, by = i >> 20 & 31, seven = i >> 25;
    switch (i >> 12 & 7) {
    case 0: return i >> 20 ? uses(R(a), R(d)) : copies(d, a);
    case 1:
        if (seven == 0x30 && (by == 4 || by == 5)) return extracts(d, a, 0, by == 4 ? 8 : 16, true);
        return seven ? uses(R(a), R(d)) : bits_from(d, a, by, 0, false, ~0u);
    case 4: return copies(d, a); /* xori */
    case 6: return bits_from(d, a, 0, 0, false, ~(uint32_t)((int32_t)i >> 20)); /* ori */
    case 5:
        if (seven & ~0x20u) return mixes(d, a, a); /* rori, rev8, orc.b, bexti */
        return bits_from(d, a, 0, by, seven == 0x20, ~0u);
    case 7: return bits_from(d, a, 0, 0, false, (uint32_t)((int32_t)i >> 20));
    default: return uses(R(a), R(d));
    }
}

static Flow riscv_registers(uint32_t i) {
    uint32_t d = i >> 7 & 31, a = i >> 15 & 31, b = i >> 20 & 31, kind = i >> 12 & 7, seven = i >> 25;
    bool mixed = (kind == 4 || kind >= 6) && (seven == 0 || seven == 0x20);
    if (seven == 4 && kind == 4) return extracts(d, a, 0, 16, false); /* zext.h */
    return mixed ? mixes(d, a, b) : uses(R(a) | R(b), R(d));
}

static Flow riscv_float(uint32_t i) {
    uint32_t d = i >> 7 & 31, a = i >> 15 & 31, b = i >> 20 & 31;
    uint64_t floats = R(FLOAT + a) | R(FLOAT + b);
    switch (i >> 25) {
    case 0x10: return a == b ? copies(FLOAT + d, FLOAT + a) : uses(floats, R(FLOAT + d));
    case 0x50: return uses(floats, R(d));
    case 0x60: return uses(R(FLOAT + a), R(d));
    case 0x68: return uses(R(a), R(FLOAT + d));
    case 0x70: return i >> 12 & 7 ? uses(R(FLOAT + a), R(d)) : copies(d, FLOAT + a);
    case 0x78: return copies(FLOAT + d, a);
    case 0x2c: return uses(R(FLOAT + a), R(FLOAT + d));
    default: return uses(floats, R(FLOAT + d));
    }
}

static Flow riscv_long(uint32_t i) {
    uint32_t d = i >> 7 & 31, a = i >> 15 & 31, b = i >> 20 & 31;
    switch (i & 0x7f) {
    case 0x03: return accesses(true, R(d), R(a), (i >> 12 & 7) < 2);
    case 0x07: return accesses(true, R(FLOAT + d), R(a), false);
    case 0x23: return accesses(false, R(b), R(a), false);
    case 0x27: return accesses(false, R(FLOAT + b), R(a), false);
    case 0x13: return riscv_constant(i);
    case 0x33: return riscv_registers(i);
    case 0x17: case 0x37: case 0x6f: return uses(0, R(d));
    case 0x63: return uses(R(a) | R(b), 0);
    case 0x67: return uses(R(a), R(d));
    case 0x73: return uses(i >> 14 & 1 ? 0 : R(a), R(d));
    case 0x53: return riscv_float(i);
    case 0x43: case 0x47: case 0x4b: case 0x4f:
        return uses(R(FLOAT + a) | R(FLOAT + b) | R(FLOAT + (i >> 27)), R(FLOAT + d));
    case 0x0f: return uses(0, 0);
    case 0x0b: case 0x2b: case 0x5b: case 0x7b: return uses(R(a) | R(b), R(d)); /* custom */
    default: return unknown_flow();
    }
}

static Flow riscv_short_arithmetic(uint32_t i) {
    uint32_t d = (i >> 7 & 7) + 8, b = (i >> 2 & 7) + 8, by = (i >> 12 & 1) << 5 | (i >> 2 & 31);
    switch (i >> 10 & 3) {
    case 0: case 1: return bits_from(d, d, 0, by & 31, i >> 10 & 1, ~0u);
    case 2: return bits_from(d, d, 0, 0, false, by & 32 ? by | ~63u : by);
    }
    if (!(i >> 12 & 1)) return i >> 5 & 3 ? mixes(d, d, b) : uses(R(d) | R(b), R(d));
    if ((i >> 5 & 3) == 2) return uses(R(d) | R(b), R(d)); /* c.mul */
    switch (i >> 2 & 7) { /* Zcb */
    case 0: return extracts(d, d, 0, 8, false);
    case 1: return extracts(d, d, 0, 8, true);
    case 2: return extracts(d, d, 0, 16, false);
    case 3: return extracts(d, d, 0, 16, true);
    default: return copies(d, d);
    }
}

static Flow riscv_short_memory(uint32_t i) {
    uint32_t low = (i >> 2 & 7) + 8;
    uint64_t base = R((i >> 7 & 7) + 8);
    switch (i >> 13) {
    case 0: return uses(0, R(low));
    case 2: case 6: return accesses(i >> 13 == 2, R(low), base, false);
    case 3: case 7: return accesses(i >> 13 == 3, R(FLOAT + low), base, false);
    case 4: { /* Zcb */
        uint32_t op = i >> 10 & 7;
        return accesses(op < 2, R(low), base, op == 1 && i & 0x40);
    }
    default: return unknown_flow();
    }
}

static Flow riscv_short(uint32_t i) {
    uint32_t d = i >> 7 & 31, b = i >> 2 & 31;
    switch ((i & 3) << 3 | i >> 13) {
    case 8: return d ? uses(R(d), R(d)) : uses(0, 0);
    case 9: return uses(0, R(1));
    case 10: case 11: return uses(0, R(d));
    case 12: return riscv_short_arithmetic(i);
    case 13: return uses(0, 0);
    case 14: case 15: return uses(R((i >> 7 & 7) + 8), 0);
    case 16: return bits_from(d, d, b, 0, false, ~0u);
    case 18: return accesses(true, R(d), 0, false);
    case 19: return accesses(true, R(FLOAT + d), 0, false);
    case 20:
        if (!b) return uses(R(d), i >> 12 & 1 ? R(1) : 0);
        return i >> 12 & 1 ? uses(R(d) | R(b), R(d)) : copies(d, b);
    case 22: return accesses(false, R(b), 0, false);
    case 23: return accesses(false, R(FLOAT + b), 0, false);
    default: return (i & 3) == 0 ? riscv_short_memory(i) : unknown_flow();
    }
}

static Flow flow_of(const Machine *m, Instruction i) {
    if (i.is_custom) return unknown_flow();
    if (m->is_thumb) return i.bytes == 4 ? thumb_long(i.bits) : thumb_short(i.bits);
    return i.bytes == 4 ? riscv_long(i.bits) : riscv_short(i.bits);
}

#endif
