/* Checks a block's accesses before it runs. */
#ifndef COVP_ALIGNMENT_CHECK_H
#define COVP_ALIGNMENT_CHECK_H

#include "alignment.h"
#include "blocks.h"
#include "operands.h"

/* Whether the block is about to access misaligned memory; access_* and special_pc say where. Where
 * such accesses are allowed they are watched instead.
 */
static bool finds_misaligned(Machine *m, uc_engine *uc, Block *b) {
    Registers registers = {.known = ~0u};
    uint64_t raw[32] = {0};
    void *values[32];
    const uint8_t *start = host_bytes(m, b->address, b->size);
    if (runs_of(b) + 1 >= CHECKED_RUNS) {
        b->flags &= (uint8_t)~BLOCK_CHECKED;
        b->key = common_key(m, b);
    }
    for (uint32_t i = 0; i < m->register_count; i++) values[i] = &raw[i];
    if (!start || m->reg_read_batch(uc, m->register_ids, values, (int)m->register_count))
        return false;
    for (uint32_t i = 0; i < m->register_count; i++) registers.value[i] = (uint32_t)raw[i];
    uint32_t pc = b->address;
    for (const Instruction *i = b->version->code; pc < b->address + b->size; pc += i++->bytes) {
        Access access = {0, 0};
        bool wide = i->bytes == 4;
        bool found = m->is_thumb ? follow_thumb(&registers, i->bits, wide, m->all_aligned, &access)
                                 : follow_riscv(&registers, pc, i->bits, wide, &access);
        if (found && m->allows_misaligned) {
            watch(m, uc, pc);
        } else if (found) {
            m->special_pc = pc;
            m->access_address = access.address;
            m->access_size = access.size;
            return true;
        }
    }
    return false;
}

#endif
