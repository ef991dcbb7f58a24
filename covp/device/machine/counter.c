/* The native side of the virtual device: counts retired instructions and estimated cycles.
 *
 * Unicorn calls on_block before every translated block. A block is known by (address, size); it is
 * decoded once, from the bytes of the host buffer that the emulated memory lives in, and counted
 * from then on by a few additions. Everything out of the ordinary (a new block, a marker, a
 * requested stop) goes through on_rare_block, so that the common path stays short.
 *
 * Compiled for the host by covp/device/machine/counter.py.
 */
#define _GNU_SOURCE /* dl_iterate_phdr */
#include "accesses.h"
#include "blocks.h"
#include "breakpoints.h"
#include "buckets.h"
#include "cache_maintenance.h"
#include "custom_calls.h"
#include "decode.h"
#include "edges.h"
#include "operands.h"
#include "progress.h"
#include "reserve.h"
#include "runs.h"
#include "ghosts.h"
#include "segments.h"
#include "tlb.h"
#include "translation.h"

typedef struct { uint64_t pc; uint16_t icount; uint16_t size; } UcTb;

/* So that the mirror in counter.py cannot drift. */
EXPORT uint64_t machine_shared_bytes(void) { return offsetof(Machine, chunks); }

EXPORT Machine *machine_new(void) {
    Machine *m = calloc(1, sizeof *m);
    if (!m) return NULL;
    m->chunks = calloc(CHUNKS, sizeof *m->chunks);
    m->code_pages = calloc(1u << (32 - PAGE_BITS - 3), 1);
    if (!m->chunks || !m->code_pages) {
        free(m->chunks);
        free(m->code_pages);
        free(m);
        return NULL;
    }
    m->nowhere.version = &m->outside;
    m->function_count = 1;
    m->stop_at = UINT32_MAX;
    forget_last(m, NOWHERE);
    return m;
}

EXPORT void machine_free(Machine *m) {
    forget_machine(m);
    forget_shadow(m);
    free_segments(m);
    forget_timeline(m);
    for (uint64_t i = 0; i < m->all_count; i++) {
        free_version(m->all[i]->version);
        if (!in_chunk(m, m->all[i])) free(m->all[i]);
    }
    for (int i = 0; i < CHUNKS; i++) free(m->chunks[i]);
    free(m->chunks);
    free(m->code_pages);
    free(m->slow_accesses);
    if (m->context) m->context_free(m->context);
    free(m->customs);
    free(m->watched);
    free(m->all);
    free(m->far_edges);
    free(m->varied);
    free(m->varied_slots);
    free(m->learnt);
    free(m->markers);
    free(m->breakpoints);
    free(m->buckets);
    free(m->spending);
    free(m->moved);
    free(m->function_marks);
    free(m);
}

/* -- counting ------------------------------------------------------------------------------------ */

/* How a block at an address is entered now, or UNKNOWN_WAY. */
static inline uint32_t entry_at(const Machine *m, uint32_t address) {
    bool jumped = m->fall_through != address;
    uint32_t entry = JUMPED;
    if (!jumped) {
        entry = m->latest->follows;
        /* A branch: the host predicts it with the emulated one before it, else the next entry waits for this one. */
        __asm__ volatile("");
    }
    if (LIKELY(!m->carries) || !jumped) return entry;
    if (m->latest->leads_to == address) return m->latest->leads;
    return m->last->version->ends & ENDS_CARRYING ? UNKNOWN_WAY : JUMPED;
}

static inline void count(Machine *m, Block *b, uint32_t address, EntryRuns *runs) {
    EntryRuns *from = m->latest;
    bool jumped = m->fall_through != address;
    m->instructions += b->instructions;
    /* Tables, no branches: the host would mispredict them as often as the emulated ones. */
    m->cycles += runs->cycles + from->branch[!jumped];
    from->jumped += jumped;
    m->fall_through = b->next;
    runs->count++;
    m->latest = runs;
    m->last = b;
}

/* The same where time depends on addresses, too: such blocks are attended. */
static void count_attended(Machine *m, Block *b, uint32_t address) {
    uint64_t start = m->cycles;
    if (m->timeline) log_block(m, b, address);
    count(m, b, address, b->runs + known_entry(m, b, entry_at(m, address)));
    if (m->cache_count) fetch_block(m, b, start);
    ghosts_fetch(m, b);
}

/* Whether the last block's branch is in the word that a jump led to, which is requested before any target is known,
 * unless it has to wait.
 */
