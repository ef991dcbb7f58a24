/* Accesses to data memory, one by one: bytes by region, and the wait states of the slower regions. Only
 * on while something asks for it: loads and stores are several times as slow with it.
 */
#ifndef COVP_ACCESSES_H
#define COVP_ACCESSES_H

#include "caches.h"
#include "counter_state.h"
#include "ghosts.h"
#include "misaligned.h"
#include "shadow.h"
#include "tlb.h"
#include "varied.h"

enum { UC_MEM_WRITE = 17 };

/* The core loads or stores; whether it may. `index`: of the instruction in its block. */
static bool look_at_access(Machine *m, uc_engine *uc, uint32_t address, uint32_t size, bool writes,
                           uint32_t index) {
    if (m->shadow && !check_access(m, uc, address, size, writes, index)) return false;
    if (!m->counts_accesses) return true;
    meet(m, index, address, size);
    const Region *region = region_of(m, address);
    if (!region) return true;
    m->traffic[region - m->regions][writes] += size;
    access_caches(m, address, size, writes);
    ghosts_access(m, address, size, writes);
    return true;
}

/* A store that the core does not do will be done before the emulator stops. */
static void keep_before(Machine *m, uint32_t address, uint32_t size) {
    const uint8_t *at = host_bytes(m, address, size);
    if (!at || size > sizeof m->before) return;
    memcpy(m->before, at, size);
    m->stored_at = address;
    m->stored = size;
}

/* The run is over: undo it. */
static void undo_store(Machine *m) {
    if (m->stored) memcpy((uint8_t *)host_bytes(m, m->stored_at, m->stored), m->before, m->stored);
    m->stored = 0;
}

/* Whether the core does an access, where Unicorn itself calls before it. */
static bool may_access(Machine *m, uc_engine *uc, uint32_t address, uint32_t size, bool writes) {
    uint64_t pc = 0;
    m->reg_read(uc, (int)m->pc_register, &pc);
    uint32_t place = place_of(m->last, (uint32_t)pc & ~1u);
    if (!look_at_access(m, uc, address, size, writes, place)) return false;
    if (!m->counts_accesses) meet(m, place, address, size);
    if (!(address & (size - 1) & (WORD - 1)) || !must_align(m, instruction_at(m->last, place))) return true;
    refuse_misaligned(m, address, size);
    return false;
}

/* Such an access is done before the emulator leaves. Before this hook it restores the state of the
 * accessing instruction, see tlb.h.
 */
EXPORT void on_access(uc_engine *uc, int type, uint64_t address, int size, int64_t value,
                      void *user) {
    (void)value;
    Machine *m = user;
    bool writes = type == UC_MEM_WRITE;
    if (m->xpsr) clear_it_bits(m, uc);
    if (may_access(m, uc, (uint32_t)address, (uint32_t)size, writes)) return;
    if (writes) keep_before(m, (uint32_t)address, (uint32_t)size);
    m->emu_stop(uc);
}

#endif
