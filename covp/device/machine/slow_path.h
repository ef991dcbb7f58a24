/* The slow path of loads and stores, in place of Unicorn's: accesses that miss the emulator's table of pages,
 * that are misaligned where that matters, and all of peripherals.
 *
 * An entry of the table holds flash or RAM at the same distance, and programs that use both in turn would
 * always search: such accesses are mostly done here. Whether something asks to leave is checked here, too.
 */
#ifndef COVP_SLOW_PATH_H
#define COVP_SLOW_PATH_H

#include "emulator.h"
#include "given_up.h"
#include "misaligned.h"
#include "tlb.h"
#include "varied.h"

/* -- leaving after an access ------------------------------------------------------------------------ */

/* Something asks to leave, and the access at `from` in translated code is done. */
static void leave(const Emulator *e, char *env, uintptr_t from) {
    char *processor = env - e->env;
    Machine *m = machine_of(processor);
    if (!m) return;
    e->f.restore_state(processor, from, true);
    m->given_up |= m->kept_count > 0;
    e->f.exit_if_requested(m->engine, 0);
}

/* The same before an access, called from translated code. */
static void leave_before_access(Machine *m, uintptr_t from) {
    const Emulator *e = m->is_thumb ? &arm_emulator : &riscv_emulator;
    m->emu_stop(m->engine);
    e->f.restore_state((char *)m->processor, from, true);
    e->f.exit_if_requested(m->engine, 0);
}

static inline void leave_if_requested(const Emulator *e, char *env, uintptr_t from) {
    if (*(int32_t *)(env - e->env + e->exit_flag) < 0) leave(e, env, from);
}

/* The machine of a processor, without a search for accesses in a row. */
static Machine *accessing_machine(const char *processor) {
    static _Thread_local struct { const char *processor; Machine *m; unsigned at; } latest;
    unsigned now = atomic_load_explicit(&machine_changes, memory_order_acquire);
    if (latest.processor != processor || latest.at != now) {
        latest.m = machine_of(processor);
        latest.processor = processor;
        latest.at = now;
    }
    return latest.m;
}

/* Whether no hook has to be told of accesses. */
static bool is_unhooked(const Machine *m) {
    return m->load_hooks && !*m->load_hooks && !*m->store_hooks;
}

/* The bytes of an access in memory, for most of those that come here; else NULL: the emulator does it,
 * and remembers the page. Stores to pages with code are the emulator's, which then forgets the code.
 */
static uint8_t *direct(Machine *m, uint32_t address, uint32_t size, bool writes) {
    enum { TURNS = 16 };
    if (!m || !is_unhooked(m) || m->slow_accesses[address >> PAGE_BITS]++ % TURNS == 0) return NULL;
    for (uint32_t i = 0; i < m->region_count; i++) {
        const Region *r = &m->regions[i];
        if (address < r->start || (uint64_t)address + size > r->end) continue;
        if (writes && (!r->writable || machine_may_have_code(m, address, size))) return NULL;
        if (writes) mark_dirty(dirty_mark(m, address)), mark_dirty(dirty_mark(m, address + size - 1));
        return (uint8_t *)r->host + (address - r->start);
    }
    return NULL;
}

/* -- tables of pages -------------------------------------------------------------------------------- */

/* The emulator has a table of pages for each mode of a processor; a core is in one of them. Where some
 * memories are slower than others, each has a table of its own: translated code looks for an access in the
 * table of the memory that it is expected to meet, which has no pages of others. So an access that meets
 * another takes the slow path, and only that; what is expected to be misaligned always does.
 */
enum { ARM_SPARE = 8, SPARES = 3 };

/* The n-th table of `SPARES` that no core uses; the first one is never filled. */
static uint32_t spare_table(const Machine *m, uint32_t core, uint32_t n) {
    return m->is_thumb ? ARM_SPARE + n : n + (n >= core);
}

/* The table for accesses that meet a memory, if the core uses that one. */
static uint32_t table_of(const Machine *m, uint32_t core, uint8_t met) {
    uint32_t number = 0, memory = met & MET_MEMORY;
    if (met_misaligned(met)) return spare_table(m, core, 0);
    if (!memory || m->counts_accesses) return core;
    for (uint32_t n = 0; n < memory; n++)
        number += memory_met(m, m->regions[n].start) == n + 1;
    return spare_table(m, core, number);
}

