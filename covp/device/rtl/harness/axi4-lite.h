// AXI4-Lite (Arm IHI 0022): addresses, data and answers on channels of their own, one transfer of a port at a time.
// A memory with n wait states answers n + 1 cycles after it has taken the address, or the last of address and data
// of a store.
#pragma once
#include "memory.h"
#include "state.h"
#include "Vcovp_core.h"

struct AxiAnswer {
    bool busy = false;
    uint64_t left = 0;  // cycles until it is there; it stays until it is taken
    uint32_t data = 0;

    void accept(uint64_t wait) { busy = true, left = wait + 1; }
    // A cycle begins: whether the answer is there.
    bool arrives() {
        if (busy && left) left--;
        return busy && !left;
    }
};

class Ports {
public:
    Ports(Vcovp_core &core, Memory &memory, State &state)
        : core(core), memory(memory), state(state) {}

    void reset() { fetch = load = store = AxiAnswer(), has_address = has_data = outside = false; }
    bool accesses() const { return core.data_arvalid_o || core.data_awvalid_o || core.data_wvalid_o || has_address; }

    // Inputs of the cycle that begins.
    void drive() {
        memory.caches.step();
        core.fetch_rvalid_i = fetch.arrives();
        core.fetch_rdata_i = fetch.data;
        core.fetch_arready_i = !fetch.busy;
        core.data_rvalid_i = load.arrives();
        core.data_rdata_i = load.data;
        core.data_arready_i = !load.busy && !store.busy;
        core.data_bvalid_i = store.arrives();
        core.data_awready_i = !has_address && !load.busy && !store.busy;
        core.data_wready_i = !has_data && !load.busy && !store.busy;
    }

    // Outputs at its end: the event of an access that the host has to answer, or EVENT_LIMIT.
    Event sample() {
        if (core.fetch_rvalid_i && core.fetch_rready_o) fetch.busy = false;
        if (core.fetch_arvalid_o && core.fetch_arready_i) {
            uint32_t address = core.fetch_araddr_o & ~3u;
            const Region *region = memory.find(address);
            fetch.data = memory.fetch(address, region);
            fetch.accept(memory.fetch_wait(address, region));
        }
        if (core.data_rvalid_i && core.data_rready_o) load.busy = false;
        if (core.data_bvalid_i && core.data_bready_o) store.busy = false;
        if (core.data_awvalid_o && core.data_awready_i) take_address(core.data_awaddr_o);
        if (core.data_wvalid_o && core.data_wready_i) {
            value = core.data_wdata_o, mask = core.data_wstrb_o;
            has_data = true;
        }
        if (has_address && has_data) return store_all();
        if (core.data_arvalid_o && core.data_arready_i) return read();
        return EVENT_LIMIT;
    }

    // The host has answered.
    Event resume() {
        if (!outside) return EVENT_LIMIT;
        outside = false;
        if (asked == EVENT_STORE) {
            store.accept(state.stall);
        } else {
            load.data = state.value << (8 * (state.address & 3));
            load.accept(state.stall);
        }
        return EVENT_LIMIT;
    }

private:
    void take_address(uint32_t address) {
        word = address & ~3u;
        pc = core.data_pc_o;
        has_address = true;
    }

    Event store_all() {
        has_address = has_data = false;
        const Region *region = memory.find(word);
        if (!region || !region->writable) return leave(EVENT_STORE, first_byte(mask), __builtin_popcount(mask));
        store_bytes(region->at(word), value, mask);
        store.accept(memory.data_wait(word, *region, true));
        return EVENT_LIMIT;
    }

    // A load is of a whole word, of which the core takes a part, unless the wrapper says of which bytes.
    Event read() {
        word = core.data_araddr_o & ~3u;
        pc = core.data_pc_o;
        const Region *region = memory.find(word);
        uint32_t bytes = core.data_rstrb_o;
        if (!region) return leave(EVENT_LOAD, first_byte(bytes), __builtin_popcount(bytes));
        memcpy(&load.data, region->at(word), 4);
        load.accept(memory.data_wait(word, *region, false));
        return EVENT_LIMIT;
    }

    Event leave(Event event, uint32_t first, uint32_t size) {
        outside = true;
        asked = event;
        state.address = word + first;
        state.size = size;
        state.value = value >> (8 * first);
        state.stall = 0;
        state.pc = pc;
        return event;
    }

    Vcovp_core &core;
    Memory &memory;
    State &state;
    AxiAnswer fetch, load, store;
    bool has_address = false, has_data = false, outside = false;
    uint32_t word = 0, value = 0, mask = 0, pc = 0;
    Event asked = EVENT_LIMIT;  // of the host
};
