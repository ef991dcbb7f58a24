// What a reset does not set begins with any value, as in silicon.
#pragma once
#include "verilated.h"

struct Context : VerilatedContext {
    Context() {
        randReset(2), randSeed(1);
        traceEverOn(COVP_WAVE);
    }
};
