/* What follows a block: the host's functions for the custom instructions that it ends with, and whether a branch
 * that leads to the next instruction in any case was taken.
 */
#ifndef COVP_CUSTOM_CALLS_H
#define COVP_CUSTOM_CALLS_H

#include "causes.h"
#include "decode.h"
#include "reserve.h"

static uint32_t read_register(const Machine *m, uc_engine *uc, uint32_t number) {
    if (LIKELY(m->registers != NULL)) return m->registers[number];
    uint64_t value = 0;
    m->reg_read(uc, (int)(m->first_register + number), &value);
    return (uint32_t)value;
}

static inline uint32_t call_custom(Machine *m, Custom *c, uint32_t a, uint32_t b) {
    c->uses++;
    c->state->now = m->cycles;
    uint32_t result = c->function(a, b, c->state);
    if (!LIKELY(!c->state->late)) {
        spend(m, CAUSE_CUSTOM, c->state->late);
        c->state->late = 0;
    }
    return result;
}

static void execute_custom(Machine *m, uc_engine *uc, Custom *c) {
    if (!c->function) return;
    uint64_t result = call_custom(m, c, read_register(m, uc, c->rs1), read_register(m, uc, c->rs2));
    if (!c->rd) return;
    if (LIKELY(m->registers != NULL)) m->registers[c->rd] = (uint32_t)result;
    else m->reg_write(uc, (int)(m->first_register + c->rd), &result);
}

/* Whether the branch that the last block ended with was taken, as RISC-V's registers say: unprivileged ISA
 * 20191213, 2.5 and 16.4.
 */
static bool takes_branch(const Machine *m, uc_engine *uc) {
    Instruction i = m->last->version->code[m->last->instructions - 1];
    bool is_short = i.bytes == 2;
    uint32_t kind = is_short ? i.bits >> 13 & 1 : i.bits >> 12 & 7;
    uint32_t one = read_register(m, uc, is_short ? 8 + (i.bits >> 7 & 7) : i.bits >> 15 & 31);
    uint32_t other = is_short ? 0 : read_register(m, uc, i.bits >> 20 & 31);
    bool holds = kind < 2 ? one == other : kind < 6 ? (int32_t)one < (int32_t)other : one < other;
    return holds != (kind & 1);
}

/* The core has arrived at an address: execute the custom instructions before it, unless the block
 * that they end was left earlier.
 */
static void execute_pending(Machine *m, uc_engine *uc, uint32_t address) {
    uint32_t count = m->pending & ~(uint32_t)(AFTER_EDGE | AFTER_NEXT | AFTER_BRANCH | AFTER_MET);
    m->pending = 0;
    if (address != m->fall_through) return;
    if (m->last->after & AFTER_NEXT && takes_branch(m, uc)) m->fall_through = NOWHERE;
    if (!count) return;
    const uint8_t *p = host_bytes(m, address - 4 * count, 4 * count);
    if (!p) return;
    Custom *customs = m->customs;
    const uint32_t *registers = m->registers;
    for (; count > 1 && registers; count--, p += 4) {
        /* all but the last write no register */
        Custom *c = &customs[custom_at(m, p, p + 4)];
        if (!LIKELY(c->function && !c->rd)) break;
        call_custom(m, c, registers[c->rs1], registers[c->rs2]);
    }
    for (; count; count--, p += 4) execute_custom(m, uc, &customs[custom_at(m, p, p + 4)]);
}

/* A run has ended at pc. */
EXPORT void machine_settle(Machine *m, uc_engine *uc, uint32_t pc) {
    if (m->pending) execute_pending(m, uc, pc);
}

/* Define an instruction by its bits; a NULL function: it is illegal. Returns the number that stands
 * for it in memory, or 0 where there are no more.
 */
EXPORT uint32_t machine_set_custom(Machine *m, uint32_t bits, uint32_t cycles,
                                   CustomFunction function, CfuState *state) {
    uint32_t number = 1;
    while (number < m->custom_count && m->customs[number].bits != bits) number++;
    if (number >= m->custom_count) {
        if (number == PATCH_NUMBERS) return 0;
        Custom *customs = reserved_realloc(m->customs, (number + 1) * sizeof *customs);
        if (!customs) return 0;
        if (number == 1) customs[0] = (Custom){0};
        m->customs = customs;
        m->custom_count = number + 1;
    }
    m->customs[number] = (Custom){0, function, state, bits, (uint16_t)cycles, bits >> 7 & 31,
                                  bits >> 15 & 31, bits >> 20 & 31};
    return number;
}

EXPORT uint64_t machine_custom_uses(const Machine *m, uint32_t number) {
    return m->customs[number].uses;
}

EXPORT void machine_set_custom_uses(Machine *m, uint32_t number, uint64_t uses) {
    m->customs[number].uses = uses;
}

/* The bits that replace a custom instruction in memory; ``quiet`` where another one follows it. */
EXPORT uint32_t machine_patch(uint32_t number, int quiet) {
    return quiet ? quiet_of(number) : patch_of(number);
}

#endif
