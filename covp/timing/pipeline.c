/* `time_block` for Python. Compiled for the host by covp/timing/native.py. */
#include "pipeline.h"

#ifdef _WIN32
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif

/* So that the mirrors in native.py cannot drift. */
EXPORT uint64_t timing_bytes(void) {
    return sizeof(Timing) + sizeof(Rule) + sizeof(BlockTime) + sizeof(History);
}

EXPORT int32_t timing_operands(const OperandCycles *o, int first, int second) {
    return operand_cycles(o, first, second);
}

/* A block, and the code that it follows. */
typedef struct {
    Code block;
    History before[BEFORE];
    uint64_t ends;
} Placed;

/* See time_more. */
EXPORT int32_t timing_more(const Timing *t, const Placed *p, uint32_t entry, uint32_t address,
                           uint64_t misaligned, int32_t cycles) {
    const History *before = entry == JUMPED ? NULL : &p->before[entry - FALLEN];
    return time_more(t, &p->block, before, (uint32_t)p->ends,
                     (Variation){misaligned, address, cycles});
}

EXPORT void timing_blocks(const Timing *t, const Placed *blocks, uint64_t count, BlockTime *out) {
    for (uint64_t n = 0; n < count; n++)
        time_block(t, &blocks[n].block, blocks[n].before, (uint32_t)blocks[n].ends, &out[n]);
}

/* What the model has rules for: loads and stores; 1 + the kind of operands that decide the time, or 0. */
EXPORT void timing_traits(const Timing *t, const Instruction *code, uint64_t count, uint8_t *accesses,
                          uint8_t *operands) {
    for (uint64_t n = 0; n < count; n++) {
        const Rule *r = find_rule(t, code[n]);
        accesses[n] = access_base(t, r, code[n]) >= 0;
        operands[n] = code[n].is_custom ? 0 : (uint8_t)r->operands;
    }
}
