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

/* Cycles of a block's accesses to slower memory, as expected. */
static uint32_t expected_waits(const Version *v, uint32_t instructions) {
    uint32_t sum = 0;
    for (uint32_t n = 0; n < instructions; n++) sum += v->code[n].is_custom ? 0 : v->code[n].cycles;
    return sum;
}

static void time_code(Machine *m, Block *b);

/* The register with the address of a RISC-V load or store, or -1: of those, too, that the model has no rule
 * for, as another model may.
 */
static int32_t any_base(Instruction i) {
    uint32_t opcode = i.bits & 0x7f, kind = i.bits >> 13 & 7;
    if (i.bytes == 4) {
        bool accesses = opcode == 0x03 || opcode == 0x07 || opcode == 0x23 || opcode == 0x27;
        return accesses ? (int32_t)(i.bits >> 15 & 31) : -1;
    }
    if ((kind & 3) < 2) return -1; /* C.LW, C.SW and those of floats, relative to sp in quadrant 2 */
    if ((i.bits & 3) == 0) return (int32_t)(8 + (i.bits >> 7 & 7));
    return (i.bits & 3) == 2 ? 2 : -1;
}

static uint8_t memory_of(const Machine *m, uint32_t address) {
    const Region *region = region_of(m, address);
    return region ? (uint8_t)(region - m->regions) : NO_MEMORY;
}

/* A new block is entered: what its accesses will take. */
static void expect(Machine *m, uc_engine *uc, Block *b) {
    if (m->is_thumb) return;
    Instruction *i = b->version->code;
    if (m->segments && (b->version->memories = malloc(b->instructions + 1u)))
        memset(b->version->memories, NO_MEMORY, b->instructions);
    Registers now = registers_now(m, uc);
    Access access;
    for (uint32_t n = 0, pc = b->address; n < b->instructions; pc += i[n++].bytes) {
        if (i[n].is_custom) continue;
        const Rule *r = find_rule(m->timing, i[n]);
        int32_t base = access_base(m->timing, r, i[n]), any = any_base(i[n]);
        if (base >= 0 && now.known >> base & 1)
            i[n].cycles = (uint16_t)further_waits(m->timing, now.value[base]);
        if (b->version->memories && any >= 0 && now.known >> any & 1)
            b->version->memories[n] = memory_of(m, now.value[any]);
        follow_riscv(&now, pc, i[n].bits, i[n].bytes == 4, &access);
    }
    time_code(m, b);
}

#endif
