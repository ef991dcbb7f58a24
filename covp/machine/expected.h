/* Which loads and stores go to memory with more wait states than other: decided by the registers when
 * their block is first entered, so that its time can have these waits. What accesses take otherwise is
 * counted one by one.
 */
#ifndef COVP_EXPECTED_H
#define COVP_EXPECTED_H

#include "alignment.h"
#include "counter_state.h"
#include "waits.h"

static Registers registers_now(const Machine *m, uc_engine *uc) {
    Registers now = {.known = ~0u};
    for (int n = 1; n < 32; n++) {
        uint64_t value = 0;
        m->reg_read(uc, (int)m->first_register + n, &value);
        now.value[n] = (uint32_t)value;
    }
    return now;
}

/* The register with the address of an access, or -1. */
static int32_t base_of(const Timing *t, const Rule *r, Instruction i) {
    return r->also_reads ? __builtin_ctz(r->also_reads) : operand(t, i, &r->reads[0]);
}

/* Cycles of a block's accesses to slower memory, as expected. */
static uint32_t expected_waits(const Version *v, uint32_t instructions) {
    uint32_t sum = 0;
    for (uint32_t n = 0; n < instructions; n++) sum += v->code[n].is_custom ? 0 : v->code[n].cycles;
    return sum;
}

static void time_code(Machine *m, Block *b);

/* A new block is entered: what its accesses will take. */
static void expect(Machine *m, uc_engine *uc, Block *b) {
    if (m->is_thumb) return;
    Instruction *i = b->version->code;
    Registers now = registers_now(m, uc);
    Access access;
    for (uint32_t n = 0, pc = b->address; n < b->instructions; pc += i[n++].bytes) {
        if (i[n].is_custom) continue;
        const Rule *r = find_rule(m->timing, i[n]);
        int32_t base = r->flags & (RULE_LOAD | RULE_STORE) ? base_of(m->timing, r, i[n]) : -1;
        if (base >= 0 && now.known >> base & 1)
            i[n].cycles = (uint16_t)further_waits(m->timing, now.value[base]);
        follow_riscv(&now, pc, i[n].bits, i[n].bytes == 4, &access);
    }
    time_code(m, b);
}

#endif