/* An access is misaligned, or it depends on the memory what it takes. Returns it for the emulator. */
static uint32_t admit_slowly(Machine *m, uint32_t address, uint32_t access, uintptr_t from) {
    uint32_t kind = access >> TABLE_BITS, size = 1u << (kind & KIND_SIZE);
    if (breaks_alignment(address, access) && kind & KIND_FAULTS) {
        refuse_misaligned(m, address, size);
        leave_before_access(m, from);
    }
    if (!m->counts_accesses) meet(m, kind >> KIND_PLACE_SHIFT & KIND_PLACE, address, size, 0);
    uint32_t core = kind >> KIND_TABLE_SHIFT & TABLE_MASK;
    access &= ~(uint32_t)TABLE_MASK;
    return access | table_of(m, core, m->tells_memories ? memory_met(m, address) : 0);
}

/* An access is about to be made; what it is to be for the emulator. */
static inline uint32_t admit(Machine *m, uint32_t address, uint32_t access, uintptr_t from) {
    uint32_t kind = access >> TABLE_BITS;
    if (!m || !(kind & KIND_OWN)) return access;
    bool is_plain = (access & TABLE_MASK) == (kind >> KIND_TABLE_SHIFT & TABLE_MASK) && !m->tells_memories;
    if (!is_plain || breaks_alignment(address, access)) access = admit_slowly(m, address, access, from);
    /* its alignment is settled: the emulator may do it byte by byte, and ask each byte for it */
    return access & ~(~0u << (TABLE_BITS + KIND_OWN_SHIFT)) & ~(uint32_t)(KIND_ALIGNMENT << TABLE_BITS);
}

/* A store is about to be made; where it crosses into another page, the emulator may do a part of it. */
static inline void begin_store(Machine *m, uint32_t address, uint32_t size) {
    begin_access(m, address, size);
    if ((address & ((1u << PAGE_BITS) - 1)) + size > 1u << PAGE_BITS) keep_before(m, address, size);
}

#define LOAD(E, N)                                                                                \
    static uint64_t E##_load_##N(char *env, uint32_t address, uint32_t access, uintptr_t from) {  \
        Machine *m = accessing_machine(env - E##_emulator.env);                                   \
        access = admit(m, address, access, from);                                                 \
        const uint8_t *memory = direct(m, address, 1u << N, false);                               \
        uint64_t value = 0;                                                                       \
        if (memory) return memcpy(&value, memory, 1u << N), value;                                \
        if (m) begin_access(m, address, 1u << N);                                                 \
        value = E##_emulator.f.load[N](env, address, access, from);                               \
        leave_if_requested(&E##_emulator, env, from);                                             \
        return value;                                                                             \
    }
#define STORE(E, N)                                                                               \
    static void E##_store_##N(char *env, uint32_t address, uint64_t value, uint32_t access,       \
                              uintptr_t from) {                                                   \
        Machine *m = accessing_machine(env - E##_emulator.env);                                   \
        access = admit(m, address, access, from);                                                 \
        uint8_t *memory = direct(m, address, 1u << N, true);                                      \
        if (memory) {                                                                             \
            memcpy(memory, &value, 1u << N);                                                      \
            return;                                                                               \
        }                                                                                         \
        if (m) begin_store(m, address, 1u << N);                                                  \
        E##_emulator.f.store[N](env, address, value, access, from);                               \
        leave_if_requested(&E##_emulator, env, from);                                             \
    }
LOAD(arm, 0) LOAD(arm, 1) LOAD(arm, 2) LOAD(arm, 3)
STORE(arm, 0) STORE(arm, 1) STORE(arm, 2) STORE(arm, 3)
LOAD(riscv, 0) LOAD(riscv, 1) LOAD(riscv, 2) LOAD(riscv, 3)
STORE(riscv, 0) STORE(riscv, 1) STORE(riscv, 2) STORE(riscv, 3)

#endif
