// OBI 1: a request is accepted with gnt, its answer comes with rvalid, in a later cycle.
// A memory serves one access at a time: one with n wait states answers n + 1 cycles after it has
// accepted, and accepts the next one in the cycle of the answer.
#pragma once
#include "memory.h"
#include "state.h"
#include "Vcovp_core.h"

struct ObiPort {
    bool busy = false;
    uint64_t left = 0;  // cycles until the answer
    uint32_t answer = 0;

    void accept(uint64_t wait) { busy = true, left = wait + 1; }
    // A cycle begins: whether the answer comes in it.
    bool arrives() {
        if (!busy || --left) return false;
        busy = false;
        return true;
    }
};

class Ports {
public:
    Ports(Vcovp_core &core, Memory &memory, State &state)
        : core(core), memory(memory), state(state) {}

    void reset() { fetch = data = ObiPort(), outside = answered = false, held = 0; }

    bool accesses() const { return core.data_req_o; }

    // Inputs of the cycle that begins.
    void drive() {
        memory.caches.step();
        core.fetch_rvalid_i = fetch.arrives();
        core.fetch_rdata_i = fetch.answer;
        core.fetch_gnt_i = !fetch.busy;
        core.data_rvalid_i = data.arrives();
        core.data_rdata_i = data.answer;
        if (held) held--;
        core.data_gnt_i = !data.busy && !held;
    }

    // Outputs at its end: the event of an access that the host has to answer, or EVENT_LIMIT.
    Event sample() {
        if (core.fetch_req_o && !fetch.busy) {
            uint32_t address = core.fetch_addr_o & ~3u;
            const Region *region = memory.find(address);
            fetch.answer = memory.fetch(address, region);
            fetch.accept(memory.fetch_wait(address, region));
        }
        if (!core.data_req_o || !core.data_gnt_i) return EVENT_LIMIT;
        if (!answered) return access();
        answer();
        return EVENT_LIMIT;
    }

    // The host has answered. A slow model grants late, so that a store holds the core up, too.
    Event resume() {
        if (!outside) return EVENT_LIMIT;
        outside = false, answered = true;
        data.answer = state.value << (8 * (state.address & 3));
        held = state.stall;
        if (held) {
            core.data_gnt_i = 0;
            core.eval();
        } else {
            answer();
        }
        return EVENT_LIMIT;
    }

private:
    void answer() {
        answered = false;
        data.accept(0);
    }

    Event access() {
        uint32_t word = core.data_addr_o & ~3u, mask = core.data_be_o;
        const Region *region = memory.find(word);
        if (region && (!core.data_we_o || region->writable)) {
            if (core.data_we_o)
                store_bytes(region->at(word), core.data_wdata_o, mask);
            else
                memcpy(&data.answer, region->at(word), 4);
            data.accept(memory.data_wait(word, *region, core.data_we_o));
            return EVENT_LIMIT;
        }
        outside = true;
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
    ObiPort fetch, data;
    bool outside = false, answered = false;
    uint64_t held = 0;  // cycles until an access that was answered is granted
};
