/* Registers that hold bytes of memory which was never written: such bytes may be copied, not used.
 *
 * A bit for each of a register; in memory a byte counts as written when one of its bits is. What code does with them is followed through its decoded
 * instructions, only while there are some: moves, shifts and logic carry them on, stores put them into
 * memory, everything else is a use. Values that depend on a condition (Arm's IT blocks) are not judged.
 */
#ifndef COVP_UNDEFINED_H
#define COVP_UNDEFINED_H

#include "dataflow.h"

enum { REGISTERS = 64, NO_INDEX = 0xffffffff };

typedef struct {
    uint32_t count;            /* registers with such bytes */
    uint32_t at;               /* instruction of the block that runs, up to which is known */
    uint32_t bits[REGISTERS];
    uint32_t origin[REGISTERS]; /* the memory's address, ... */
    uint32_t pc[REGISTERS];     /* ... and where it was loaded */
} Undefined;

/* The address of an instruction of a block. */
static uint32_t pc_of(const Block *b, uint32_t index) {
    uint32_t pc = b->address;
    for (uint32_t n = 0; n < index && n < b->instructions; n++) pc += b->version->code[n].bytes;
    return pc;
}

/* The bits of bytes, of which each has a bit. */
static uint32_t bits_of_bytes(uint32_t bytes) {
    uint32_t bits = 0;
    for (int n = 0; n < 4; n++)
        if (bytes >> n & 1) bits |= 0xffu << 8 * n;
    return bits;
}

static void set_undefined(Undefined *u, uint32_t number, uint32_t bits, uint32_t origin, uint32_t pc) {
    u->count += (uint32_t)(bits != 0) - (uint32_t)(u->bits[number] != 0);
    u->bits[number] = bits;
    u->origin[number] = origin;
    u->pc[number] = pc;
}

static void define(Undefined *u, uint64_t registers) {
    for (uint64_t rest = registers; rest && u->count; rest &= rest - 1)
        set_undefined(u, (uint32_t)__builtin_ctzll(rest), 0, 0, 0);
}

/* One of the registers that has undefined bytes; NO_INDEX: none has. */
static uint32_t undefined_of(const Undefined *u, uint64_t registers) {
    for (uint64_t rest = registers; rest; rest &= rest - 1)
        if (u->bits[__builtin_ctzll(rest)]) return (uint32_t)__builtin_ctzll(rest);
    return NO_INDEX;
}

/* One of the registers whose undefined bytes an instruction uses; NO_INDEX: it uses none. */
static uint32_t used_by(const Undefined *u, const Flow *f) {
    if (f->kind == FLOW_UNKNOWN) return NO_INDEX;
    for (int n = 0; n < 2; n++)
        if (u->bits[f->parts[n].number] & bits_of_bytes(f->parts[n].bytes)) return f->parts[n].number;
    return undefined_of(u, f->uses);
}

static void move_bits(Undefined *u, const Flow *f) {
    uint32_t bits = u->bits[f->from] << f->left, from = f->from;
    bits = f->is_signed ? (uint32_t)((int32_t)bits >> f->right) : bits >> f->right;
    bits &= f->mask;
    uint32_t other = undefined_of(u, f->also | (f->keep ? R(f->to) : 0));
    if (!bits && other != NO_INDEX) from = other;
    if (f->keep) bits |= u->bits[f->to] & f->keep;
    if (other != NO_INDEX && f->also) bits |= u->bits[other];
    set_undefined(u, f->to, bits, u->origin[from], u->pc[from]);
}

/* How many instructions an IT instruction makes conditional; 0: it is none. */
static uint32_t conditional_after(const Machine *m, Instruction i) {
    if (!m->is_thumb || i.bytes != 2 || (i.bits & 0xff00) != 0xbf00 || !(i.bits & 15)) return 0;
    return 4 - (uint32_t)__builtin_ctz(i.bits & 15);
}

/* Follow instructions [u->at, end) of a block; false: the undefined bytes of *number are used. Memory
 * that is loaded counts as written here: the access itself says otherwise.
 */
