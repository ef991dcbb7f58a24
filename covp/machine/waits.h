/* Wait states of data memory. */
#ifndef COVP_WAITS_H
#define COVP_WAITS_H

#include "counter_state.h"

/* The wait states of an address beyond those that every access has. */
static inline uint32_t further_waits(const Timing *t, uint32_t address) {
    for (uint32_t n = 0; n < t->wait_count; n++)
        if (address >= t->waits[n].start && address < t->waits[n].end)
            return t->waits[n].data - t->data_waits;
    return 0;
}

#endif
