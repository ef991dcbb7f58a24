/* The lines of a cache: which are held, which one leaves, and how long the core waits. For the counter, and for
 * caches before a core's RTL: it is C and C++.
 */
#ifndef COVP_CACHE_LINES_H
#define COVP_CACHE_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MAX_REGIONS = 16, MAX_CACHES = 4 };
#define NO_LINE UINT32_MAX
enum { CACHE_FETCHES = 1, CACHE_DATA = 2, CACHE_ALLOCATES = 4, CACHE_PREFETCHES = 8 };
enum { REPLACE_LRU, REPLACE_FIFO, REPLACE_RANDOM };

/* Memory that is cached, and the cycles that a miss, and a store that is passed on, take. */
typedef struct { uint32_t start, end, miss, store; } CachedRegion;

/* A cache; all but the last members are set by Python. */
typedef struct {
    uint32_t line_bits, set_mask, ways, replacement, flags, region_count;
    CachedRegion regions[MAX_REGIONS];
    uint64_t *tags; /* of all sets; in a set the latest first; see put_in */
    uint64_t lookups, misses;
    uint64_t prefetched_at; /* cycle in which the prefetched line is there */
    uint32_t prefetched;    /* line */
    uint32_t latest;        /* line that was fetched from last */
    uint32_t random, buffer; /* stores that wait without stalling the core */
    uint64_t written; /* cycle in which all stores have reached the memory */
    uint32_t *apart; /* a place for each tag: 1 + the line whose bytes in memory are kept; 0: none */
    uint8_t *kept;   /* ... these bytes, see cache_content.h; NULL: time alone counts */
    uint32_t through, through_bytes; /* a store that memory has to get, too, when it is done */
    uint32_t ram;    /* a bit for each region that is RAM: bus masters may see something else */
} Cache;

/* A tag: twice the line's number, plus 1, and these bits. 0: holds nothing. */
#define TAG_DIRTY (UINT64_C(1) << 32)
#define TAG_APART (UINT64_C(1) << 33)

static inline uint64_t tag_of(uint32_t line) { return line << 1 | 1; }
static inline uint32_t line_of(uint64_t tag) { return (uint32_t)tag >> 1; }
static inline uint64_t *set_of(const Cache *c, uint32_t line) {
    return c->tags + (line & c->set_mask) * c->ways;
}

/* The tag of a line that is held, or NULL; nothing is used by it. */
static inline uint64_t *peek(const Cache *c, uint32_t line) {
    uint64_t *set = set_of(c, line);
    for (uint32_t way = 0; way < c->ways; way++)
        if ((uint32_t)set[way] == tag_of(line)) return set + way;
    return NULL;
}

static const CachedRegion *cached_region(const Cache *c, uint32_t address) {
    for (uint32_t n = 0; n < c->region_count; n++)
        if (address >= c->regions[n].start && address < c->regions[n].end) return &c->regions[n];
    return NULL;
}

static inline uint32_t next_random(Cache *c) {
    c->random ^= c->random << 13;
    c->random ^= c->random >> 17;
    return c->random ^= c->random << 5;
}

static inline void to_front(uint64_t *set, uint32_t way, uint64_t tag) {
    for (; way; way--) set[way] = set[way - 1];
    set[0] = tag;
}

/* The tag of a line that is held, or NULL; of the least recently used replacement it is the latest now. */
static inline uint64_t *find_line(Cache *c, uint32_t line) {
    uint64_t *tag = peek(c, line);
    if (!tag || c->replacement != REPLACE_LRU) return tag;
    uint64_t *set = set_of(c, line);
    to_front(set, (uint32_t)(tag - set), *tag);
    return set;
}

/* The place that a line takes: a free one of its set, or that of the line that leaves. */
static inline uint64_t *place_for(Cache *c, uint32_t line) {
    uint64_t *set = set_of(c, line);
    uint32_t way = 0;
    while (way < c->ways && set[way]) way++;
    /* the first one in leaves first, unless used */
    if (way == c->ways) way = c->replacement == REPLACE_RANDOM ? next_random(c) % c->ways : c->ways - 1;
    return set + way;
}

/* The line is at this place, or the first of its set; returns its tag. */
static inline uint64_t *put_in(Cache *c, uint64_t *place, uint32_t line) {
    uint64_t *set = set_of(c, line);
    if (c->replacement == REPLACE_RANDOM) {
        *place = tag_of(line);
        return place;
    }
    to_front(set, (uint32_t)(place - set), tag_of(line));
    return set;
}

/* The line after this one is read in advance, as soon as the memory is free. */
static inline void prefetch(Cache *c, uint32_t line, uint64_t now, uint32_t cycles) {
    c->prefetched = line + 1;
    c->prefetched_at = now + cycles;
}

/* A line leaves a cache. */
typedef void Leaves(void *context, Cache *c, uint64_t *tag);

/* A line is requested in a cycle; returns how long the core waits for it, at a miss for so many cycles. */
static uint32_t look_up(Cache *c, uint32_t line, uint32_t miss, uint64_t now, Leaves *leaves, void *context) {
    bool is_next = (c->flags & CACHE_PREFETCHES) && line == c->prefetched;
    c->lookups++;
    if (find_line(c, line)) {
        if (c->flags & CACHE_PREFETCHES && !find_line(c, line + 1) && c->prefetched != line + 1)
            prefetch(c, line, now, miss);
        return 0;
    }
    uint64_t busy = c->prefetched_at > now ? c->prefetched_at - now : 0;
    uint32_t waits = is_next ? (uint32_t)busy : miss + (uint32_t)busy;
    c->misses += !is_next;
    uint64_t *place = place_for(c, line);
    leaves(context, c, place);
    put_in(c, place, line);
    if (c->flags & CACHE_PREFETCHES) prefetch(c, line, now + waits, miss);
    return waits;
}

/* Cycles that the memory is still busy with stores. */
static inline uint32_t written_later(const Cache *c, uint64_t now) {
    return c->written > now ? (uint32_t)(c->written - now) : 0;
}

#endif
