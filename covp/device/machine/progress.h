/* Snapshots of the counts: totals, phases and the branch that the last block ended with. */
#ifndef COVP_PROGRESS_H
#define COVP_PROGRESS_H

#include "buckets.h"

/* All that a snapshot holds of the counts but the buckets. The counts of single blocks go on. */
typedef struct {
    Count total, switched;
    uint64_t branch_cycles[2];
    uint32_t fall_through, bucket;
} Progress;

EXPORT void machine_save(Machine *m, Progress *to, Count *buckets, Spending *spending) {
    *to = (Progress){.total = {m->instructions, m->cycles},
                     .switched = m->switched,
                     .fall_through = m->fall_through,
                     .bucket = m->bucket};
    for (uint32_t n = 0; n < 2; n++) to->branch_cycles[n] = m->latest->branch[n];
    memcpy(buckets, m->buckets, m->bucket_count * sizeof *buckets);
    if (m->bucket_count && m->explains) machine_spending(m, spending);
}

/* Without buckets others are counted than when it was saved: theirs go on. */
EXPORT void machine_load(Machine *m, const Progress *from, const Count *buckets,
                         const Spending *spending) {
    end_last(m, m->pc, from->fall_through);
    m->target_count = 0;
    if (m->bucket_count && m->explains) settle(m);
    if (!buckets) switch_bucket(m, m->bucket);
    m->instructions = from->total.instructions;
    m->met_run = 0; /* runs have other numbers */
    m->cycles = from->total.cycles;
    for (uint32_t n = 0; n < 2; n++) m->latest->branch[n] = (uint16_t)from->branch_cycles[n];
    m->switched = buckets ? from->switched : from->total;
    if (!buckets) return;
    m->bucket = from->bucket;
    memcpy(m->buckets, buckets, m->bucket_count * sizeof *buckets);
    if (m->bucket_count && m->explains)
        memcpy(m->spending, spending, m->bucket_count * m->function_count * sizeof *spending);
}

#endif
