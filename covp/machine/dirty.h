/* Memory that may differ from a saved state: a byte for each of its pages says whether it does.
 *
 * A page is marked when the emulator may store to it from then on (tlb.h), and by Python for all that the
 * host stores. Marks are of 4 KB, as an entry of the emulator's table of pages covers that at most.
 */
#ifndef COVP_DIRTY_H
#define COVP_DIRTY_H

#include "counter_state.h"

EXPORT int machine_may_have_code(const Machine *m, uint32_t start, uint32_t size);

enum { DIRTY_BITS = 12, DIRTY_BYTES = 1 << DIRTY_BITS };
enum { CLEAN, DIRTY, ALWAYS_DIRTY };

/* The mark of an address's page, or NULL outside of memory that the core may store to. */
static inline uint8_t *dirty_mark(const Machine *m, uint32_t address) {
    for (uint32_t n = 0; n < m->region_count; n++) {
        const Region *r = &m->regions[n];
        if (address >= r->start && address < r->end)
            return r->writable ? r->dirty + ((address - r->start) >> DIRTY_BITS) : NULL;
    }
    return NULL;
}

static inline void mark_dirty(uint8_t *mark) {
    if (mark && *mark == CLEAN) *mark = DIRTY;
}

/* Go back to `base` where a page is marked; how many are.
 *
 * code: addresses of pages that changed and may have code of one of the machines; room for all pages.
 */
EXPORT uint32_t memory_restore(Machine *const *machines, uint32_t machine_count, uint32_t start,
                               uint8_t *host, const uint8_t *base, const uint8_t *dirty,
                               uint32_t pages, uint32_t *code, uint32_t *code_count) {
    uint32_t found = 0;
    for (uint32_t page = 0; page < pages; page++) {
        uint64_t eight = 0;
        if (page % 8 == 0 && page + 8 <= pages) memcpy(&eight, dirty + page, 8);
        if (page % 8 == 0 && page + 8 <= pages && !eight) {
            page += 7;
            continue;
        }
        if (!dirty[page]) continue;
        found++;
        size_t at = (size_t)page << DIRTY_BITS;
        if (!memcmp(host + at, base + at, DIRTY_BYTES)) continue;
        memcpy(host + at, base + at, DIRTY_BYTES);
        int has_code = 0;
        for (uint32_t n = 0; n < machine_count; n++)
            has_code |= machine_may_have_code(machines[n], start + (uint32_t)at, DIRTY_BYTES);
        if (has_code) code[(*code_count)++] = start + (uint32_t)at;
    }
    return found;
}

#endif
