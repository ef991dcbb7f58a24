// The memory that a unit's port reaches: buffers of the host, under the bytes that a job has stored so far.
#pragma once
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <unordered_map>
#include <vector>

struct Region {  // Python has the same in library.py
    uint32_t start, size;
    const uint8_t *bytes;
    uint32_t writable;
    uint64_t read, written;  // bytes that a job has moved

    bool holds(uint32_t address, uint32_t bytes) const {
        return address - start < size && bytes <= size - (address - start);
    }
};

struct Span {
    uint32_t start, size;
};

class Memory {
public:
    // A job begins: nothing is stored or loaded yet.
    void begin() {
        stored.clear(), fresh.clear();
        loads.clear();
        error[0] = 0;
        outside = false;
        for (Region &region : regions) region.read = region.written = 0;
    }

    // Load `size` bytes; false where there is no memory, and then they are zero.
    bool load(uint32_t address, uint32_t size, uint8_t *bytes) {
        memset(bytes, 0, size);
        Region *region = find(address, size, false);
        if (!region) return refuse("load", address, size);
        memcpy(bytes, region->bytes + (address - region->start), size);
        region->read += size;
        note(address, size);
        if (!stored.empty())
            for (uint32_t i = 0; i < size; i++) {
                auto found = stored.find(address + i);
                if (found != stored.end()) bytes[i] = found->second;
            }
        return true;
    }

    // Store the bytes whose bit of `strobes` is set; false, and none, where there is no RAM.
    bool store(uint32_t address, uint32_t size, const uint8_t *bytes, uint64_t strobes) {
        for (uint32_t i = 0; i < size; i++) {
            if (!(strobes >> i & 1)) continue;
            Region *region = find(address + i, 1, true);
            if (!region) return refuse("store", address + i, 1);
            stored[address + i] = bytes[i];
            fresh.push_back(address + i);
            region->written++, stores++;
        }
        return true;
    }

    bool has(uint32_t address, uint32_t size, bool writes) { return find(address, size, writes); }

    // What the unit does against the rules of its bus; the first one counts.
    void fail(const char *text, ...) {
        if (error[0]) return;
        va_list values;
        va_start(values, text);
        vsnprintf(error, sizeof error, text, values);
        va_end(values);
    }

    std::vector<Region> regions;
    std::unordered_map<uint32_t, uint8_t> stored;
    std::vector<uint32_t> fresh;  // addresses of the bytes that the host does not know yet
    std::vector<Span> loads;
    size_t stores = 0;  // bytes, since the unit was made
    char error[200] = "";
    bool outside = false;  // an access met no memory, at `address`
    bool outside_store = false;
    uint32_t outside_address = 0, outside_size = 0;

private:
    Region *find(uint32_t address, uint32_t size, bool writes) {
        for (Region &region : regions)
            if (region.holds(address, size) && (!writes || region.writable)) return &region;
        return nullptr;
    }

    bool refuse(const char *what, uint32_t address, uint32_t size) {
        if (!outside) {
            outside = true, outside_store = what[0] == 's';
            outside_address = address, outside_size = size;
        }
        return false;
    }

    void note(uint32_t address, uint32_t size) {
        if (!loads.empty() && loads.back().start + loads.back().size == address)
            loads.back().size += size;
        else
            loads.push_back({address, size});
    }
};
