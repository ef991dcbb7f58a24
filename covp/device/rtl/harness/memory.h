// Memory as the core's ports see it: regions that are buffers of the host, and the boot code.
#pragma once
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "caches.h"

struct Region {
    uint32_t start, size;
    uint8_t *bytes;
    uint32_t writable, fetch_wait, data_wait;

    bool holds(uint32_t address) const { return address - start < size; }
    uint8_t *at(uint32_t address) const { return bytes + (address - start); }
};

class Memory {
public:
    void add(const Region &region) { regions.push_back(region); }
    void set_boot(uint32_t address, const uint32_t *words, uint32_t count) {
        boot_start = address;
        boot.assign(words, words + count);
    }
    void set_stop(uint32_t address) { stop = address; }

    // The region that holds an address, or null.
    const Region *find(uint32_t address) {
        if (last && last->holds(address)) return last;
        for (const Region &region : regions)
            if (region.holds(address)) return last = &region;
        return nullptr;
    }

    // Cycles that an access takes beyond the least.
    uint64_t fetch_wait(uint32_t address, const Region *region) {
        return region ? region->fetch_wait + caches.fetch(address) : 0;
    }
    uint64_t data_wait(uint32_t address, const Region &region, bool writes) {
        return region.data_wait + caches.access(address, writes);
    }

    // A word of code. What is not there reads as zero, an illegal instruction: cores fetch ahead.
    uint32_t fetch(uint32_t address, const Region *region) const {
        uint32_t word = 0, place = (address - boot_start) / 4;
        if (region)
            memcpy(&word, region->at(address), 4);
        else if (place < boot.size())
            word = boot[place];
        return address - (stop & ~3u) <= 4 ? halted(address, word) : word;
    }

    Caches caches;

private:
    // At the stop address is a nop, which takes one cycle on every core, and a jump to itself after it, so that
    // nothing further has an effect.
    uint32_t halted(uint32_t address, uint32_t word) const {
        using Code = std::conditional_t<COVP_COMPRESSED, uint16_t, uint32_t>;
        constexpr Code nop = COVP_COMPRESSED ? 0x0001 : 0x00000013;
        constexpr Code loop = COVP_COMPRESSED ? 0xa001 : 0x0000006f;
        for (uint32_t at = 0; at < sizeof word; at += sizeof(Code)) {
            uint32_t after = address + at - stop;
            if (after <= sizeof(Code))
                memcpy(reinterpret_cast<char *>(&word) + at, after ? &loop : &nop, sizeof(Code));
        }
        return word;
    }

    std::vector<Region> regions;
    std::vector<uint32_t> boot;
    uint32_t boot_start = 0, stop = 0;
    const Region *last = nullptr;
};

// A word under a mask of its bytes: address and size of the access.
inline uint32_t first_byte(uint32_t mask) { return mask ? __builtin_ctz(mask) : 0; }

inline void store_bytes(uint8_t *word, uint32_t value, uint32_t mask) {
    for (int i = 0; i < 4; i++)
        if (mask >> i & 1) word[i] = value >> (8 * i);
}
