/* What programs do to data caches: lines are cleaned (go back to memory) and invalidated.
 *
 * A line that goes back stalls the core for as long as one that is read; an instruction that empties the
 * cache, for a cycle per set.
 */
#ifndef COVP_CACHE_MAINTENANCE_H
#define COVP_CACHE_MAINTENANCE_H

#include "caches.h"
#include "ghosts.h"

enum { CLEANS = 1, INVALIDATES = 2 };

/* Where what a cache's lines take is counted: cycles of the core, or misses of a ghost. */
typedef struct { Machine *m; Cache *c; uint64_t *misses; } Maintained;

static void maintain(const Maintained *on, uint64_t *tag, uint32_t what) {
    Cache *c = on->c;
    uint32_t line = line_of(*tag);
    if (what & CLEANS && *tag & TAG_DIRTY) {
        const CachedRegion *region = cached_region(c, line << c->line_bits);
        if (on->misses) on->misses[region - c->regions]++;
        else spend_on_memory(on->m, CAUSE_CACHE, region->miss);
        join_line(on->m, c, tag, true);
        *tag &= ~TAG_DIRTY;
    }
    if (what & INVALIDATES) {
        join_line(on->m, c, tag, false);
        *tag = 0;
        if (c->latest == line) c->latest = NO_LINE;
    }
}

/* One line by its address; or by way and set, as in Arm DDI0403E B3.2.2; or all. */
typedef enum { BY_ADDRESS, BY_WAY, ALL_LINES } Scope;

static void maintain_cache(const Maintained *on, Scope scope, uint32_t where, uint32_t what) {
    Cache *c = on->c;
    if (!(c->flags & CACHE_DATA)) return;
    if (c->through_bytes) pass_through(on->m, c);
    if (scope == ALL_LINES) { /* set by set */
        if (on->misses) on->misses[SETS_AT] += c->set_mask + 1;
        else spend_on_memory(on->m, CAUSE_CACHE, c->set_mask + 1);
        for (uint64_t place = 0; place < tags_of(c); place++) maintain(on, c->tags + place, what);
        return;
    }
    uint32_t line = where >> c->line_bits, way = 0;
    for (uint32_t top = 31, ways = c->ways - 1; ways; ways >>= 1) way = way << 1 | (where >> top-- & 1);
    uint64_t *tag = scope == BY_ADDRESS ? peek(c, line) : way < c->ways ? set_of(c, line) + way : NULL;
    if (tag) maintain(on, tag, what);
}

EXPORT void machine_maintain(Machine *m, uint32_t scope, uint32_t where, uint32_t what) {
    for (uint64_t n = 0; n < m->cache_count; n++)
        maintain_cache(&(Maintained){m, &m->caches[n], NULL}, scope, where, what);
    struct Segments *s = m->segments;
    for (uint64_t n = 0; s && n < s->ghost_count; n++)
        maintain_cache(&(Maintained){m, &s->ghosts[n], s->misses + n * GHOST_COUNTS}, scope, where, what);
}

#endif
