/* Instructions whose time depends on the values of their operands: a hook before each of them looks at the
 * registers.
 */
#ifndef COVP_OPERANDS_H
#define COVP_OPERANDS_H

#include "blocks.h"
#include "caches.h"
#include "varied.h"

enum { UC_HOOK_CODE = 4 };

static bool is_watched(const Machine *m, uint32_t address) {
    for (uint64_t n = 0; n < m->watched_count; n++)
        if (m->watched[n] == address) return true;
    return false;
}

EXPORT void on_watched(uc_engine *uc, uint64_t address, uint32_t size, void *user);

/* Look at the instruction at an address from now on; code that has it is to be translated again. */
static void watch(Machine *m, uc_engine *uc, uint32_t address) {
    size_t handle;
    if (is_watched(m, address)) return;
    uint32_t *watched = grown(m, m->watched, (m->watched_count + 1) * sizeof *watched);
    if (!watched) return;
    m->watched = watched;
    m->watched[m->watched_count++] = address;
    m->hook_add(uc, &handle, UC_HOOK_CODE, (void *)on_watched, m, address, address);
    m->retranslate = 1;
}

/* Whether the operands of a rule's instructions are looked at. */
static bool has_operands(const Machine *m, const Rule *r) {
    return r->operands && (m->timing->operands[r->operands - 1].is_used || m->tracing || m->segments);
}

/* Watch what has to be watched in a block. */
static void watch_block(Machine *m, uc_engine *uc, const Block *b) {
    const Instruction *i = b->version->code;
    for (uint32_t n = 0, at = b->address; n < b->instructions; at += i[n++].bytes)
        if (!i[n].is_custom && has_operands(m, find_rule(m->timing, i[n]))) watch(m, uc, at);
}

enum { ARM_LR = 10, ARM_SP = 12 }; /* Unicorn's numbers, which do not follow that of r12 */

static uint32_t value_of(const Machine *m, uc_engine *uc, int32_t number) {
    uint64_t value = 0;
    int id = (int)m->first_register + number;
    if (m->is_thumb && number >= 13) id = number == 13 ? ARM_SP : ARM_LR;
    if (number >= 0) m->reg_read(uc, id, &value);
    return (uint32_t)value;
}

/* Without the leading zeros, or of a negative number without the leading ones but one. */
static int bits_of(uint32_t value, bool is_signed) {
    int sign = is_signed && value >> 31;
    if (sign) value = ~value;
    return sign + (value ? 32 - __builtin_clz(value) : 0);
}

/* Whether a division is of signed numbers: RISC-V's funct3, Arm's op1. */
static bool is_signed_division(const Machine *m, uint32_t bits) {
    return m->is_thumb ? !(bits >> 21 & 1) : !(bits >> 12 & 1);
}

static void count_operands(Machine *m, uc_engine *uc, uint32_t at, Instruction i, const Rule *r) {
    const OperandCycles *o = &m->timing->operands[r->operands - 1];
    uint32_t first = value_of(m, uc, operand(m->timing, i, &r->reads[0]));
    uint32_t second = value_of(m, uc, operand(m->timing, i, &r->reads[1]));
    bool is_signed = is_signed_division(m, i.bits);
    int rows = bits_of(first, is_signed), columns = bits_of(second, is_signed);
    if (o->is_shift) rows = 0, columns = second & 31;
    vary_operands(m, place_of(m->last, at), r->operands - 1u, rows, columns, r->cause,
         o->is_used ? operand_cycles(o, rows, columns) : 0);
}

EXPORT void on_watched(uc_engine *uc, uint64_t address, uint32_t size, void *user) {
    Machine *m = user;
    const uint8_t *p = host_bytes(m, (uint32_t)address, size);
    if (!p) return;
    Instruction i = fetch(m, p, p + size);
    const Rule *r = find_rule(m->timing, i);
    if (has_operands(m, r)) count_operands(m, uc, (uint32_t)address, i, r);
}

#endif
