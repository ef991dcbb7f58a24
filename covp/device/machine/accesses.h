/* Accesses to data memory, one by one: bytes by region, and the wait states of the slower regions. Only
 * on while something asks for it: loads and stores are several times as slow with it.
 */
#ifndef COVP_ACCESSES_H
#define COVP_ACCESSES_H

#include "caches.h"
#include "counter_state.h"
#include "ghosts.h"
#include "given_up.h"
#include "misaligned.h"
#include "shadow.h"
#include "tlb.h"
#include "varied.h"

enum { UC_MEM_WRITE = 17, UC_MEM_WRITE_UNMAPPED = 20, UC_MEM_WRITE_PROT = 22 };

/* How many instructions before it what is loaded was stored; 0: more than two, or something else was. */
static uint32_t stored_before(Machine *m, uint32_t address, uint32_t size, bool writes, uint32_t index) {
    uint64_t at = m->instructions - m->last->instructions + index;
    if (!m->timing->reloads && !m->segments) return 0;
    if (writes) {
        m->stored[1] = m->stored[0];
        m->stored[0] = (Stored){at, address, size};
        return 0;
    }
    for (const Stored *s = m->stored; s < m->stored + 2; s++)
        if (at - s->at <= 2 && address < s->address + s->size && s->address < address + size)
            return (uint32_t)(at - s->at);
    return 0;
}

/* The core loads or stores; whether it may. `index`: of the instruction in its block. */
static bool look_at_access(Machine *m, uc_engine *uc, uint32_t address, uint32_t size, bool writes,
                           uint32_t index) {
    if (m->shadow && !check_access(m, uc, address, size, writes, index)) return false;
    if (!m->counts_accesses) return true;
    uint32_t stored = stored_before(m, address, size, writes, index);
    m->unmet = stored > 0;
    meet(m, index, address, size, stored);
    const Region *region = region_of(m, address);
    if (!region) return true;
    m->traffic[region - m->regions][writes] += size;
    access_caches(m, address, size, writes, index);
    ghosts_access(m, address, size, writes);
    return true;
}

/* Whether the core does an access, where Unicorn itself calls before it. */
static bool may_access(Machine *m, uc_engine *uc, uint32_t address, uint32_t size, bool writes) {
    uint64_t pc = 0;
    m->reg_read(uc, (int)m->pc_register, &pc);
    uint32_t place = place_of(m->last, (uint32_t)pc & ~1u);
    if (!look_at_access(m, uc, address, size, writes, place)) return false;
    if (address & (size - 1) & (WORD - 1) && must_align(m, instruction_at(m->last, place))) {
        refuse_misaligned(m, address, size);
        return false;
    }
    if (!m->counts_accesses) meet(m, place, address, size, 0);
    return true;
}

/* An address as the core has it: stores to a flash with a controller go to its window, see tlb.h. */
static uint32_t core_address(const Machine *m, uint64_t address) {
    bool is_window = m->flash_bytes && address - m->store_window < m->flash_bytes;
    return is_window ? m->flash_start + (uint32_t)(address - m->store_window) : (uint32_t)address;
}

/* Unicorn itself refused the load at pc: it did not call before it. */
EXPORT void machine_look_at_load(Machine *m, uint32_t pc, uint32_t address, uint32_t size) {
    if (m->counts_accesses && !m->shadow) look_at_access(m, NULL, address, size, false, place_of(m->last, pc));
}

/* Unicorn itself calls before an access, with the state of the accessing instruction. False: it is given up. */
static bool admit_hooked(Machine *m, uc_engine *uc, uint32_t address, uint32_t size, bool writes) {
    keep_registers(m, uc);
    begin_access(m, address, size);
    if (!may_access(m, uc, address, size, writes)) give_up(m);
    return !m->given_up;
}

EXPORT void on_access(uc_engine *uc, int type, uint64_t address64, int size, int64_t value,
                      void *user) {
    (void)value;
    Machine *m = user;
    bool writes = type == UC_MEM_WRITE;
    uint32_t address = core_address(m, address64);
    if (!m->given_up && !admit_hooked(m, uc, address, (uint32_t)size, writes)) m->emu_stop(uc);
    if (writes) keep_before(m, address, (uint32_t)size);
}

/* There is no such memory. Of an access that crosses into it the part there is told. */
EXPORT bool on_invalid_access(uc_engine *uc, int type, uint64_t address64, int size, int64_t value,
                              void *user) {
    (void)value;
    Machine *m = user;
    uint32_t address = core_address(m, address64);
    bool is_known = address - m->access_address < m->access_size;
    bool writes = type == UC_MEM_WRITE_UNMAPPED || type == UC_MEM_WRITE_PROT;
    if (!m->given_up && !is_known) admit_hooked(m, uc, address, (uint32_t)size, writes);
    give_up(m);
    return false;
}

#endif
