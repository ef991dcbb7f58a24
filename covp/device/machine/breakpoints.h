/* Breakpoints: sorted addresses of instructions. */
#ifndef COVP_BREAKPOINTS_H
#define COVP_BREAKPOINTS_H

#include "counter_state.h"

/* Whether there is a breakpoint in start <= address < end; *at is the first. */
static bool has_breakpoint(const Machine *m, uint32_t start, uint32_t end, uint32_t *at) {
    for (uint64_t i = 0; i < m->breakpoint_count; i++) {
        *at = m->breakpoints[i];
        if (*at >= start) return *at < end;
    }
    return false;
}

/* Replaces all breakpoints; the addresses are sorted. Returns 0 without memory. */
static int replace_breakpoints(Machine *m, const uint32_t *addresses, uint64_t count) {
    uint32_t *copy = malloc((count + 1) * sizeof *copy);
    if (!copy) return 0;
    memcpy(copy, addresses, count * sizeof *copy);
    free(m->breakpoints);
    m->breakpoints = copy;
    m->breakpoint_count = count;
    return 1;
}

#endif
