// The port for custom instructions: functions answer a command after the cycles of each, or a unit in simulation does.
#pragma once
#include <cstdint>
#include <unordered_map>

#include "Vcovp_core.h"
#include "instruction_state.h"

using Function = uint32_t (*)(uint32_t a, uint32_t b, CfuState *state);

struct Instruction {
    Function function;
    CfuState *state;
    uint32_t cycles;
    uint64_t uses;
};

// A unit in simulation.
struct CfuUnit {
    void *unit;
    void (*settle)(void *unit, CfuCycle *cycle);
    void (*edge)(void *unit);
};

class CfuPort {
public:
    explicit CfuPort(Vcovp_core &core) : core(core) {}

    void reset() { left = 0; }

    void set(uint32_t id, Function function, CfuState *state, uint32_t cycles) {
        if (function)
            instructions[id] = Instruction{function, state, cycles, 0};
        else
            instructions.erase(id);
    }

    void connect(const CfuUnit &other) { unit = other; }

    uint64_t uses(uint32_t id) const { return instructions.at(id).uses; }

    // Inputs of the cycle that begins.
    void drive() {
#if COVP_CFU
        if (unit.unit) return;
        core.cfu_answers_i = left && !--left;
        core.cfu_ready_i = !left;
        core.cfu_answer_i = answer;
#endif
    }

    // The core has settled: let a unit in simulation do so, and both once more until neither changes.
    void settle(bool reset) {
#if COVP_CFU
        constexpr int MOST = 8;
        for (int i = 0; unit.unit && i < MOST; i++) {
            CfuCycle cycle{reset, core.cfu_valid_o, core.cfu_id_o, core.cfu_a_o, core.cfu_b_o, core.cfu_takes_o,
                           0, 0, 0};
            unit.settle(unit.unit, &cycle);
            if (core.cfu_ready_i == cycle.ready && core.cfu_answers_i == cycle.answers &&
                (!cycle.answers || core.cfu_answer_i == cycle.answer))
                return;
            core.cfu_ready_i = cycle.ready, core.cfu_answers_i = cycle.answers, core.cfu_answer_i = cycle.answer;
            core.eval();
        }
#endif
    }

    void edge() {
        if (unit.unit) unit.edge(unit.unit);
    }

    // A command of the cycle; false: no instruction has its number.
    bool sample() {
#if COVP_CFU
        if (!core.cfu_valid_o || !core.cfu_ready_i) return true;
        auto found = instructions.find(core.cfu_id_o);
        if (found == instructions.end()) return false;
        Instruction &instruction = found->second;
        instruction.uses++;
        if (unit.unit) return true;
        answer = instruction.function(core.cfu_a_o, core.cfu_b_o, instruction.state);
        left = instruction.cycles + instruction.state->late;
        instruction.state->late = 0;
#endif
        return true;
    }

private:
    Vcovp_core &core;
    std::unordered_map<uint32_t, Instruction> instructions;
    CfuUnit unit{};
    uint64_t left = 0;  // cycles until the answer
    uint32_t answer = 0;
};
