// Phases of a program: entering an address makes a phase the current one.
#pragma once
#include <cstdint>
#include <vector>

#include "state.h"

struct Count {
    uint64_t instructions, cycles;
};

class Phases {
public:
    explicit Phases(State &state) : state(state) { set(nullptr, nullptr, 0, 1); }

    void set(const uint32_t *addresses, const uint32_t *phases, uint32_t count, uint32_t kinds) {
        uint32_t size = 16;
        while (size < 4 * count) size *= 2;
        slots.assign(size, Slot{EMPTY, 0});
        for (uint32_t i = 0; i < count; i++) *find(addresses[i]) = Slot{addresses[i], phases[i]};
        counts.assign(kinds, Count{});
        state.phase = 0;
        state.phase_start = state.cycle;
        state.phase_first = state.instructions;
    }

    // Phase 0 is the current one.
    void begin() { enter(0); }

    // The instruction at `pc` retires.
    void retire(uint32_t pc) {
        const Slot *slot = find(pc);
        if (slot->address == pc && slot->phase != state.phase) enter(slot->phase);
    }

    // Give what was spent since the phase began to it.
    void settle() { enter(state.phase); }

    bool are_set() const { return counts.size() > 1; }

    const Count *data() const { return counts.data(); }

private:
    static constexpr uint32_t EMPTY = 1;  // odd: no instruction's address

    struct Slot {
        uint32_t address, phase;
    };

    Slot *find(uint32_t address) {
        uint32_t mask = slots.size() - 1, place = address * 2654435761u >> 7 & mask;
        while (slots[place].address != EMPTY && slots[place].address != address)
            place = (place + 1) & mask;
        return &slots[place];
    }

    void enter(uint32_t phase) {
        counts[state.phase].cycles += state.cycle - state.phase_start;
        counts[state.phase].instructions += state.instructions - state.phase_first;
        state.phase = phase;
        state.phase_start = state.cycle;
        state.phase_first = state.instructions;
    }

    State &state;
    std::vector<Slot> slots;
    std::vector<Count> counts;
};
