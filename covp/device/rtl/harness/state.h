// What Python sees of a run: the same structure as `State` in covp/device/rtl/model.py.
#pragma once
#include <cstdint>

enum Event : uint32_t {
    EVENT_LIMIT,   // `cycle` has reached `limit`, or the budget of cycles is spent
    EVENT_STOP,    // the instruction at `stop` comes next
    EVENT_LOAD,    // of `size` bytes at `address`: answer with `value` after `stall` more cycles
    EVENT_STORE,   // of `value`; it is acknowledged after `stall` more cycles
    EVENT_TRAP,    // a synchronous exception `cause` at `pc`
    EVENT_SLEEP,   // the core waits for an interrupt
};

struct State {
    uint64_t cycle;         // of the board's time: those between `entry` and `stop` only
    uint64_t limit;
    uint64_t instructions;  // retired between `entry` and `stop`
    uint64_t phase_start;   // the cycle and the instructions at which `phase` began
    uint64_t phase_first;
    uint32_t phase;
    uint32_t entry, stop, boot;
    uint32_t address, size, value, stall;
    uint32_t pc;            // of the access or trap, else of what retired last
    uint32_t cause, sp, ra;
    uint32_t irq;
};
