/* Buckets: what was counted since the entry of the latest marked block. */
#ifndef COVP_BUCKETS_H
#define COVP_BUCKETS_H

#include "causes.h"

static bool is_marked(const Machine *m, uint32_t address, uint32_t *bucket) {
    for (uint64_t low = 0, high = m->marker_count; low < high;) {
        uint64_t middle = (low + high) / 2;
        if (m->markers[middle].address == address) {
            *bucket = m->markers[middle].bucket;
            return true;
        }
        if (m->markers[middle].address < address) low = middle + 1;
        else high = middle;
    }
    return false;
}

static void switch_bucket(Machine *m, uint32_t bucket) {
    if (m->timeline) log_bucket(m, bucket);
    if (m->bucket < m->bucket_count) {
        if (m->explains) settle(m);
        m->buckets[m->bucket].instructions += m->instructions - m->switched.instructions;
        m->buckets[m->bucket].cycles += m->cycles - m->switched.cycles;
    }
    m->switched = (Count){m->instructions, m->cycles};
    m->bucket = bucket;
}

/* markers sorted by address; buckets start at zero and bucket 0 is current. 0: no memory. */
static int replace_markers(Machine *m, const Marker *markers, uint64_t count, uint64_t buckets) {
    Marker *copy = malloc((count + 1) * sizeof *copy);
    Count *zero = calloc(buckets + 1, sizeof *zero);
    if (!copy || !zero || !clear_spending(m, buckets, m->function_count) ||
        !clear_moved(m, buckets)) {
        free(copy);
        free(zero);
        return 0;
    }
    memcpy(copy, markers, count * sizeof *copy);
    free(m->markers);
    free(m->buckets);
    m->markers = copy;
    m->marker_count = count;
    m->buckets = zero;
    m->bucket_count = buckets;
    m->bucket = 0;
    m->switched = (Count){m->instructions, m->cycles};
    return 1;
}

EXPORT uint64_t machine_buckets(Machine *m, Count *out) {
    switch_bucket(m, m->bucket);
    memcpy(out, m->buckets, m->bucket_count * sizeof *out);
    return m->bucket_count;
}

/* The current bucket, and the total of cycles at which it had spent none. */
EXPORT uint32_t machine_phase(const Machine *m, uint64_t *origin) {
    uint64_t spent = m->bucket < m->bucket_count ? m->buckets[m->bucket].cycles : 0;
    *origin = m->switched.cycles - spent;
    return m->bucket;
}

#endif