static bool is_hidden(const Machine *m) {
    const Block *b = m->last;
    uint32_t branch = b->next - b->version->code[b->instructions - 1].bytes, to = b->next;
    if (!(m->timing->flags & TARGETS_LATER) || fetch_period(m->timing, branch) > 1) return false;
    for (uint64_t way = way_of_last(m); way; way = way_before(m, way)) {
        b = end_of(m, way);
        if ((b->address ^ branch) & ~3u || b->address + b->size != to) return false;
        if ((way - 1) % ENTRIES == JUMPED) return true;
        to = b->address;
    }
    return false;
}

/* Whether the target of the last block's branch was known, as that of one of those taken last, and is where the core
 * goes on: then as if it came next. Else what is not as predicted is as a jump.
 */
static bool predict(Machine *m, uint32_t to) {
    uint32_t branch = m->last->next, place = 0;
    bool taken = to != branch, known;
    while (place < m->target_count && m->targets[place] != branch) place++;
    known = place < m->target_count;
    if (known && is_hidden(m)) {
        if (!taken) return false;
        known = false;
        m->target_count--;
        memmove(m->targets + place, m->targets + place + 1, (m->target_count - place) * sizeof *m->targets);
    }
    if (!taken && !known) return false;
    if (!known && m->target_count < m->timing->targets) m->target_count++;
    if (!known) place = m->target_count - 1;
    uint32_t *first = m->targets;
    if (taken) {
        memmove(first + 1, first, place * sizeof *first);
        *first = branch;
    } else {
        memmove(first + place, first + place + 1, (--m->target_count - place) * sizeof *first);
    }
    m->fall_through = taken == known ? to : NOWHERE;
    m->last->version->turned += known ? 2 * taken - 1 : 0;
    return taken && known;
}

/* A block that is more than counted is entered. */
static void attend(Machine *m, Block *b, uint32_t address) {
    bool predicted = m->last->after & AFTER_BRANCH && predict(m, address);
    EntryRuns *from = m->latest;
    uint8_t follows = from->follows;
    if (predicted) from->follows = from->leads_to == address ? from->leads : UNKNOWN_WAY;
    bool jumped = m->fall_through != address;
    if (m->path && jumped && !(m->last->version->ends & ENDS_CARRYING)) leave_way(m);
    count_edge(m, address);
    count_attended(m, b, address);
    if (predicted) {
        from->leads_to = address, from->leads = from->follows;
        from->follows = follows;
    }
    m->pending = b->after;
    if (m->path) stay_on_way(m);
}

static void stop_before(Machine *m, uc_engine *uc) {
    m->stopped = 1;
    m->limit = 0;
    m->emu_stop(uc);
}

/* The run is over, as it was to be. */
static void end_at_stop(Machine *m, uc_engine *uc) {
    m->limit = 0;
    m->emu_stop(uc);
}

/* The first instruction of a block to stop before. */
static uint32_t special_address(const Machine *m, const Block *b) {
    const uint8_t *start = host_bytes(m, b->address, b->size), *end = start + b->size;
    uint32_t at;
    for (const uint8_t *p = start; start && p < end;) {
        uint32_t pc = b->address + (uint32_t)(p - start);
        Instruction i = fetch(m, p, end);
        if (is_special(m, p, end, i) || has_breakpoint(m, pc, pc + 1, &at)) return pc;
        p += i.bytes;
    }
    return b->address;
}

/* Whether the run ends before a block: at its stop, for an instruction in it that the host executes or stops at,
 * to have it translated again, or for a finding.
 */
static bool is_ended_before(Machine *m, uc_engine *uc, Block *b, uint32_t address) {
    if ((b->flags & BLOCK_STOP) && m->honours_stop) {
        m->special = address != m->stop_at; /* the block has to end before it */
        m->special_pc = m->stop_at;
        end_at_stop(m, uc);
        return true;
    }
    if ((b->flags & (BLOCK_SPECIAL | BLOCK_BREAK)) && address != m->allowed) {
        uint32_t at;
        m->special = 1;
        m->special_pc = special_address(m, b);
        m->breakpoint = has_breakpoint(m, m->special_pc, m->special_pc + 1, &at);
        stop_before(m, uc);
        return true;
    }
    if (!runs_of(b)) watch_block(m, uc, b);
    if (m->retranslate) m->retranslate_pc = address;
    if (!m->retranslate && (!m->shadow || check_block(m, uc, b))) return false;
    stop_before(m, uc);
    return true;
}

