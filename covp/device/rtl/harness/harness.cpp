// Runs a core's RTL: clock, reset, memory, phases. Python sees the functions at the end.
#include <memory>

#include "Vcovp_core.h"
#include "cfu.h"
#include "memory.h"
#include "phases.h"
#include "state.h"
#include "verilated.h"
#include "wave.h"
#include COVP_BUS

namespace {

constexpr int RESET_CYCLES = 4;
constexpr uint32_t ILLEGAL_INSTRUCTION = 2;  // of mcause
constexpr int QUIET_CYCLES = 8;

class Harness {
public:
    Harness() : core(&context), cfu(core), ports(core, memory, state) {}
    ~Harness() {
        // scopes leave the thread's context: that may be of another harness, which is gone
        Verilated::threadContextp(&context);
        wave.close();
        core.final();
    }

    // Start from reset at the boot code, which jumps to `entry`.
    void begin() {
        memory.set_stop(state.stop);
        ports.reset();
        cfu.reset();
        started = paused = false;
        quiet = 0;
        core.boot_i = state.boot;
        core.irq_i = 0;
        // reset needs an edge, also the first time
        core.clk_i = 0, core.rst_ni = 1, core.eval();
        core.rst_ni = 0, core.eval();
        for (int i = 0; i < RESET_CYCLES; i++) {
            ports.drive();
            settle();
            edge();
        }
        core.rst_ni = 1;
    }

    // Run until an event, for at most `budget` cycles.
    Event run(uint64_t budget) {
        if (paused) {
            event = ports.resume();
            paused = event != EVENT_LIMIT;
            if (paused || finish()) return event;
        }
        while (budget-- && !(started && state.cycle >= state.limit)) {
            core.irq_i = started && state.irq;
            ports.drive();
            cfu.drive();
            settle();
            if (!cfu.sample()) return unknown();
            event = ports.sample();
            paused = event != EVENT_LIMIT;
            if (paused || finish()) return event;
        }
        return EVENT_LIMIT;
    }

    bool open_wave(const char *path, uint64_t first, uint64_t end, uint32_t phase) {
        return wave.open(core, path, first, end, phase);
    }

    // Registers for the text of a fault.
    void look() { state.sp = core.sp_o, state.ra = core.ra_o; }

    VerilatedContext context;
    Vcovp_core core;
    State state{};
    Memory memory;
    CfuPort cfu;
    Phases phases{state};
    Wave wave{context, state, phases};

private:
    void settle() {
        core.clk_i = 0;
        core.eval();
        cfu.settle(!core.rst_ni);
    }

    void edge() {
        core.clk_i = 1;
        core.eval();
        cfu.edge();
    }

    // The end of a cycle, after the older instructions' accesses; whether there is an event.
    bool finish() {
        if (quiet) return drain();
        if (core.trap_o) return trap();
        if (core.retire_o && retire(core.retire_pc_o)) return drain();
        bool sleeps = core.sleep_o;
        if (started) wave.low();
        edge();
        if (started) wave.high();
        state.cycle += started;
        return sleeps && end(EVENT_SLEEP);
    }

    // The program is over, at a loop: let its last stores leave the core.
    bool drain() {
        if (started) {
            started = false;
            phases.settle();
        }
        quiet = ports.accesses() ? 1 : quiet + 1;
        if (quiet > QUIET_CYCLES) return end(EVENT_STOP);
        edge();
        return false;
    }

    bool end(Event what) {
        phases.settle();
        event = what;
        return true;
    }

    bool trap() {
        state.pc = core.trap_pc_o;
        state.cause = core.trap_cause_o;
        return end(EVENT_TRAP);
    }

    // A custom instruction that there is not.
    Event unknown() {
        state.pc = core.data_pc_o;
        state.cause = ILLEGAL_INSTRUCTION;
        end(EVENT_TRAP);
        return event;
    }

    // Whether the instruction that retires is the one to stop at.
    bool retire(uint32_t pc) {
        if (!started) {
            if (pc != state.entry) return false;
            started = true;
            phases.begin();
        }
        state.pc = pc;
        if (pc == state.stop) return true;
        phases.retire(pc);
        state.instructions++;
        return false;
    }

    Ports ports;
    Event event = EVENT_LIMIT;
    bool started = false, paused = false;
    int quiet = 0;  // 0 until the stop, then cycles without an access and 1
};

}  // namespace

extern "C" {
void *covp_rtl_new() { return new Harness(); }
void covp_rtl_delete(void *harness) { delete static_cast<Harness *>(harness); }
State *covp_rtl_state(void *harness) { return &static_cast<Harness *>(harness)->state; }
void covp_rtl_add_region(void *harness, const Region *region) {
    static_cast<Harness *>(harness)->memory.add(*region);
}
void covp_rtl_add_cache(void *harness, Cache *cache) {
    static_cast<Harness *>(harness)->memory.caches.add(cache);
}
void covp_rtl_set_boot(void *harness, uint32_t address, const uint32_t *words, uint32_t count) {
    static_cast<Harness *>(harness)->memory.set_boot(address, words, count);
}
void covp_rtl_set_phases(void *harness, const uint32_t *addresses, const uint32_t *phases,
                         uint32_t count, uint32_t kinds) {
    static_cast<Harness *>(harness)->phases.set(addresses, phases, count, kinds);
}
const Count *covp_rtl_phases(void *harness) { return static_cast<Harness *>(harness)->phases.data(); }
void covp_rtl_begin(void *harness) { static_cast<Harness *>(harness)->begin(); }
uint32_t covp_rtl_run(void *harness, uint64_t budget) {
    return static_cast<Harness *>(harness)->run(budget);
}
void covp_rtl_set_instruction(void *harness, uint32_t id, Function function, CfuState *state,
                              uint32_t cycles) {
    static_cast<Harness *>(harness)->cfu.set(id, function, state, cycles);
}
void covp_rtl_set_unit(void *harness, void *unit, void (*settle)(void *, CfuCycle *), void (*edge)(void *)) {
    static_cast<Harness *>(harness)->cfu.connect({unit, settle, edge});
}
uint64_t covp_rtl_uses(void *harness, uint32_t id) {
    return static_cast<Harness *>(harness)->cfu.uses(id);
}
uint32_t covp_rtl_open_wave(void *harness, const char *path, uint64_t first, uint64_t end,
                            uint32_t phase) {
    return static_cast<Harness *>(harness)->open_wave(path, first, end, phase);
}
uint32_t covp_rtl_close_wave(void *harness, uint64_t *seen, uint64_t *written) {
    Wave &wave = static_cast<Harness *>(harness)->wave;
    *seen = wave.seen, *written = wave.written;
    return wave.close();
}
void covp_rtl_look(void *harness) { static_cast<Harness *>(harness)->look(); }
}
