// AHB-Lite (Arm IHI 0033): the address of a transfer comes in one cycle, its data in those after it, until HREADY.
// A memory with n wait states keeps HREADY low for n cycles. A store lands in the first cycle of its data.
#pragma once
#include "memory.h"
#include "state.h"
#include "Vcovp_core.h"

struct AhbPort {
    bool busy = false;  // a transfer is in its data phase
    uint64_t left = 0;  // cycles that HREADY is still low in it
    uint32_t answer = 0;

    void accept(uint64_t wait) { busy = true, left = wait; }
    bool is_ready() const { return !busy || !left; }
    // A cycle ends.
    void step() {
        if (is_ready())
            busy = false;
        else
            left--;
    }
};

class Ports {
public:
    Ports(Vcovp_core &core, Memory &memory, State &state)
        : core(core), memory(memory), state(state) {}

    void reset() { fetch = data = AhbPort(), store = Store::NONE, outside = false; }
    bool accesses() const { return core.data_req_o || store != Store::NONE; }

    // Inputs of the cycle that begins.
    void drive() {
        memory.caches.step();
        core.fetch_ready_i = fetch.is_ready();
        core.fetch_rdata_i = fetch.answer;
        core.data_ready_i = data.is_ready();
        core.data_rdata_i = data.answer;
    }

    // Outputs at its end: the event of an access that the host has to answer, or EVENT_LIMIT.
    Event sample() {
        if (core.fetch_ready_i && core.fetch_req_o) {
            uint32_t address = core.fetch_addr_o & ~3u;
            const Region *region = memory.find(address);
            fetch.busy = false;
            fetch.answer = memory.fetch(address, region);
            fetch.accept(memory.fetch_wait(address, region));
        } else {
            fetch.step();
        }
        if (store == Store::INSIDE) {
            store = Store::NONE;
            store_bytes(memory.find(word)->at(word), core.data_wdata_o, mask);
        } else if (store == Store::OUTSIDE) {
            return leave(EVENT_STORE);
        }
        return go_on();
    }

    // The host has answered: a load in its address phase, a store in that of its data.
    Event resume() {
        if (!outside) return EVENT_LIMIT;
        outside = false;
        if (store == Store::NONE) {
            data.answer = state.value << (8 * (state.address & 3));
            data.accept(state.stall);
            return EVENT_LIMIT;
        }
        store = Store::NONE;
        data.left = state.stall;
        if (data.left) {
            core.data_ready_i = 0;
            core.eval();
        }
        return go_on();
    }

private:
    enum class Store { NONE, INSIDE, OUTSIDE };

    // The data phase goes on, and where it ends there may be another address.
    Event go_on() {
        bool accepts = core.data_ready_i && core.data_req_o;
        if (!accepts) {
            data.step();
            return EVENT_LIMIT;
        }
        data.busy = false;
        return access();
    }

    Event access() {
        uint32_t first = core.data_addr_o & 3;
        word = core.data_addr_o & ~3u;
        mask = ((1u << (1u << core.data_size_o)) - 1) << first;
        pc = core.data_pc_o;
        bool writes = core.data_we_o;
        const Region *region = memory.find(word);
        bool inside = region && (!writes || region->writable);
        if (writes) {
            store = inside ? Store::INSIDE : Store::OUTSIDE;
            data.accept(inside ? memory.data_wait(word, *region, true) : 0);
        } else if (inside) {
            memcpy(&data.answer, region->at(word), 4);
            data.accept(memory.data_wait(word, *region, false));
        } else {
            return leave(EVENT_LOAD);
        }
        return EVENT_LIMIT;
    }

    Event leave(Event event) {
        outside = true;
        state.address = word + first_byte(mask);
        state.size = __builtin_popcount(mask);
        state.value = core.data_wdata_o >> (8 * first_byte(mask));
        state.stall = 0;
        state.pc = pc;
        return event;
    }

    Vcovp_core &core;
    Memory &memory;
    State &state;
    AhbPort fetch, data;
    Store store = Store::NONE;  // whose data come in this cycle
    uint32_t word = 0, mask = 0, pc = 0;
    bool outside = false;
};
