/* Accesses to data memory, one by one: bytes by region, and the wait states of the slower regions. Only
 * on while something asks for it: loads and stores are several times as slow with it.
 */
#ifndef COVP_ACCESSES_H
#define COVP_ACCESSES_H

#include "caches.h"
#include "counter_state.h"
#include "operands.h"
#include "tlb.h"
#include "waits.h"

enum { UC_MEM_WRITE = 17 };

static const Region *region_of(const Machine *m, uint32_t address) {
    for (uint32_t n = 0; n < m->region_count; n++)
        if (address >= m->regions[n].start && address < m->regions[n].end) return &m->regions[n];
    return NULL;
}

/* The core loads or stores. */
static void look_at_access(Machine *m, uint32_t address, uint32_t size, bool writes) {
    const Region *region = region_of(m, address);
    if (!region) return;
    m->traffic[region - m->regions][writes] += size;
    uint32_t waits = further_waits(m->timing, address);
    if (waits) spend_on_memory(m, CAUSE_DATA, waits);
    access_caches(m, address, size, writes);
}

/* Before this hook the emulator restores the state of the accessing instruction, see tlb.h. */
EXPORT void on_access(uc_engine *uc, int type, uint64_t address, int size, int64_t value,
                      void *user) {
    (void)value;
    Machine *m = user;
    if (m->xpsr) clear_it_bits(m, uc);
    look_at_access(m, (uint32_t)address, (uint32_t)size, type == UC_MEM_WRITE);
}

#endif
