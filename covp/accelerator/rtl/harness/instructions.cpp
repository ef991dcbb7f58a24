// A unit of custom instructions: its RTL behind the port of CFU-Playground, as functions that a core calls, or
// clocked beside a simulated core.
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>

#include "Vcovp_unit.h"
#include "absent.h"
#include "context.h"
#include "instruction_state.h"
#include "saving.h"
#include "unit_ports.h"

constexpr uint32_t NUMBERS = 1024;           // of instructions: funct7 and funct3
constexpr uint64_t LONGEST_ANSWER = 100'000;  // cycles

namespace {

class Unit {
public:
    ~Unit() {
        Verilated::threadContextp(&context);
        top.final();
    }

    void reset() {
        constexpr int CYCLES = 4;
        answered = false;
        error[0] = 0;
        offer(false);
        takes = true;
        UNIT_SET_TIES();
        UNIT_SET_CLOCK(0);
        // reset needs an edge, also the first time
        for (int on : {0, 1}) {
            UNIT_SET_RESET(on);
            top.eval();
        }
        for (int i = 0; i < CYCLES; i++) tick();
        UNIT_SET_RESET(0);
        tick();
        is_new = true;
    }

    // An instruction, from the cycle in which the core offers it to the one of its answer. One that is answered
    // in a later cycle may have the next one in that. Where the core is at times busy it takes answers later.
    uint32_t execute(uint32_t number, uint32_t a, uint32_t b, CfuState &state) {
        if (error[0]) return 0;
        if (std::exchange(is_new, false)) now = state.now;
        if (now < state.now) {
            pass();
            while (now < state.now) tick();
        }
        uint64_t start = now;
        offer(true);
        put(number, a, b);
        bool taken = false;
        for (;; edge()) {
            bool earlier = answered;
            takes = !earlier || !is_busy();
            settle();
            if (earlier && !still_answers(number)) return 0;
            bool accepted = !taken && c_cmd_ready;
            if (accepted) taken = true, withdraw = true;
            if (takes) answered = false;
            if (taken && c_rsp_valid && !earlier) break;
            if (now - start > LONGEST_ANSWER) return fail(number, taken);
        }
        answer = c_rsp_payload_outputs_0;
        uint64_t took = now - start;
        if (withdraw)
            edge();  // accepted and answered at once
        else
            answered = true;  // this cycle is still to end
        state.late = stalls ? 0 : int64_t(took ? took : 1) - cycles[number];
        return answer;
    }

    // The cycle of a core up to its end, as far as it is known.
    void settle(CfuCycle &cycle) {
        UNIT_SET_RESET(cycle.reset);
        c_cmd_valid = cycle.valid;
        if (cycle.valid) put(cycle.number, cycle.a, cycle.b);
        takes = cycle.takes;
        settle();
        cycle.ready = c_cmd_ready, cycle.answers = c_rsp_valid, cycle.answer = c_rsp_payload_outputs_0;
    }

    void settle() {
        c_rsp_ready = takes;
        UNIT_SET_CLOCK(0);
        top.eval();
    }

    void edge() {
        UNIT_SET_CLOCK(1);
        top.eval();
        now++;
        if (std::exchange(withdraw, false)) offer(false);
    }

    void save() {
        save_model(top, saved);
        saved.append(reinterpret_cast<const char *>(&place), sizeof place);
    }

    void load(const char *data, size_t size) {
        size -= sizeof place;
        load_model(top, data, size);
        memcpy(&place, data + size, sizeof place);
    }

    void blame(const char *what, const char *file, int line) {
        snprintf(error, sizeof error, "%s in %s:%d", what, file, line);
    }

    uint32_t cycles[NUMBERS] = {};  // that instructions state
    uint32_t stalls = 0;            // 0: the core always takes an answer; else by chance, from this seed on
    std::string saved;
    char error[200] = "";

private:
    void offer(bool valid) { c_cmd_valid = valid; }