static void on_rare_block(Machine *m, uc_engine *uc, uint32_t address, uint32_t size) {
    bool fresh = m->fresh;
    if (fresh) {
        m->fresh = 0;
        m->limit = m->ceiling;
    }
    if (m->instructions >= m->limit || m->cycles >= m->cycle_limit) {
        stop_before(m, uc);
        return;
    }
    Block *b = find(m, address, size, true);
    if (!b) {
        stop_before(m, uc);
        return;
    }
    if (fresh && !is_current(m, b)) decode_again(m, b);
    if (b->flags & BLOCK_LEARNT) {
        b->flags &= (uint8_t)~BLOCK_LEARNT;
        set_key(m, b);
        m->retranslate = 1;
    }
    if (is_ended_before(m, uc, b, address)) return;
    uint32_t bucket;
    if ((b->flags & BLOCK_MARKER) && is_marked(m, address, &bucket)) {
        if (m->segments && bucket != m->bucket) cut_segment(m, CUT_PHASE, false);
        switch_bucket(m, bucket);
    }
    attend(m, b, address);
    if (!(b->flags & BLOCK_NEW)) return;
    b->flags &= (uint8_t)~BLOCK_NEW;
    set_key(m, b);
    b->version->run = m->instructions;
}

/* A block whose predecessor has to be followed by something, or that has to be itself. */
static void on_attended_block(Machine *m, uc_engine *uc, uint32_t address, uint32_t size) {
    if (m->is_learning) time_first_run(m);
    if (m->pending && !m->given_up) execute_pending(m, uc, address);
    if (!size) { /* its first instruction faults when it is translated: nothing runs */
        if (m->honours_stop && address == m->stop_at) end_at_stop(m, uc);
        return;
    }
    Block *chunk = m->chunks[address >> CHUNK_BITS];
    if (chunk) {
        Block *b = chunk + ((address & ((1u << CHUNK_BITS) - 1)) >> 1);
        bool room = m->instructions < m->limit && m->cycles < m->cycle_limit;
        if (LIKELY(!b->flags && b->size == size && room)) {
            if (m->shadow && !check_block(m, uc, b)) {
                stop_before(m, uc);
                return;
            }
            attend(m, b, address);
            return;
        }
    }
    on_rare_block(m, uc, address, size);
}

static inline void enter_block(Machine *m, uc_engine *uc, uint64_t address64, uint32_t size) {
    uint32_t address = (uint32_t)address64;
    Block *chunk = m->chunks[address >> CHUNK_BITS];
    if (LIKELY(chunk != NULL && !m->pending)) {
        Block *b = chunk + ((address & ((1u << CHUNK_BITS) - 1)) >> 1);
        bool room = m->instructions < m->limit && m->cycles < m->cycle_limit;
        EntryRuns *runs = b->runs + entry_at(m, address);
        if (LIKELY(runs->key == size + 1 && room)) {
            count(m, b, address, runs);
            return;
        }
    }
    on_attended_block(m, uc, address, size);
}

EXPORT void on_block(uc_engine *uc, uint64_t address, uint32_t size, void *user) {
    enter_block(user, uc, address, size);
}

/* The same in engines whose calls are inlined: it says that a block is of such an engine. */
EXPORT void on_inlining_block(uc_engine *uc, uint64_t address, uint32_t size, void *user) {
    if (LIKELY(!(size & IS_ACCESS))) {
        enter_block(user, uc, address, size);
        return;
    }
    Machine *m = user;
    uint32_t bytes = size & ((1u << INDEX_SHIFT) - 1), index = size >> INDEX_SHIFT & INDEX_MASK;
    if (!look_at_access(m, uc, (uint32_t)address, bytes, size & IS_STORE, index))
        leave_before_access(m, (uintptr_t)__builtin_return_address(0));
}

/* -- the emulator's other hooks ------------------------------------------------------------------ */

EXPORT void on_new_edge(uc_engine *uc, UcTb *current, UcTb *previous, void *user) {
    (void)uc;
    (void)previous;
    Machine *m = user;
    Block *b = find(m, (uint32_t)current->pc, current->size, false);
    if (b) decode_again(m, b);
}

/* An instruction whose condition holds is executed. */
EXPORT void on_executed(uc_engine *uc, uint64_t address, uint32_t size, void *user) {
    (void)uc;
    (void)address;
    (void)size;
    ++*(uint64_t *)user;
}

EXPORT void on_exception(uc_engine *uc, uint32_t number, void *user) {
    Machine *m = user;
    m->interrupt = number + 1;
    m->emu_stop(uc);
}

EXPORT bool on_invalid_instruction(uc_engine *uc, void *user) {
    (void)uc;
    (void)user;
    return false;
}

/* -- where the core is --------------------------------------------------------------------------- */

/* Another program starts: bucket 0, and no branch leads from what ran before. */
EXPORT void machine_start(Machine *m) {
    switch_bucket(m, 0);
    end_last(m, m->pc, NOWHERE);
    m->target_count = 0;
    m->starts = true;
}

