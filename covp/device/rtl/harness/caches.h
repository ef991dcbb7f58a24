// Caches and prefetch buffers of the platform, between the core's ports and memory: they hold lines, the bytes
// stay in memory, so what a miss changes is time alone.
#pragma once
#include <cstdint>
#include <vector>

#include "cache_lines.h"

class Caches {
public:
    void add(Cache *cache) { caches.push_back(cache); }
    void step() { now++; }

    // Cycles that a word waits for a cache, beyond the wait states of its region.
    uint64_t fetch(uint32_t address) { return wait(address, CACHE_FETCHES, false); }
    uint64_t access(uint32_t address, bool writes) { return wait(address, CACHE_DATA, writes); }

private:
    static void leaves(void *, Cache *, uint64_t *) {}

    uint64_t wait(uint32_t address, uint32_t kind, bool writes) {
        uint64_t waits = 0;
        for (Cache *cache : caches) {
            const CachedRegion *region = cache->flags & kind ? cached_region(cache, address) : nullptr;
            if (region) waits += writes && !(cache->flags & CACHE_ALLOCATES) ? pass_on(*cache, *region, address)
                                                                             : look(*cache, *region, address);
        }
        return waits;
    }

    uint64_t look(Cache &cache, const CachedRegion &region, uint32_t address) {
        uint64_t misses = cache.misses;
        uint64_t waits = look_up(&cache, address >> cache.line_bits, region.miss, now, leaves, nullptr);
        return cache.misses > misses ? waits + written_later(&cache, now) : waits;
    }

    // A store goes on to memory; the core waits for a place in the buffer.
    uint64_t pass_on(Cache &cache, const CachedRegion &region, uint32_t address) {
        find_line(&cache, address >> cache.line_bits);
        if (cache.written < now) cache.written = now;
        cache.written += region.store;
        uint64_t pending = written_later(&cache, now), room = cache.buffer * region.store;
        return pending > room ? pending - room : 0;
    }

    std::vector<Cache *> caches;
    uint64_t now = 0;  // cycles since the device was made
};
