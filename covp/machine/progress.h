/* Snapshots of the counts: totals, phases and the branch that the last block ended with. */
#ifndef COVP_PROGRESS_H
#define COVP_PROGRESS_H

#include "counter_state.h"

/* All that a snapshot holds of the counts but the buckets. The counts of single blocks go on. */
typedef struct {
    Count total, switched;
    uint64_t branch_cycles;
    uint32_t fall_through, bucket;
} Progress;

EXPORT void machine_save(const Machine *m, Progress *to, Count *buckets) {
    *to = (Progress){{m->instructions, m->cycles}, m->switched, m->branch_cycles[0],
                     m->fall_through, m->bucket};
    memcpy(buckets, m->buckets, m->bucket_count * sizeof *buckets);
}

/* The markers must be those of the snapshot. */
EXPORT void machine_load(Machine *m, const Progress *from, const Count *buckets) {
    end_last(m);
    m->instructions = from->total.instructions;
    m->cycles = from->total.cycles;
    m->switched = from->switched;
    m->branch_cycles[0] = from->branch_cycles;
    m->fall_through = from->fall_through;
    m->bucket = from->bucket;
    memcpy(m->buckets, buckets, m->bucket_count * sizeof *buckets);
}

#endif
