/* Undefined bits: those of memory that was never written, and what is computed of them.
 *
 * The walk through the decoded instructions begins at a load of such bits, goes on along with the core, from
 * one access to the next and from block to block, and ends when no register has any left. It runs ahead of the
 * core, so that what decides something is found before it happens.
 */
#ifndef COVP_UNDEFINED_H
#define COVP_UNDEFINED_H

#include "counter_state.h"
#include "tracked.h"

enum { NO_INDEX = 0xffffffff };
enum { ORIGIN_BITS = 12, ORIGINS = 1 << ORIGIN_BITS };

/* Where the undefined bits of a word of memory are from, which were stored there. */
typedef struct { uint32_t word, address, pc; bool computed; } Origin;

typedef struct {
    bool is_active;
    uint32_t at;   /* instruction of the block that runs, whose accesses come next */
    uint32_t done; /* bytes that it has accessed so far */
    bool has_origins;
    Tracked t;
    Origin origins[ORIGINS]; /* by the word's address; a later one replaces another */
} Undefined;

static Origin *origin_of(Undefined *u, uint32_t address) {
    return &u->origins[address >> 2 & (ORIGINS - 1)];
}

static void keep_origin(Undefined *u, uint32_t address, Bits from) {
    *origin_of(u, address) = (Origin){address >> 2, from.origin, from.pc, from.computed};
    u->has_origins = true;
}

static void forget_undefined(Undefined *u) {
    if (u->has_origins) memset(u->origins, 0, sizeof u->origins);
    u->has_origins = u->is_active = false;
}

static uint64_t register_value(const Machine *m, uc_engine *uc, int id) {
    uint64_t value = 0;
    m->reg_read(uc, id, &value);
    return value & 0xffffffff;
}

/* The values of the registers; what is undefined of them stays so. */
static void read_values(const Machine *m, uc_engine *uc, Tracked *t) {
    enum { ARM_SP_ID = 12, ARM_LR_ID = 10, ARM_S0 = 79, ARM_FPSCR = 6, RISCV_F0 = 158, WORDS = 32 };
    int count = m->is_thumb ? SP : WORDS, floats = m->is_thumb ? ARM_S0 : RISCV_F0;
    for (int n = 0; n < count; n++) t->r[n].value = register_value(m, uc, (int)m->first_register + n);
    for (int n = 0; n < WORDS; n++) t->r[FLOAT + n].value = register_value(m, uc, floats + n);
    if (!m->is_thumb) return;
    t->r[SP].value = register_value(m, uc, ARM_SP_ID);
    t->r[LR].value = register_value(m, uc, ARM_LR_ID);
    t->flags.value = register_value(m, uc, (int)m->xpsr) & 0xf80f0000;
    t->fpscr.value = register_value(m, uc, ARM_FPSCR);
}

/* On to the next access or the end of the block; false: undefined bits decide something. */
static bool walk(const Machine *m, Undefined *u, const Block *b) {
    Tracked *t = &u->t;
    for (; u->at < b->instructions; u->at++) {
        Instruction i = b->version->code[u->at];
        t->accesses.is_any = false;
        u->done = 0;
        if (m->is_thumb) track_thumb(t, i);
        else track_riscv(t, i);
        if (t->decides) return false;
        if (t->forgets) define_all(t);
        t->forgets = false;
        if (t->accesses.is_any) return true;
        t->pc += i.bytes;
    }
    u->is_active = has_undefined(t);
    return true;
}

/* The IT state of an instruction in a block. */
static uint8_t it_state(const Machine *m, const Block *b, uint32_t index) {
    uint32_t it = 0;
    for (uint32_t n = 0; m->is_thumb && n < index; n++) {
        Instruction i = b->version->code[n];
        if (it) it = it & 7 ? (it & 0xe0) | (it << 1 & 0x1f) : 0;
        else if (i.bytes == 2 && (i.bits & 0xff00) == 0xbf00 && i.bits & 15) it = i.bits & 255;
    }
    return (uint8_t)it;
}

/* The walk is at an instruction of a block, before it. */
static void move_to(const Machine *m, uc_engine *uc, Undefined *u, const Block *b, uint32_t index) {
    u->at = index;
    u->t.pc = pc_of(b, index);
    u->t.it = it_state(m, b, index);
    read_values(m, uc, &u->t);
}

static void begin_walk(Undefined *u) {
    memset(&u->t, 0, sizeof u->t);
    u->is_active = true;
    u->at = 0;
}

/* An access of the block is about to happen; whether the walk is there, and its register. */
static bool meets(const Machine *m, uc_engine *uc, Undefined *u, const Block *b, uint32_t index, bool loads,
                  uint32_t before, uint32_t *number) {
    if (index >= b->instructions) return false;
    if (u->at != index || !u->t.accesses.is_any) {
        if (u->at > index) return false;
        move_to(m, uc, u, b, index);
        walk(m, u, b);
        if (u->at != index) return false;
        u->done = before;
    }
    *number = accessed_register(&u->t.accesses, u->done);
    return u->t.accesses.loads == loads;
}

/* Registers hold words: two are accessed by 8 bytes. */
static Bits stored_bits(const Tracked *t, uint32_t number, uint32_t size) {
    return size == 8 ? bits_or(left(t->r[(number + 1) % REGISTERS], 32), t->r[number]) : t->r[number];
}

static void load_bits(const Machine *m, Tracked *t, uint32_t number, uint32_t size, Bits value) {
    if (t->accesses.is_signed && size < 4) value = low_word(sign_extended(value, 8 * size));
    if (m->is_thumb && (number == PC || number == NOWHERE_TO)) {
        decide(t, DECIDES_BRANCH, value);
        return;
    }
    if (!number && !m->is_thumb) return;
    t->r[number] = low_word(value);
    if (size == 8) t->r[(number + 1) % REGISTERS] = right(value, 32);
}

/* `size` bytes of an instruction are accessed; false: undefined bits decide something. */
static bool pass_access(const Machine *m, Undefined *u, const Block *b, uint32_t size) {
    u->done += size;
    if (u->t.decides) return false;
    if (u->done < u->t.accesses.bytes) return true;
    u->t.pc += b->version->code[u->at++].bytes;
    return walk(m, u, b);
}

/* A block is about to run after m->last; false: undefined bits decide something in it. */
static bool enter_undefined(const Machine *m, uc_engine *uc, Undefined *u, const Block *b) {
    bool follows = m->last->address + m->last->size == b->address;
    uint8_t it = follows ? u->t.it : 0;
    move_to(m, uc, u, b, 0);
    u->t.it = it;
    return walk(m, u, b);
}

#endif
