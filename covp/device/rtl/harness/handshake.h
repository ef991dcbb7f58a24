// Wishbone classic, and PicoRV32's native port: a request is held until it is acknowledged, in the
// same cycle where there are no wait states. An access with n wait states takes n more cycles.
#pragma once
#include "memory.h"
#include "state.h"
#include "Vcovp_core.h"

class Ports {
public:
    Ports(Vcovp_core &core, Memory &memory, State &state)
        : core(core), memory(memory), state(state) {}

    void reset() { fetch = data = NONE, answered = false; }

    bool accesses() const { return core.data_req_o; }

    // Inputs of the cycle that begins.
    void drive() {
        memory.caches.step();
        core.fetch_ack_i = core.data_ack_i = 0;
    }

    // Answers of the cycle: the event of an access that the host has to answer, or EVENT_LIMIT.
    Event sample() {
        bool changed = false;
        if (core.fetch_req_o) {
            uint32_t address = core.fetch_addr_o & ~3u;
            const Region *region = memory.find(address);
            if (fetch == NONE) fetch = memory.fetch_wait(address, region);
            if (fetch-- == 0) {
                core.fetch_rdata_i = memory.fetch(address, region);
                core.fetch_ack_i = changed = true;
            }
        } else {
            fetch = NONE;
        }
        Event event = core.data_req_o ? access(changed) : EVENT_LIMIT;
        if (changed) core.eval();
        return event;
    }

    // The host has answered.
    Event resume() {
        data = state.stall;
        answered = true;
        bool changed = false;
        access(changed);
        if (changed) core.eval();
        return EVENT_LIMIT;
    }

private:
    // NONE + 1 is 0, so that an access that was acknowledged leaves NONE.
    static constexpr uint64_t NONE = UINT64_MAX;

    Event access(bool &changed) {
        uint32_t word = core.data_addr_o & ~3u, mask = core.data_be_o;
        const Region *region = memory.find(word);
        bool writes = core.data_we_o, inside = region && (!writes || region->writable);
        if (!inside && !answered) return leave(word, mask);
        if (inside && data == NONE) data = memory.data_wait(word, *region, writes);
        if (data-- != 0) return EVENT_LIMIT;
        if (!inside)
            core.data_rdata_i = state.value << (8 * (state.address & 3));
        else if (writes)
            store_bytes(region->at(word), core.data_wdata_o, mask);
        else
            memcpy(&core.data_rdata_i, region->at(word), 4);
        answered = false;
        core.data_ack_i = changed = true;
        return EVENT_LIMIT;
    }

    Event leave(uint32_t word, uint32_t mask) {
        state.address = word + first_byte(mask);
        state.size = __builtin_popcount(mask);
        state.value = core.data_wdata_o >> (8 * first_byte(mask));
        state.stall = 0;
        state.pc = core.data_pc_o;
        return core.data_we_o ? EVENT_STORE : EVENT_LOAD;
    }

    Vcovp_core &core;
    Memory &memory;
    State &state;
    uint64_t fetch = NONE, data = NONE;  // cycles until the acknowledgement
    bool answered = false;
};
