/* `time_block` for Python. Compiled for the host by covp/timing/native.py. */
#include "pipeline.h"

#ifdef _WIN32
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif

/* So that the mirrors in native.py cannot drift. */
EXPORT uint64_t timing_bytes(void) { return sizeof(Timing) + sizeof(Rule) + sizeof(BlockTime); }

EXPORT int32_t timing_operands(const OperandCycles *o, int first, int second) {
    return operand_cycles(o, first, second);
}

EXPORT void timing_block(const Timing *t, const Code *block, const Code *before, int backward,
                         BlockTime *out) {
    time_block(t, block, before, backward, out);
}

/* A block, and the code that it follows; none: `before.count` is 0. */
typedef struct {
    Code block, before;
    uint64_t backward;
} Placed;

EXPORT void timing_blocks(const Timing *t, const Placed *blocks, uint64_t count, BlockTime *out) {
    for (uint64_t n = 0; n < count; n++) {
        const Placed *p = &blocks[n];
        time_block(t, &p->block, p->before.count ? &p->before : NULL, (int)p->backward, &out[n]);
    }
}
