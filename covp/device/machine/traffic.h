/* Bytes moved by the core, for each bucket by memory. */
#ifndef COVP_TRAFFIC_H
#define COVP_TRAFFIC_H

#include "counter_state.h"

/* Where the bytes of a memory are in the current bucket; NULL: outside of all buckets or memories. */
static Moved *moved_at(Machine *m, uint32_t address) {
    const Region *region = m->bucket < m->bucket_count ? region_of(m, address) : NULL;
    return region ? &m->moved[m->bucket * MAX_REGIONS + (region - m->regions)] : NULL;
}

/* Loads and stores since they were settled belong to the current bucket. */
static void settle_traffic(Machine *m) {
    if (m->bucket < m->bucket_count) {
        for (uint32_t n = 0; n < m->region_count; n++) {
            Moved *to = &m->moved[m->bucket * MAX_REGIONS + n];
            to->read += m->traffic[n][0] - m->settled_traffic[n][0];
            to->written += m->traffic[n][1] - m->settled_traffic[n][1];
        }
    }
    memcpy(m->settled_traffic, m->traffic, sizeof m->traffic);
}

/* Instructions of a block were fetched. */
static void settle_fetches(Machine *m, const Block *b, uint64_t runs) {
    Moved *to = moved_at(m, b->address);
    if (to) to->fetched += runs * b->size;
}

/* Forget what was counted; 0: no memory. */
static int clear_moved(Machine *m, uint64_t buckets) {
    Moved *zero = calloc(buckets * MAX_REGIONS + 1, sizeof *zero);
    if (!zero) return 0;
    free(m->moved);
    m->moved = zero;
    return 1;
}

#endif
