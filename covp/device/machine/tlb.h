/* The permissions of pages, for Unicorn, and a work-around for its loss of Arm's IT state. */
#ifndef COVP_TLB_H
#define COVP_TLB_H

#include "counter_state.h"
#include "dirty.h"

typedef struct { uint64_t paddr; uint32_t perms; } UcTlbEntry;

enum { UC_MEM_STORE = 17, UC_MEM_FETCH = 18 };
enum { UC_PROT_READ = 1, UC_PROT_WRITE = 2, UC_PROT_RW = 3, UC_PROT_EXEC = 4, UC_PROT_RWX = 7 };
/* The IT bits of xPSR: 26-25 and 15-10. */
enum { IT_BITS = 0x0600fc00, THUMB_STATE = 1 << 24 };

/* Before a fill Unicorn restores the state of the accessing instruction, with the IT bits as they are
 * in the middle of an IT block, and goes on without taking them back: the next block of code would
 * then run under a condition that is not its own. Inside a block they are 0, always.
 */
static bool clear_it_bits(Machine *m, uc_engine *uc) {
    uint64_t value = 0;
    if (m->reg_read(uc, (int)m->xpsr, &value) || !(value & IT_BITS)) return false;
    value &= ~(uint64_t)IT_BITS;
    m->reg_write(uc, (int)m->xpsr, &value);
    return true;
}

/* Only pages that were fetched from are executable: stores to all others take the fast path. Pages of memory
 * that are like in a saved state may not be stored to, until the first store comes.
 *
 * Where memories have tables of their own (slow_path.h), fetches enter no page for loads.
 *
 * A page of flash that has a controller is one of two: for loads and fetches the memory itself, for
 * stores a page of the controller's window, beyond the addresses that the core has.
 */
EXPORT bool on_tlb_fill(uc_engine *uc, uint64_t address, int type, UcTlbEntry *entry, void *user) {
    Machine *m = user;
    if (m->xpsr && type != UC_MEM_FETCH) clear_it_bits(m, uc);
    uint32_t page = (uint32_t)address >> PAGE_BITS;
    uint8_t bit = (uint8_t)(1u << (page & 7));
    if (type == UC_MEM_FETCH) m->code_pages[page >> 3] |= bit;
    entry->paddr = address & ~(uint64_t)((1 << PAGE_BITS) - 1);
    entry->perms = m->code_pages[page >> 3] & bit ? UC_PROT_RWX : UC_PROT_RW;
    if (type == UC_MEM_FETCH && m->tells_memories) entry->perms = UC_PROT_EXEC;
    uint8_t *mark = dirty_mark(m, (uint32_t)address);
    if (type == UC_MEM_STORE) mark_dirty(mark);
    else if (mark && *mark == CLEAN) entry->perms &= ~(uint32_t)UC_PROT_WRITE;
    if ((uint32_t)address - m->flash_start < m->flash_bytes) {
        if (type == UC_MEM_STORE) entry->paddr += m->store_window - m->flash_start;
        entry->perms &= type == UC_MEM_STORE ? UC_PROT_WRITE : UC_PROT_READ | UC_PROT_EXEC;
    }
    return true;
}

/* Whether code may have been translated from bytes: from their pages, of 4 KB at most, was fetched. */
EXPORT int machine_may_have_code(const Machine *m, uint32_t start, uint32_t size) {
    enum { PARTS = 1 << (12 - PAGE_BITS) };
    uint64_t part = start >> PAGE_BITS & ~(PARTS - 1u);
    uint64_t end = (((uint64_t)start + size - 1) >> PAGE_BITS | (PARTS - 1)) + 1;
    for (; part < end; part++)
        if (m->code_pages[part >> 3] & 1u << (part & 7)) return 1;
    return 0;
}

#endif