    void put(uint32_t number, uint32_t a, uint32_t b) {
        c_cmd_payload_function_id = number, c_cmd_payload_inputs_0 = a, c_cmd_payload_inputs_1 = b;
    }

    void tick() {
        settle();
        edge();
    }

    // End the cycle of the latest answer.
    void pass() {
        takes = true;
        if (std::exchange(answered, false)) tick();
    }

    // Whether the core cannot take an answer in this cycle.
    bool is_busy() {
        if (!stalls) return false;
        stalls ^= stalls << 13, stalls ^= stalls >> 17, stalls ^= stalls << 5;  // xorshift32 (Marsaglia 2003)
        return stalls & 8;
    }

    // Whether an answer that was not taken is still there.
    bool still_answers(uint32_t number) {
        bool stays = c_rsp_valid && c_rsp_payload_outputs_0 == answer;
        if (!stays)
            snprintf(error, sizeof error,
                     "before the instruction of funct3 %u, funct7 %u: rsp_valid or its answer changes before rsp_ready",
                     number & 7, number >> 3);
        return stays;
    }

    uint32_t fail(uint32_t number, bool taken) {
        snprintf(error, sizeof error, "no %s to the instruction of funct3 %u, funct7 %u in %llu cycles",
                 taken ? "rsp_valid" : "cmd_ready", number & 7, number >> 3, (unsigned long long)LONGEST_ANSWER);
        return 0;
    }

    // What is saved with the design.
    struct Place {
        uint64_t now;     // cycles of its clock
        uint32_t answer;  // the latest
        bool answered;    // this cycle has it
        bool withdraw;    // the command was accepted in this cycle
        bool takes;       // the core takes an answer
        bool is_new;      // nothing since reset
    };

    Context context;
    Vcovp_unit top{&context};
    Place place{};
    uint64_t &now = place.now;
    uint32_t &answer = place.answer;
    bool &answered = place.answered, &withdraw = place.withdraw, &takes = place.takes, &is_new = place.is_new;
};

}  // namespace

#include "guard.h"

namespace {

template <uint32_t NUMBER>
uint32_t execute(uint32_t a, uint32_t b, CfuState *state) {
    return guarded(state->unit, [=](Unit &unit) { return unit.execute(NUMBER, a, b, *state); });
}

using Function = uint32_t (*)(uint32_t, uint32_t, CfuState *);

template <uint32_t... NUMBER>
Function function_of(uint32_t number, std::integer_sequence<uint32_t, NUMBER...>) {
    static constexpr Function FUNCTIONS[] = {execute<NUMBER>...};
    return FUNCTIONS[number];
}

}  // namespace

extern "C" {
void *covp_unit_new() { return new Unit(); }
void covp_unit_delete(void *unit) { delete &of(unit); }
Function covp_unit_function(uint32_t number) {
    return function_of(number, std::make_integer_sequence<uint32_t, NUMBERS>());
}
void covp_unit_set_cycles(void *unit, uint32_t number, uint32_t cycles) { of(unit).cycles[number] = cycles; }
void covp_unit_set_stalls(void *unit, uint32_t seed) { of(unit).stalls = seed; }
uint32_t covp_unit_reset(void *unit) {
    return guarded(unit, [](Unit &one) { return one.reset(), 1u; });
}
void covp_unit_settle(void *unit, CfuCycle *cycle) {
    guarded(unit, [=](Unit &one) { return one.settle(*cycle), 1u; });
}
void covp_unit_edge(void *unit) {
    guarded(unit, [](Unit &one) { return one.edge(), 1u; });
}
const char *covp_unit_error(void *unit) { return of(unit).error; }
const char *covp_unit_save(void *unit, uint64_t *size) {
    of(unit).save();
    *size = of(unit).saved.size();
    return of(unit).saved.data();
}
void covp_unit_load(void *unit, const char *data, uint64_t size) { of(unit).load(data, size); }
}
