// The port for custom instructions: their functions answer a command after the cycles of each.
#pragma once
#include <cstdint>
#include <unordered_map>

#include "Vcovp_core.h"

using Function = uint32_t (*)(uint32_t a, uint32_t b, void *state);

struct Instruction {
    Function function;
    void *state;
    uint32_t cycles;
    uint64_t uses;
};

class CfuPort {
public:
    explicit CfuPort(Vcovp_core &core) : core(core) {}

    void reset() { left = 0; }

    void set(uint32_t id, Function function, void *state, uint32_t cycles) {
        if (function)
            instructions[id] = Instruction{function, state, cycles, 0};
        else
            instructions.erase(id);
    }

    uint64_t uses(uint32_t id) const { return instructions.at(id).uses; }

    // Inputs of the cycle that begins.
    void drive() {
#if COVP_CFU
        core.cfu_answers_i = left && !--left;
        core.cfu_ready_i = !left;
        core.cfu_answer_i = answer;
#endif
    }

    // A command of the cycle; false: no instruction has its number.
    bool sample() {
#if COVP_CFU
        if (!core.cfu_valid_o || !core.cfu_ready_i) return true;
        auto found = instructions.find(core.cfu_id_o);
        if (found == instructions.end()) return false;
        Instruction &instruction = found->second;
        instruction.uses++;
        answer = instruction.function(core.cfu_a_o, core.cfu_b_o, instruction.state);
        left = instruction.cycles;
#endif
        return true;
    }

private:
    Vcovp_core &core;
    std::unordered_map<uint32_t, Instruction> instructions;
    uint64_t left = 0;  // cycles until the answer
    uint32_t answer = 0;
};
