/* What an access meets, as it tells itself: which memory, whether it crosses a word, and how many instructions
 * before what it loads was stored. It is learnt for each
 * instruction of a block when that first runs, so that the block's time can have it; what later runs meet
 * otherwise is counted (varied.h).
 */
#ifndef COVP_MEMORIES_H
#define COVP_MEMORIES_H

#include "reserve.h"

/* Beside the memory, in steps of MET_STORED: how many instructions before it what an aligned access loads was
 * stored, up to two; then MET_WITHIN; from MET_WORDS on the same of one that crosses a word; then MET_TWICE.
 */
enum { MET_MEMORY = 0x1f, MET_STORED = 0x20, MET_WITHIN = 0x60, MET_WORDS = 0x80, MET_TWICE = 0xe0, WORD = 4 };

static inline bool met_misaligned(uint8_t met) { return met >= MET_WITHIN; }

/* Whether misaligned accesses that are no faults take time. */
static bool times_misaligned(const Machine *m) { return m->timing->misaligned || m->segments; }

/* Whether anything depends on what accesses meet. */
static bool times_memories(const Machine *m) { return m->tells_memories || m->timing->reloads || times_misaligned(m); }

/* The wait states of an address beyond those that every access has. */
static inline uint32_t further_waits(const Timing *t, uint32_t address) {
    for (uint32_t n = 0; n < t->wait_count; n++)
        if (address >= t->waits[n].start && address < t->waits[n].end)
            return t->waits[n].data - t->data_waits;
    return 0;
}

/* 1 + the place of the memory at an address; 0: none. Where speed alone tells memories apart, the first stands
 * for all that are as slow, and 0 for the fastest.
 */
static uint8_t memory_met(const Machine *m, uint32_t address) {
    const Region *region = region_of(m, address);
    if (!region) return 0;
    if (m->segments || m->timing->flags & MEMORIES_APART) return (uint8_t)(1 + (region - m->regions));
    uint32_t waits = further_waits(m->timing, address);
    for (uint8_t n = 0; waits && n < m->region_count; n++)
        if (further_waits(m->timing, m->regions[n].start) == waits) return (uint8_t)(n + 1);
    return 0;
}

/* How an access is misaligned. */
static uint8_t alignment_met(uint32_t address, uint32_t size) {
    if (!(address & (size - 1) & (WORD - 1))) return 0;
    if ((address & (WORD - 1)) + size <= WORD) return MET_WITHIN;
    return size == WORD && address & 1 ? MET_TWICE : MET_WORDS;
}

static uint8_t met_at(const Machine *m, uint32_t address, uint32_t size) {
    uint8_t memory = m->tells_memories || m->segments ? memory_met(m, address) : 0;
    return memory | (times_misaligned(m) ? alignment_met(address, size) : 0);
}

/* The further wait states of what was met. */
static uint32_t waits_of(const Machine *m, uint8_t met) {
    uint32_t memory = met & MET_MEMORY;
    return memory ? further_waits(m->timing, m->regions[memory - 1].start) : 0;
}

/* What an instruction meets but for its wait states. */
static void set_kind(Instruction *i, uint8_t met) {
    static const uint8_t of_alignment[] = {[3] = WITHIN_WORD, CROSSES_WORD, CROSSES_WORD, CROSSES_WORD, CROSSES_AT_ODD};
    i->memory = met & MET_MEMORY;
    if (met_misaligned(met)) i->alignment = of_alignment[met / MET_STORED];
    i->stored = met / MET_STORED & 3;
    if (i->stored == 3) i->stored = 0;
}

/* An instruction meets this, with each word that it loads or stores. */
static void set_met(const Machine *m, Instruction *i, Met met) {
    i->cycles = (uint16_t)(met.times * waits_of(m, met.met));
    i->alignment = 0;
    set_kind(i, met.met);
}

/* -- what was learnt: a hash table by block and place ----------------------------------------------- */

static Learnt *learnt_slot(Learnt *table, uint64_t room, uint32_t block, uint32_t place) {
    uint64_t hash = ((uint64_t)block << 16 | place) * 0x9e3779b97f4a7c15u;
    for (uint64_t i = hash >> 24;; i++) {
        Learnt *slot = &table[i & (room - 1)];
        if (!slot->times || (slot->block == block && slot->place == place)) return slot;
    }
}

/* What an instruction at a place of a block is expected to meet, and how often in a run. */
static Met expected_at(const Machine *m, uint32_t block, uint32_t place, uint32_t bits) {
    if (!m->learnt_count) return (Met){0, 1};
    const Learnt *slot = learnt_slot(m->learnt, m->learnt_room, block, place);
    return slot->times && slot->bits == bits ? (Met){slot->met, slot->times} : (Met){0, 1};
}

static bool grow_learnt(Machine *m) {
    uint64_t room = m->learnt_room ? 2 * m->learnt_room : 256;
    Learnt *table = zeroed(m, room, sizeof *table);
    if (!table) return false;
    for (uint64_t i = 0; i < m->learnt_room; i++) {
        const Learnt *one = &m->learnt[i];
        if (one->times) *learnt_slot(table, room, one->block, one->place) = *one;
    }
    free(m->learnt);
    m->learnt = table;
    m->learnt_room = room;
    return true;
}

/* Expect from now on that an instruction meets this, so often in a run. */
static void learn(Machine *m, uint32_t block, uint32_t place, uint32_t bits, Met met) {
    if (2 * m->learnt_count >= m->learnt_room && !grow_learnt(m)) return;
    Learnt *slot = learnt_slot(m->learnt, m->learnt_room, block, place);
    m->learnt_count += !slot->times;
    *slot = (Learnt){block, bits, (uint16_t)place, met.met, met.times};
}

#endif
