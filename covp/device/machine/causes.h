/* What the cycles of each bucket and function passed with.
 *
 * Blocks count their runs alone. Now and then, at the latest when the bucket changes, the counts are
 * settled: what was added to them since is multiplied with what a run of the block takes.
 */
#ifndef COVP_CAUSES_H
#define COVP_CAUSES_H

#include "timeline.h"
#include "traffic.h"

/* Where the counts of a bucket and a function are. */
static inline Spending *spending_of(Machine *m, const Version *v) {
    return &m->spending[(uint64_t)m->bucket * m->function_count + v->function];
}

/* Cycles pass in the block that runs, beside those that the code itself takes. */
static void spend(Machine *m, uint32_t cause, int64_t cycles) {
    if (m->timeline) log_function(m, m->last->version->function, NOWHERE, m->cycles);
    m->cycles += (uint64_t)cycles;
    if (cause < CAUSES) m->extra[cause] += cycles;
    if (m->bucket < m->bucket_count)
        spending_of(m, m->last->version)->by[cause] += (uint64_t)cycles;
}

static void add_spent(Spending *to, const Spent *one, uint64_t times) {
    for (int n = 0; n < CAUSES; n++) to->by[n] += times * one->by[n];
}

/* Whether the branch at the end of the block that ran last has yet to go somewhere. */
static inline bool is_open(const Machine *m, const Block *b, uint32_t entry) {
    return b == m->last && entry == last_entry(m);
}

static void settle_block(Machine *m, Block *b) {
    Version *v = b->version;
    Spending ignored = {0}, *to = m->bucket < m->bucket_count ? spending_of(m, v) : &ignored;
    uint64_t all_runs = 0;
    for (uint32_t entry = 0; entry < ENTRIES; entry++) {
        const EntryTime *time = &v->time.entry[entry];
        RunCount *before = &v->settled[entry];
        RunCount now = {b->runs[entry].count, b->runs[entry].jumped, v->ended[entry] + is_open(m, b, entry)};
        uint64_t runs = now.runs - before->runs, jumped = now.jumped - before->jumped;
        all_runs += runs;
        to->instructions += runs * b->instructions;
        add_spent(to, &time->own, runs);
        add_spent(to, &time->taken, jumped);
        add_spent(to, &time->untaken, runs - jumped - (now.ended - before->ended));
        *before = now;
    }
    settle_fetches(m, b, all_runs);
    /* the block that ran last is looked at again in any case */
    v->settled_runs = b == m->last ? UINT64_MAX : runs_of(b);
}

/* All that blocks counted so far belongs to the current bucket. */
static void settle(Machine *m) {
    settle_traffic(m);
    for (uint64_t i = 0; i < m->all_count; i++)
        if (m->all[i]->version->settled_runs != runs_of(m->all[i])) settle_block(m, m->all[i]);
}

/* The function that an address belongs to: that of the latest mark before it; 0: none. */
static uint32_t function_at(const Machine *m, uint32_t address) {
    uint64_t low = 0;
    for (uint64_t high = m->function_mark_count; low < high;) {
        uint64_t middle = (low + high) / 2;
        if (m->function_marks[middle].address <= address) low = middle + 1;
        else high = middle;
    }
    return low ? m->function_marks[low - 1].bucket : 0;
}

/* Forget what was counted; 0: no memory. */
static int clear_spending(Machine *m, uint64_t buckets, uint64_t functions) {
    Spending *zero = calloc(buckets * functions + 1, sizeof *zero);
    if (!zero) return 0;
    settle(m);
    free(m->spending);
    m->spending = zero;
    m->function_count = functions;
    return 1;
}

/* Count by function from now on: marks, sorted by address, say which one begins there, from 1 on; 0 where
 * none is. 0: no memory.
 */
EXPORT int machine_set_functions(Machine *m, const Marker *marks, uint64_t count,
                                 uint64_t functions) {
    Marker *copy = malloc((count + 1) * sizeof *copy);
    if (!copy || !clear_spending(m, m->bucket_count, functions)) {
        free(copy);
        return 0;
    }
    memcpy(copy, marks, count * sizeof *copy);
    free(m->function_marks);
    m->function_marks = copy;
    m->function_mark_count = count;
    for (uint64_t i = 0; i < m->all_count; i++)
        m->all[i]->version->function = function_at(m, m->all[i]->address);
    return 1;
}

/* Time passes in which no code runs. */
EXPORT void machine_spend(Machine *m, uint32_t cause, uint64_t cycles) {
    spend(m, cause, (int64_t)cycles);
    m->idle[cause - CAUSES] += cycles;
}

/* What was counted so far, for each bucket by memory. */
EXPORT void machine_moved(Machine *m, Moved *out) {
    settle(m);
    memcpy(out, m->moved, m->bucket_count * MAX_REGIONS * sizeof *out);
}

/* What was counted so far, for each bucket by function. */
EXPORT void machine_spending(Machine *m, Spending *out) {
    settle(m);
    memcpy(out, m->spending, m->bucket_count * m->function_count * sizeof *out);
}

#endif
