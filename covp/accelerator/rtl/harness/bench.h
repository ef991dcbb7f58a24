// A unit's RTL with clock, reset and memory.
#pragma once
#include <deque>
#include <tuple>

#include "Vcovp_unit.h"
#include "context.h"
#include "memory.h"
#include "ports.h"
#include "stable.h"
#include "verilated.h"
#include "wave.h"

struct Design {
    Context context;
    Vcovp_unit top{&context};
    Memory memory;
    uint64_t now = 0;      // cycles of its clock
    uint64_t taken = 0;    // when the latest access to a register was taken
    uint32_t latency = 1;  // cycles from a request of its port to the first data
    uint32_t stalls = 0;   // 0: the memory is never busy; else it is by chance, from this seed on

    // Cycles that the memory keeps something waiting, beyond the least.
    uint32_t pause() {
        if (!stalls) return 0;
        stalls ^= stalls << 13, stalls ^= stalls >> 17, stalls ^= stalls << 5;  // xorshift32 (Marsaglia 2003)
        return stalls & 8 ? stalls & 3 : 0;
    }
};

// The memory ports of a unit, as one.
template <typename... Each>
class PortsOf {
public:
    explicit PortsOf(Design &design) : ports(of<Each>(design)...) {}

    void reset() { std::apply([](auto &...port) { (port.reset(), ...); }, ports); }
    void drive() { std::apply([](auto &...port) { (port.drive(), ...); }, ports); }
    void sample() { std::apply([](auto &...port) { (port.sample(), ...); }, ports); }
    bool is_idle() { return std::apply([](auto &...port) { return (port.is_idle() && ...); }, ports); }

private:
    template <typename>
    static Design &of(Design &design) { return design; }

    std::tuple<Each...> ports;
};

// A namespace with `Port` (reset, drive, sample, is_idle) for each, from memory-BUS.h, and their `Ports`.
#include "memory_ports.h"

class Bench : public Design {
public:
    ~Bench() {
        Verilated::threadContextp(&context);
        wave.close();
        top.final();
    }

    void reset() {
        constexpr int CYCLES = 4;
        ports.reset();
        UNIT_SET_TIES();
        UNIT_SET_CLOCK(0);
        // reset needs an edge, also the first time
        for (int on : {0, 1}) {
            UNIT_SET_RESET(on);
            top.eval();
        }
        // its requests before that are none
        for (int i = 0; i < CYCLES; i++, now++)
            for (int level : {0, 1}) {
                UNIT_SET_CLOCK(level);
                top.eval();
            }
        UNIT_SET_RESET(0);
        tick();
    }

    // A cycle up to its end: inputs are driven, outputs are settled.
    void settle() {
        ports.drive();
        UNIT_SET_CLOCK(0);
        top.eval();
    }

    // The clock's edge.
    void edge() {
        ports.sample();
        wave.low(now);
        UNIT_SET_CLOCK(1);
        top.eval();
        wave.high(now);
        now++;
    }

    void tick() {
        settle();
        edge();
    }

    bool interrupts() { return UNIT_INTERRUPT; }
    bool is_idle() { return ports.is_idle(); }
    void forget_transfers() { ports.reset(); }

    Wave wave;

    // Let what the port still does after a job end; false: it does not, or it stores.
    bool drain() {
        constexpr int CYCLES = 64, MOST = 10'000;
        size_t before = memory.stores;
        for (int i = 0; i < CYCLES || (!ports.is_idle() && i < MOST); i++) tick();
        return ports.is_idle() && memory.stores == before;
    }

protected:
    Ports ports{*this};
};
