/* Caches and prefetch buffers between a core and its memory: what is in them, and what a miss takes.
 *
 * Fetches are looked up by the block, loads and stores one by one. A miss stalls the core until the
 * whole line is there.
 */
#ifndef COVP_CACHES_H
#define COVP_CACHES_H

#include "cache_content.h"
#include "causes.h"
#include "counter_state.h"

/* Time that depends on addresses: a trace cannot tell it for another memory. */
static void spend_on_memory(Machine *m, uint32_t cause, int64_t cycles) {
    spend(m, cause, cycles);
    m->memory_cycles += cycles;
}

static void leaves_cache(void *machine, Cache *c, uint64_t *tag) { evict((const Machine *)machine, c, tag); }

/* A line takes a free place of its set, or that of another one; its tag. */
static inline uint64_t *take_in(const Machine *m, Cache *c, uint32_t line) {
    uint64_t *place = place_for(c, line);
    evict(m, c, place);
    return put_in(c, place, line);
}

/* Code in memory is fetched, from the cycle of a block's start on. */
static void fetch_through(Machine *m, Cache *c, const Block *b, uint64_t start) {
    uint32_t first = b->address >> c->line_bits, last = (b->address + b->size - 1) >> c->line_bits;
    if (first == c->latest && first == last) return;
    const CachedRegion *region = cached_region(c, b->address);
    if (!region) return;
    uint64_t took = m->cycles - start;
    for (uint32_t line = first; line <= last; line++) {
        if (line == c->latest) continue;
        /* as if each of the block's bytes took as long as the others */
        uint32_t offset = line == first ? 0 : (line << c->line_bits) - b->address;
        uint64_t now = m->cycles - took + took * offset / b->size;
        uint32_t waits = look_up(c, line, region->miss, now, leaves_cache, m);
        c->latest = line;
        if (waits) spend_on_memory(m, CAUSE_CACHE, waits);
    }
}

static void fetch_block(Machine *m, const Block *b, uint64_t start) {
    m->block_start = start;
    for (uint32_t n = 0; n < m->cache_count; n++)
        if (m->caches[n].flags & CACHE_FETCHES) fetch_through(m, &m->caches[n], b, start);
}

/* A store of the block that runs goes on to memory; returns how long the core waits for a place in the
 * buffer. As if the block's stores came as early as can be, and the core had to wait at its end.
 */
static uint32_t pass_on(Machine *m, Cache *c, const CachedRegion *region) {
    if (c->written < m->block_start) c->written = m->block_start;
    c->written += region->store;
    uint32_t pending = written_later(c, m->cycles), room = c->buffer * region->store;
    return pending > room ? pending - room : 0;
}

/* The core is about to store to a line: it is dirty from now on. */
static inline void soil(const Machine *m, Cache *c, uint64_t *tag, const CachedRegion *region) {
    if (*tag & TAG_DIRTY) return;
    if (c->ram >> (region - c->regions) & 1) set_apart(m, c, tag);
    *tag |= TAG_DIRTY;
}

/* As if the core stored to these bytes: what it then sees is put there by the host. */
EXPORT void machine_soil(Machine *m, uint32_t address, uint32_t size) {
    Cache *c = content_cache(m, address);
    if (!c || !(c->flags & CACHE_ALLOCATES)) return;
    uint32_t last = (address + size - 1) >> c->line_bits;
    for (uint32_t line = address >> c->line_bits; size && line <= last; line++) {
        uint64_t *tag = find_line(c, line);
        soil(m, c, tag ? tag : take_in(m, c, line), cached_region(c, address));
    }
}

/* The cycle in which the instruction at a place of the running block accesses memory, as if each of the block's
 * took as long as the others: it is counted as a whole already.
 */
static uint64_t accessed_at(const Machine *m, uint32_t index) {
    uint32_t left = m->last->instructions > index ? m->last->instructions - index : 0;
    return m->cycles - (left ? (uint64_t)m->latest->cycles * left / m->last->instructions : 0);
}

static void access_through(Machine *m, Cache *c, uint32_t address, uint32_t size, bool writes, uint64_t now) {
    const CachedRegion *region = cached_region(c, address);
    if (!region) return;
    if (c->through_bytes) pass_through(m, c);
    uint32_t last = (address + size - 1) >> c->line_bits;
    for (uint32_t line = address >> c->line_bits; line <= last; line++) {
        uint32_t waits = 0;
        if (!writes || c->flags & CACHE_ALLOCATES) {
            uint64_t misses = c->misses;
            waits = look_up(c, line, region->miss, now, leaves_cache, m);
            if (c->misses > misses) {
                waits += written_later(c, m->cycles);
                spend_on_memory(m, CAUSE_DATA, -(int64_t)(m->unmet * m->timing->reloads));
            }
            if (writes) soil(m, c, peek(c, line), region);
        } else {
            const uint64_t *tag = find_line(c, line);
            if (tag && *tag & TAG_APART) c->through = address, c->through_bytes = size;
            waits = pass_on(m, c, region);
        }
        if (waits) spend_on_memory(m, CAUSE_CACHE, waits);
    }
}

static void access_caches(Machine *m, uint32_t address, uint32_t size, bool writes, uint32_t index) {
    for (uint32_t n = 0; n < m->cache_count; n++)
        if (m->caches[n].flags & CACHE_DATA)
            access_through(m, &m->caches[n], address, size, writes, accessed_at(m, index));
}

static inline uint64_t tags_of(const Cache *c) { return (uint64_t)(c->set_mask + 1) * c->ways; }

/* All caches are empty from now on; what was stored to them is in memory. */
EXPORT void machine_clear_caches(Machine *m) {
    for (uint32_t n = 0; n < m->cache_count; n++) {
        Cache *c = &m->caches[n];
        if (c->through_bytes) pass_through(m, c);
        for (uint64_t place = 0; place < tags_of(c); place++) evict(m, c, c->tags + place);
        c->latest = c->prefetched = NO_LINE;
        c->prefetched_at = c->written = 0;
        c->random = 1;
    }
}

#endif
