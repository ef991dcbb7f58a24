/* Ghosts: caches of other shapes that see the same addresses as those of the core, in one run. They take no
 * time; their misses are counted by memory, sets that are emptied, and loads of what was just stored.
 */
#ifndef COVP_GHOSTS_H
#define COVP_GHOSTS_H

#include "caches.h"
#include "segments.h"

static uint64_t *ghost_line(const Machine *m, Cache *c, const CachedRegion *region, uint32_t line,
                            uint64_t *misses) {
    uint64_t *tag = find_line(c, line);
    if (tag) return tag;
    misses[region - c->regions]++;
    return take_in(m, c, line);
}

/* As fetch_through. */
static void ghost_fetch(const Machine *m, Cache *c, const Block *b, uint64_t *misses) {
    uint32_t first = b->address >> c->line_bits, last = (b->address + b->size - 1) >> c->line_bits;
    const CachedRegion *region = cached_region(c, b->address);
    if (!region) return;
    for (uint32_t line = first; line <= last; line++) {
        if (line == c->latest) continue;
        ghost_line(m, c, region, line, misses);
        c->latest = line;
    }
}

/* As access_through. */
static void ghost_access(const Machine *m, Cache *c, uint32_t address, uint32_t size, bool writes,
                         uint64_t *misses) {
    const CachedRegion *region = cached_region(c, address);
    if (!region) return;
    uint32_t last = (address + size - 1) >> c->line_bits;
    for (uint32_t line = address >> c->line_bits; line <= last; line++) {
        if (!writes || c->flags & CACHE_ALLOCATES) {
            misses[UNMET_AT] += peek(c, line) ? 0 : m->unmet;
            uint64_t *tag = ghost_line(m, c, region, line, misses);
            if (writes) *tag |= TAG_DIRTY;
        } else {
            find_line(c, line);
        }
    }
}

static void ghosts_fetch(Machine *m, const Block *b) {
    struct Segments *s = m->segments;
    for (uint64_t n = 0; s && n < s->ghost_count; n++)
        if (s->ghosts[n].flags & CACHE_FETCHES)
            ghost_fetch(m, &s->ghosts[n], b, s->misses + n * GHOST_COUNTS);
}

static void ghosts_access(Machine *m, uint32_t address, uint32_t size, bool writes) {
    struct Segments *s = m->segments;
    for (uint64_t n = 0; s && n < s->ghost_count; n++)
        if (s->ghosts[n].flags & CACHE_DATA)
            ghost_access(m, &s->ghosts[n], address, size, writes, s->misses + n * GHOST_COUNTS);
}

/* Ghosts of Python's, which has to keep them, before the first cut. 0: no memory. */
EXPORT int machine_add_ghosts(Machine *m, Cache *ghosts, uint64_t count) {
    m->segments->misses = calloc(count * GHOST_COUNTS + 1, sizeof *m->segments->misses);
    m->segments->ghosts = ghosts;
    m->segments->ghost_count = m->segments->misses ? count : 0;
    return m->segments->misses != NULL;
}

/* The misses of each ghost by memory up to each cut. */
EXPORT void machine_ghost_misses(const Machine *m, uint64_t *out) {
    const struct Segments *s = m->segments;
    if (s->ghost_count) memcpy(out, s->cut_misses, s->cut_count * s->ghost_count * GHOST_COUNTS * sizeof *out);
}

#endif
