/* Accesses to data memory, one by one: bytes by region, and the wait states of the slower regions. Only
 * on while something asks for it: loads and stores are several times as slow with it.
 */
#ifndef COVP_ACCESSES_H
#define COVP_ACCESSES_H

#include "caches.h"
#include "counter_state.h"
#include "ghosts.h"
#include "operands.h"
#include "shadow.h"
#include "tlb.h"
#include "waits.h"

enum { UC_MEM_WRITE = 17 };

/* The core loads or stores; whether it may. `index`: of the instruction in its block. */
static bool look_at_access(Machine *m, uc_engine *uc, uint32_t address, uint32_t size, bool writes,
                           uint32_t index) {
    if (m->shadow && !check_access(m, uc, address, size, writes, index)) return false;
    if (!m->counts_accesses) return true;
    const Region *region = region_of(m, address);
    if (!region) return true;
    m->traffic[region - m->regions][writes] += size;
    if (m->segments) m->segments->accesses[region - m->regions]++;
    uint32_t waits = further_waits(m->timing, address);
    if (waits) spend_on_memory(m, CAUSE_DATA, waits);
    access_caches(m, address, size, writes);
    ghosts_access(m, address, size, writes);
    return true;
}

/* The place of the instruction at pc in the block that runs. */
static uint32_t index_of(const Block *b, uint32_t pc) {
    uint32_t at = b->address, n = 0;
    while (n < b->instructions && at < pc) at += b->version->code[n++].bytes;
    return n;
}

/* The same where Unicorn itself calls before accesses. Such an access is done before it leaves. */
static void look_slowly(Machine *m, uc_engine *uc, uint32_t address, uint32_t size, bool writes) {
    uint64_t pc = 0;
    if (m->shadow) m->reg_read(uc, (int)m->shadow->program_counter, &pc);
    if (look_at_access(m, uc, address, size, writes, index_of(m->last, (uint32_t)pc))) return;
    if (writes) keep_before(m, address, size);
    m->emu_stop(uc);
}

/* Before this hook the emulator restores the state of the accessing instruction, see tlb.h. */
EXPORT void on_access(uc_engine *uc, int type, uint64_t address, int size, int64_t value,
                      void *user) {
    (void)value;
    Machine *m = user;
    if (m->xpsr) clear_it_bits(m, uc);
    look_slowly(m, uc, (uint32_t)address, (uint32_t)size, type == UC_MEM_WRITE);
}

#endif
