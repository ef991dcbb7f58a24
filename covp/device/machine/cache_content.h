/* What memory holds while a data cache holds something else.
 *
 * The emulated RAM is what the core sees. Memory differs from it only in lines that a cache holds: those
 * that the core has stored to (write: back), and those that a bus master has stored to since they were
 * read. Their bytes in memory are kept apart, from when they begin to differ until the line leaves the
 * cache: a dirty line goes back, so memory has what the core saw; of any other line the core sees
 * memory's bytes from then on.
 */
#ifndef COVP_CACHE_CONTENT_H
#define COVP_CACHE_CONTENT_H

#include "counter_state.h"
#include "dirty.h"

static inline uint32_t line_bytes(const Cache *c) { return 1u << c->line_bits; }

/* The core's bytes of a line. */
static inline uint8_t *seen_line(const Machine *m, const Cache *c, uint32_t line) {
    return (uint8_t *)host_bytes(m, line << c->line_bits, line_bytes(c));
}

/* The place among those of a line's set that keeps the requested bytes: 1 + a line, or 0 for a free one. */
static inline uint32_t kept_place(const Cache *c, uint32_t line, uint32_t what) {
    uint32_t place = (line & c->set_mask) * c->ways;
    while (c->apart[place] != what) place++;
    return place;
}

/* Memory's bytes of a line that is apart. */
static inline uint8_t *kept_line(const Cache *c, uint32_t line) {
    return c->kept + ((size_t)kept_place(c, line, line + 1) << c->line_bits);
}

/* Memory and the core may see different bytes of a line from now on. */
static SELDOM void set_apart(const Machine *m, Cache *c, uint64_t *tag) {
    uint32_t line = line_of(*tag);
    const uint8_t *seen = seen_line(m, c, line);
    /* a store that crosses the end of a memory, a fault, is to a line past it, too */
    if (!c->kept || *tag & TAG_APART || !seen) return;
    uint32_t place = kept_place(c, line, 0);
    c->apart[place] = line + 1;
    memcpy(c->kept + ((size_t)place << c->line_bits), seen, line_bytes(c));
    *tag |= TAG_APART;
}

/* They see the same again, as the core does (the line goes back), or as memory does. */
static SELDOM void join_line(const Machine *m, Cache *c, uint64_t *tag, bool goes_back) {
    if (!(*tag & TAG_APART)) return;
    uint32_t line = line_of(*tag), place = kept_place(c, line, line + 1);
    if (!goes_back) {
        memcpy(seen_line(m, c, line), c->kept + ((size_t)place << c->line_bits), line_bytes(c));
        mark_dirty(dirty_mark(m, line << c->line_bits));
    }
    c->apart[place] = 0;
    *tag &= ~TAG_APART;
}

/* A line leaves the cache, because another one takes its place. */
static inline void evict(const Machine *m, Cache *c, uint64_t *tag) {
    if (*tag & TAG_APART) join_line(m, c, tag, *tag & TAG_DIRTY);
    *tag = 0;
}

/* -- stores that go through ---------------------------------------------------------------------------- */

/* Memory gets the store that was seen last: it is done now. */
static SELDOM void pass_through(const Machine *m, Cache *c) {
    uint32_t address = c->through, end = address + c->through_bytes;
    c->through_bytes = 0;
    while (address < end) {
        uint32_t line = address >> c->line_bits, at = address & (line_bytes(c) - 1);
        uint32_t bytes = end - address < line_bytes(c) - at ? end - address : line_bytes(c) - at;
        const uint64_t *tag = peek(c, line);
        if (tag && *tag & TAG_APART) memcpy(kept_line(c, line) + at, seen_line(m, c, line) + at, bytes);
        address += bytes;
    }
}

/* -- bus masters, and the host -------------------------------------------------------------------------- */

/* The data cache that an address of RAM is read through, or NULL. */
static Cache *content_cache(const Machine *m, uint32_t address) {
    for (uint64_t n = 0; n < m->cache_count; n++) {
        Cache *c = &m->caches[n];
        for (uint32_t r = 0; c->kept && r < c->region_count; r++)
            if (address >= c->regions[r].start && address < c->regions[r].end)
                return c->ram >> r & 1 ? c : NULL;
    }
    return NULL;
}

typedef void Part(const Machine *m, Cache *c, uint64_t *tag, uint32_t at, uint32_t bytes, uint8_t *data);

/* Do something with each held line that bytes of one region lie in, and the part of the data for it. */
static void each_held(const Machine *m, uint32_t address, uint32_t size, uint8_t *data, Part *work) {
    Cache *c = content_cache(m, address);
    if (!c) return;
    if (c->through_bytes) pass_through(m, c);
    for (uint32_t done = 0; done < size;) {
        uint32_t at = (address + done) & (line_bytes(c) - 1), bytes = line_bytes(c) - at;
        if (bytes > size - done) bytes = size - done;
        uint64_t *tag = peek(c, (address + done) >> c->line_bits);
        if (tag) work(m, c, tag, at, bytes, data + done);
        done += bytes;
    }
}

static void read_kept(const Machine *m, Cache *c, uint64_t *tag, uint32_t at, uint32_t bytes,
                      uint8_t *data) {
    (void)m;
    if (*tag & TAG_APART) memcpy(data, kept_line(c, line_of(*tag)) + at, bytes);
}

static void write_kept(const Machine *m, Cache *c, uint64_t *tag, uint32_t at, uint32_t bytes,
                       uint8_t *data) {
    (void)m;
    if (*tag & TAG_APART) memcpy(kept_line(c, line_of(*tag)) + at, data, bytes);
}

/* The core goes on to see what it saw: what it sees is exchanged with the data. */
static void write_memory(const Machine *m, Cache *c, uint64_t *tag, uint32_t at, uint32_t bytes,
                         uint8_t *data) {
    set_apart(m, c, tag);
    memcpy(kept_line(c, line_of(*tag)) + at, data, bytes);
    memcpy(data, seen_line(m, c, line_of(*tag)) + at, bytes);
}

/* In a copy of what the core sees, put what memory holds. */
EXPORT void machine_memory_bytes(const Machine *m, uint32_t address, uint32_t size, uint8_t *data) {
    each_held(m, address, size, data, read_kept);
}

/* A bus master stores the data; in its place comes what the core sees from then on. */
EXPORT void machine_store_memory(const Machine *m, uint32_t address, uint32_t size, uint8_t *data) {
    each_held(m, address, size, data, write_memory);
}

/* The host stores the data, which the core sees already, to memory, too. */
EXPORT void machine_store_both(const Machine *m, uint32_t address, uint32_t size, uint8_t *data) {
    each_held(m, address, size, data, write_kept);
}

#endif
