// What a reset does not set begins with any value, as in silicon, or with zeros.
#pragma once
#include "verilated.h"

struct Context : VerilatedContext {
    Context() {
        randReset(COVP_INITIAL), randSeed(1);
        traceEverOn(COVP_WAVE);
    }
};
