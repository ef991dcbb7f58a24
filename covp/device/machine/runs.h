/* One run of the emulator: its limits, and how it ended. */
#ifndef COVP_RUNS_H
#define COVP_RUNS_H

#include "accesses.h"
#include "reserve.h"
#include "varied.h"

/* Prepare for a run, with the limits of `ceiling` and `cycle_limit` in Machine. */
EXPORT void machine_begin(Machine *m, uint64_t ceiling, uint64_t cycle_limit, uint32_t allowed) {
    m->cycle_limit = cycle_limit;
    m->allowed = allowed;
    m->ceiling = ceiling;
    m->fresh = 1;
    m->limit = 0;
    m->stopped = m->special = m->misaligned = m->breakpoint = 0;
    m->interrupt = m->pending = m->retranslate = 0;
    m->given_up = m->access_size = 0;
}

/* End runs that are given this stop before it, so that the emulator does not: it translates the code around
 * its own stop anew in each run.
 */
EXPORT void machine_set_stop(Machine *m, uint32_t stop) {
    m->stop_at = stop;
    for (uint64_t i = 0; i < m->all_count; i++) {
        Block *b = m->all[i];
        mark_stop(m, b);
        set_key(m, b);
    }
}

/* Whether the run came to `stop` with nothing to attend to, and did not wait just before it. */
static bool ended_plainly(const Machine *m, int status, uint64_t stop) {
    uint32_t attention = m->stopped | m->special | m->misaligned | m->given_up | m->interrupt | m->pending | m->retranslate;
    attention |= m->lost;
    if (m->shadow) attention |= m->shadow->found;
    return !status && !attention && m->pc == stop && !lies_in(m->last, m->pc - m->wait_bytes);
}

/* Where a run begins, with bit 0 as the core is: a jump to an even address has left the Thumb state. A program that
 * starts elsewhere than the core is begins in that state, and outside of IT blocks.
 */
static uint64_t entry(Machine *m, uc_engine *uc, uint64_t pc) {
    uint64_t at = 0, xpsr = 0;
    bool starts = m->starts;
    m->starts = false;
    if (!m->xpsr || m->reg_read(uc, (int)m->pc_register, &at) || m->reg_read(uc, (int)m->xpsr, &xpsr)) return pc;
    if (starts && ((at ^ pc) & ~1u)) clear_it_bits(m, uc);
    return starts || xpsr & THUMB_STATE ? pc : pc & ~1ull;
}

/* Run from `pc`, with the Thumb bit, until `stop`; the emulator's error number, 0 for none.
 *
 * Where memory is short `lacks_memory` says so.
 *
 * exactly: blocks of code end at the stop, too.
 */
EXPORT int machine_run(Machine *m, uc_engine *uc, uint64_t pc, uint64_t stop, int exactly) {
    const uint64_t no_address = 1ull << 32;
    uint64_t value = 0;
    m->lacks_memory = m->lost ? HAS_LOST : has_reserve() ? 0 : LACKS_RESERVE;
    m->plain_end = 0;
    if (m->lacks_memory) return 0;
    pc = entry(m, uc, pc);
    m->honours_stop = !exactly && stop == m->stop_at;
    Machine *outer = running;
    running = m;
    int status = m->emu_start(uc, pc, m->honours_stop ? no_address : stop, 0, 0);
    running = outer;
    take_back(m, uc);
    if (m->is_learning) time_first_run(m);
    m->reg_read(uc, (int)m->pc_register, &value);
    m->pc = (uint32_t)value & ~m->is_thumb;
    m->plain_end = ended_plainly(m, status, stop);
    if (m->lost) m->lacks_memory = HAS_LOST;
    return status;
}

#endif