static bool follow_undefined(const Machine *m, Undefined *u, const Block *b, uint32_t end,
                             bool loads_define, uint32_t *number) {
    uint32_t conditional = 0;
    for (uint32_t n = 0; n < end && n < b->instructions; n++) {
        Instruction i = b->version->code[n];
        bool judged = !conditional;
        conditional = conditional ? conditional - 1 : conditional_after(m, i);
        if (n < u->at || !u->count) continue;
        Flow f = flow_of(m, i);
        uint32_t used = judged ? used_by(u, &f) : NO_INDEX;
        if (used != NO_INDEX) {
            *number = used;
            return false;
        }
        if (f.kind == FLOW_BITS) move_bits(u, &f);
        else if (f.kind == FLOW_UNKNOWN) define(u, ~0ull);
        else define(u, f.writes);
        if (f.kind == FLOW_LOAD && loads_define) define(u, f.data | (f.second ? R(f.second - 1) : 0));
    }
    if (u->at < end) u->at = end;
    return true;
}

/* Registers that a load of several has not loaded yet. */
static uint64_t still_to_load(const Flow *f, uint32_t number, uint32_t ordinal) {
    if (f->second) return ordinal ? 0 : R(f->second - 1);
    return f->data & ~(R(number) | (R(number) - 1));
}

/* The register of an access; NO_INDEX: not known. */
static uint32_t accessed_register(const Machine *m, const Block *b, uint32_t index, uint32_t position,
                                  Flow *f) {
    if (index >= b->instructions) return NO_INDEX;
    *f = flow_of(m, b->version->code[index]);
    if (f->kind != FLOW_LOAD && f->kind != FLOW_STORE) return NO_INDEX;
    if (f->second && position) return f->second - 1u;
    uint64_t rest = f->data;
    while (position-- && rest) rest &= rest - 1;
    return rest ? (uint32_t)__builtin_ctzll(rest) : NO_INDEX;
}

/* The bytes of a register, the next one's on top, that an access stores. */
static uint32_t stored_undefined(const Machine *m, Undefined *u, const Block *b, uint32_t index,
                                 uint32_t ordinal, uint32_t size) {
    if (!u->count) return 0;
    uint32_t used;
    Flow f;
    follow_undefined(m, u, b, index, false, &used);
    uint32_t number = accessed_register(m, b, index, size == 8 ? 2 * ordinal : ordinal, &f);
    if (number == NO_INDEX || f.kind != FLOW_STORE) return 0;
    uint32_t bytes = 0, words = size == 8 && number + 1 < REGISTERS ? 2 : 1;
    for (uint32_t n = 0; n < 4 * words; n++)
        bytes |= (uint32_t)((u->bits[number + n / 4] >> 8 * (n % 4) & 0xff) == 0xff) << n;
    return bytes;
}

/* An access loads bytes of which some were never written; false: they are used. */
static bool loaded_undefined(const Machine *m, Undefined *u, const Block *b, uint32_t index,
                             uint32_t ordinal, uint32_t size, uint32_t unwritten, uint32_t address) {
    uint32_t used, pc = pc_of(b, index);
    Flow f;
    if (u->count) follow_undefined(m, u, b, index, false, &used);
    else u->at = index;
    uint32_t number = accessed_register(m, b, index, size == 8 ? 2 * ordinal : ordinal, &f);
    if (number == NO_INDEX || f.kind != FLOW_LOAD) return true;
    if (number == (m->is_thumb ? 15 : 0)) return true; /* a jump; no register */
    uint32_t low = unwritten & 15;
    if (f.is_signed && size < 4 && low >> (size - 1) & 1) low |= 15u << size & 15;
    set_undefined(u, number, bits_of_bytes(low), address, pc);
    if (size == 8 && number + 1 < REGISTERS)
        set_undefined(u, number + 1, bits_of_bytes(unwritten >> 4), address + 4, pc);
    u->at = index + 1; /* the address is used before the register is loaded */
    if (!u->count) return true;
    Undefined after = *u;
    after.at = index + 1;
    define(&after, still_to_load(&f, number, ordinal));
    return follow_undefined(m, &after, b, b->instructions, true, &used);
}

/* A block is about to run after m->last; false: it uses such bytes, those of *number. */
static bool carry_undefined(const Machine *m, Undefined *u, const Block *b, uint32_t *number) {
    follow_undefined(m, u, m->last, m->last->instructions, false, number);
    u->at = 0;
    if (!u->count) return true;
    Undefined after = *u;
    if (follow_undefined(m, &after, b, b->instructions, true, number)) return true;
    u->origin[*number] = after.origin[*number];
    u->pc[*number] = after.pc[*number];
    return false;
}

#endif
