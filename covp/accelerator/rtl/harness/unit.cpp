// A unit's RTL as Python calls it: registers, jobs, memory, state.
#include <algorithm>
#include <string>

#include "unit_ports.h"
#include "bench.h"
#include "saving.h"

constexpr int LONGEST_ACCESS = 100'000;  // cycles of an access to a register
constexpr int AWAKE = 64;  // cycles after it in which a unit may get busy

#include REGISTERS_HEADER  // `Registers`: idle, access

namespace {

class Unit : public Bench {
public:
    void reset() {
        registers.idle();
        Bench::reset();
    }

    // An access to a register: whether the unit answers, and not with an error.
    bool access(bool writes, uint32_t offset, uint32_t &value) {
        return registers.access(writes, offset, value);
    }

    // Run until the interrupt is up: the cycles since the latest access to a register was taken, at most `budget`.
    uint64_t run(uint64_t budget) {
        while (now - taken < budget && !interrupts()) tick();
        return now - taken;
    }

    // Run up to a cycle, if it has not come yet; the clock is halted while a unit says that it is not busy.
    void advance(uint64_t cycle) {
        while (now < cycle) {
            if (rests()) {
                now = cycle;
                return;
            }
            tick();
        }
    }

    // Do something of which nothing remains.
    template <typename Action>
    auto aside(Action action) {
        Design &design = *this;
        uint64_t now = design.now, taken = design.taken;
        uint32_t stalls = design.stalls;
        Memory memory = design.memory;
        Ports transfers = ports;
        wave.pauses = true;
        save();
        auto result = action();
        load(saved.data(), saved.size());
        ports.~Ports();
        new (&ports) Ports(transfers);  // references cannot be assigned to
        wave.pauses = false;
        design.memory = std::move(memory);
        design.now = now, design.taken = taken, design.stalls = stalls;
        return result;
    }

    // The cycles that a job takes from the write of `value` to a register on, as `run`; it does not begin.
    uint64_t predict(uint32_t interrupt, uint32_t start, uint32_t value, uint64_t budget) {
        uint32_t enable_and_clear = 3;
        return aside([&] {
            access(true, interrupt, enable_and_clear);
            access(true, start, value);
            return run(budget);
        });
    }

    // The cycles until the interrupt changes, at most `budget`; 0: it does not before the next access.
    uint64_t foresee(uint64_t budget) {
        return aside([&] {
            bool level = interrupts();
            uint64_t start = now;
            while (interrupts() == level && now - start < budget) {
                if (rests()) return uint64_t(0);
                tick();
            }
            return now - start;
        });
    }

    void save() { save_model(top, saved); }

    void load(const char *data, size_t size) {
        load_model(top, data, size);
        registers.idle();
    }

    // The bytes that were stored since the latest call, in spans by their addresses.
    void collect() {
        std::vector<uint32_t> &places = memory.fresh;
        std::sort(places.begin(), places.end());
        places.erase(std::unique(places.begin(), places.end()), places.end());
        spans.clear(), values.clear();
        for (uint32_t address : places) {
            if (!spans.empty() && spans.back().start + spans.back().size == address)
                spans.back().size++;
            else
                spans.push_back({address, 1});
            values.push_back(memory.stored[address]);
        }
        places.clear();
    }

    void blame(const char *what, const char *file, int line) { memory.fail("%s in %s:%d", what, file, line); }

    std::vector<Span> spans;
    std::vector<uint8_t> values;
    std::string saved;

private:
    bool rests() { return UNIT_HAS_BUSY && !UNIT_BUSY && is_idle() && now - taken >= AWAKE; }

    Registers registers{*this};
};

}  // namespace

#include "guard.h"

extern "C" {
void *covp_unit_new(uint32_t latency) {
    Unit *unit = new Unit();
    unit->latency = latency;
    return unit;
}
void covp_unit_delete(void *unit) { delete &of(unit); }
uint32_t covp_unit_reset(void *unit) {
    return guarded(unit, [](Unit &one) { return one.reset(), 1u; });
}
uint32_t covp_unit_open_wave(void *unit, const char *path, uint64_t cycles) {
    return of(unit).wave.open(of(unit).top, path, cycles);
}
void covp_unit_close_wave(void *unit) { of(unit).wave.close(); }
void covp_unit_set_regions(void *unit, const Region *regions, uint32_t count) {
    of(unit).memory.regions.assign(regions, regions + count);
}
const Region *covp_unit_regions(void *unit) { return of(unit).memory.regions.data(); }
void covp_unit_begin(void *unit, uint32_t stalls) {
    of(unit).memory.begin();
    of(unit).stalls = stalls;
}
uint32_t covp_unit_access(void *unit, uint32_t writes, uint32_t offset, uint32_t *value) {
    return guarded(unit, [&](Unit &one) { return one.access(writes, offset, *value); });
}
uint64_t covp_unit_run(void *unit, uint64_t budget) {
    return guarded(unit, [&](Unit &one) { return one.run(budget); });
}
uint32_t covp_unit_interrupts(void *unit) { return of(unit).interrupts(); }
uint32_t covp_unit_drain(void *unit) {
    return guarded(unit, [](Unit &one) { return one.drain(); });
}
const char *covp_unit_error(void *unit) { return of(unit).memory.error; }
uint32_t covp_unit_outside(void *unit, uint32_t *address, uint32_t *size) {
    Memory &memory = of(unit).memory;
    *address = memory.outside_address, *size = memory.outside_size;
    return memory.outside ? 1 + memory.outside_store : 0;
}
const Span *covp_unit_stores(void *unit, uint64_t *count, const uint8_t **bytes) {
    of(unit).collect();
    *count = of(unit).spans.size(), *bytes = of(unit).values.data();
    return of(unit).spans.data();
}
const Span *covp_unit_loads(void *unit, uint64_t *count) {
    *count = of(unit).memory.loads.size();
    return of(unit).memory.loads.data();
}
const char *covp_unit_save(void *unit, uint64_t *size) {
    of(unit).save();
    *size = of(unit).saved.size();
    return of(unit).saved.data();
}
void covp_unit_load(void *unit, const char *data, uint64_t size) {
    of(unit).load(data, size);
    of(unit).forget_transfers();
}
uint64_t covp_unit_now(void *unit) { return of(unit).now; }
uint64_t covp_unit_taken(void *unit) { return of(unit).taken; }
uint32_t covp_unit_peek(void *unit, uint32_t offset, uint32_t *value) {
    return guarded(unit, [&](Unit &one) { return one.aside([&] { return one.access(false, offset, *value); }); });
}
// Whether there is anything to ask for: stores, or an error.
uint32_t covp_unit_advance(void *unit, uint64_t cycle) {
    guarded(unit, [&](Unit &one) { return one.advance(cycle), 1u; });
    Memory &memory = of(unit).memory;
    return !memory.fresh.empty() || memory.error[0];
}
uint64_t covp_unit_foresee(void *unit, uint64_t budget) {
    return guarded(unit, [&](Unit &one) { return one.foresee(budget); });
}
uint32_t covp_unit_has_errors(void *) { return UNIT_HAS_ERRORS; }
uint32_t covp_unit_is_idle(void *unit) { return of(unit).is_idle(); }
uint64_t covp_unit_predict(void *unit, uint32_t interrupt, uint32_t start, uint32_t value, uint64_t budget) {
    return guarded(unit, [&](Unit &one) { return one.predict(interrupt, start, value, budget); });
}
}
