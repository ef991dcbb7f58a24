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

/* A memory, and what it goes back to. */
typedef struct {
    uint8_t *host;
    const uint8_t *saved, *dirty;
    uint32_t start, pages;
} SavedPages;

/* Whether code of one of the machines may be in a page. */
static bool has_code(Machine *const *machines, uint32_t count, uint32_t address) {
    for (uint32_t n = 0; n < count; n++)
        if (machine_may_have_code(machines[n], address, DIRTY_BYTES)) return true;
    return false;
}

/* Go back to what was saved where a page is marked; how many are.
 *
 * code: after their number, the addresses of pages that changed and may have code; room for all.
 */
EXPORT uint32_t memory_restore(Machine *const *machines, uint32_t machine_count,
                               const SavedPages *memories, uint32_t memory_count, uint32_t *code) {
    uint32_t found = 0;
    code[0] = 0;
    for (const SavedPages *s = memories; s < memories + memory_count; s++)
        for (uint32_t page = 0; page < s->pages; page++) {
            const uint8_t *mark = s->dirty + page;
            uint64_t eight = 1;
            if (page + 8 <= s->pages) memcpy(&eight, mark, sizeof eight);
            if (!eight) page += 7;
            if (!eight || !*mark) continue;
            found++;
            size_t at = (size_t)page << DIRTY_BITS;
            if (!memcmp(s->host + at, s->saved + at, DIRTY_BYTES)) continue;
            memcpy(s->host + at, s->saved + at, DIRTY_BYTES);
            uint32_t address = s->start + (uint32_t)at;
            if (has_code(machines, machine_count, address)) code[++code[0]] = address;
        }
    return found;
}

#endif