/* The last block led to pc, and none follows: an exception is entered there, or the program is over. */
EXPORT void machine_led_to(Machine *m, uint32_t pc) {
    bool jumped = m->fall_through != pc;
    m->target_count = 0;
    count_edge(m, pc);
    m->cycles += m->latest->branch[!jumped];
    m->latest->jumped += jumped;
    forget_last(m, NOWHERE);
}

/* The part of a block before pc, as a block; an empty one where there is no memory for it. */
static Block *start_of(Machine *m, const Block *b, uint32_t pc) {
    Block *part = find_current(m, b->address, pc - b->address);
    return part ? part : &m->nowhere;
}

/* The last block was left at pc: take back what it did not do. */
EXPORT void machine_left_at(Machine *m, uint32_t pc) {
    Block *b = m->last;
    if (!lies_in(b, pc)) return;
    uint32_t entry = last_entry(m);
    b->runs[entry].count--;
    m->instructions -= b->instructions;
    m->cycles -= b->runs[entry].cycles;
    if (pc == b->address) {
        go_on_after(m, entry == JUMPED ? 0 : b->version->before[entry - FALLEN], pc);
        if (entry == JUMPED) m->fall_through = NOWHERE;
        return;
    }
    Block *done = start_of(m, b, pc);
    go_on_after(m, done == &m->nowhere ? 0 : way_through(done, entry), pc);
    m->instructions += done->instructions;
    m->cycles += done->runs[entry].cycles;
    done->runs[entry].count++;
    done->version->ended[entry]++;
}

/* Totals before the instruction at pc in the block that is running. */
EXPORT void machine_now(Machine *m, uint32_t pc, Count *now) {
    *now = (Count){m->instructions, m->cycles};
    const Block *b = m->last;
    if (!lies_in(b, pc)) return;
    now->instructions -= b->instructions;
    now->cycles -= b->runs[last_entry(m)].cycles;
    if (pc == b->address) return;
    const Block *done = start_of(m, b, pc);
    now->instructions += done->instructions;
    now->cycles += done->runs[last_entry(m)].cycles;
}

/* Where the block that is running starts; 0 before the first one. */
EXPORT uint32_t machine_block(const Machine *m) { return m->last->address; }

/* Whether an address lies in the block that ran last. */
EXPORT int machine_ran_last(const Machine *m, uint32_t address) {
    return lies_in(m->last, address);
}

/* The bits of the instruction at an address, 0 outside the memory. */
EXPORT uint32_t machine_opcode(const Machine *m, uint32_t address) {
    const uint8_t *p = host_bytes(m, address, 2);
    return p ? fetch(m, p, host_bytes(m, address, 4) ? p + 4 : p + 2).bits : 0;
}

/* Count one instruction that the host executed. */
EXPORT void machine_count_one(Machine *m, uint32_t address, uint32_t size) {
    Block *b = find_current(m, address, size);
    if (!b) return;
    end_last(m, address, m->fall_through);
    count_attended(m, b, address);
    end_last(m, address + size, address + size);
}

/* -- markers and breakpoints --------------------------------------------------------------------- */

EXPORT int machine_set_markers(Machine *m, const Marker *markers, uint64_t count, uint64_t buckets) {
    if (!replace_markers(m, markers, count, buckets)) return 0;
    for (uint64_t i = 0; i < m->all_count; i++) {
        Block *b = m->all[i];
        uint32_t bucket;
        b->flags &= (uint8_t)~BLOCK_MARKER;
        if (is_marked(m, b->address, &bucket)) b->flags |= BLOCK_MARKER;
        set_key(m, b);
    }
    return 1;
}

EXPORT int machine_set_breakpoints(Machine *m, const uint32_t *addresses, uint64_t count) {
    if (!replace_breakpoints(m, addresses, count)) return 0;
    for (uint64_t i = 0; i < m->all_count; i++) {
        Block *b = m->all[i];
        uint32_t at;
        b->flags &= (uint8_t)~BLOCK_BREAK;
        if (has_breakpoint(m, b->address, b->address + b->size, &at)) b->flags |= BLOCK_BREAK;
        set_key(m, b);
    }
    return 1;
}

/* Log functions and buckets from now on, with room for so many marks; 0: no more. Returns 0: no memory. */
EXPORT int machine_log_timeline(Machine *m, uint64_t room) {
    forget_timeline(m);
    if (room && !begin_timeline(m, room)) return 0;
    for (uint64_t i = 0; i < m->all_count; i++) set_key(m, m->all[i]);
    return 1;
}
