/* `time_block` for Python. Compiled for the host by covp/device/timing/native.py. */
#include "pipeline.h"

#ifdef _WIN32
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif

EXPORT int32_t timing_operands(const OperandCycles *o, int first, int second) {
    return operand_cycles(o, first, second);
}

/* A block, and the code that it follows. */
typedef struct {
    Code block;
    History before[BEFORE];
    uint64_t ends;
} Placed;

/* Blocks, the first of them as it is placed and entered. */
typedef struct {
    const Code *blocks;
    const Placed *first;
    uint64_t count, entry, ends, jumps;
} PlacedPath;

EXPORT int32_t timing_path(const Timing *t, const PlacedPath *p) {
    Path path = {p->blocks, (uint32_t)p->count, p->ends, p->jumps};
    return time_path(t, &path, p->entry == JUMPED ? NULL : &p->first->before[p->entry - FALLEN]);
}

EXPORT void timing_blocks(const Timing *t, const Placed *blocks, uint64_t count, BlockTime *out) {
    for (uint64_t n = 0; n < count; n++)
        time_block(t, &blocks[n].block, blocks[n].before, blocks[n].ends, &out[n]);
}

/* 1 + the kind of operands that decide the time of each instruction, or 0. */
EXPORT void timing_traits(const Timing *t, const Instruction *code, uint64_t count, uint8_t *operands) {
    for (uint64_t n = 0; n < count; n++)
        operands[n] = code[n].is_custom ? 0 : (uint8_t)find_rule(t, code[n])->operands;
}

/* So that the mirrors in native.py cannot drift. */
EXPORT uint64_t timing_bytes(void) {
    return sizeof(Timing) + sizeof(Rule) + sizeof(BlockTime) + sizeof(Placed) + sizeof(PlacedPath);
}
