// A rule of buses: what was offered stays as it is until it is accepted.
#pragma once
#include <array>
#include <cstdint>

#include "memory.h"
#include "ports.h"

// The bytes of a data port that are stored, as a number: FNV-1a, 64 bits.
template <uint32_t BYTES>
uint64_t hash(const uint8_t *bytes, uint64_t strobes) {
    uint64_t value = 1469598103934665603u;
    for (uint32_t i = 0; i < BYTES; i++)
        if (strobes >> i & 1) value = (value ^ bytes[i]) * 1099511628211u;
    return value;
}

template <int SIGNALS>
class Stable {
public:
    using Offer = std::array<uint64_t, SIGNALS>;

    explicit Stable(const char *section) : section(section) {}

    void forget() { waits = false; }

    // At the end of a cycle. `offer` is only called where something waits.
    template <typename Get>
    void check(Memory &memory, const char *what, bool valid, bool ready, Get offer) {
        if (waits && !valid) memory.fail("%s is withdrawn before it is accepted (%s)", what, section);
        bool begins = !waits;
        bool waited = waits && valid;
        waits = valid && !ready;
        if (!waits && !waited) return;
        Offer now = offer();
        if (!begins && valid && now != before)
            memory.fail("%s changes before it is accepted (%s)", what, section);
        before = now;
    }

private:
    const char *section;
    bool waits = false;
    Offer before{};
};
