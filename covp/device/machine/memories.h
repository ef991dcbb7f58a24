/* What an access meets, as it tells itself: which memory, whether it crosses a word, and how many instructions
 * before what it loads was stored. It is learnt for each
 * instruction of a block when that first runs, so that the block's time can have it; what later runs meet
 * otherwise is counted (varied.h).
 */
#ifndef COVP_MEMORIES_H
#define COVP_MEMORIES_H

#include "reserve.h"

enum { MET_MEMORY = 0x1f, MET_STORED = 0x20, MET_WORDS = 0x80, WORD = 4 };

/* Whether misaligned accesses that are no faults take time. */
static bool times_misaligned(const Machine *m) { return m->timing->misaligned || m->segments; }

/* Whether anything depends on what accesses meet. */
static bool times_memories(const Machine *m) { return m->has_slow || m->timing->reloads || times_misaligned(m); }

/* The wait states of an address beyond those that every access has. */
static inline uint32_t further_waits(const Timing *t, uint32_t address) {
    for (uint32_t n = 0; n < t->wait_count; n++)
        if (address >= t->waits[n].start && address < t->waits[n].end)
            return t->waits[n].data - t->data_waits;
    return 0;
}

/* 1 + the place of the memory at an address; 0: none, or one that is as fast as any. Without segments the
 * first stands for all that are as slow.
 */
static uint8_t memory_met(const Machine *m, uint32_t address) {
    const Region *region = region_of(m, address);
    if (!region) return 0;
    if (m->segments) return (uint8_t)(1 + (region - m->regions));
    uint32_t waits = further_waits(m->timing, address);
    for (uint8_t n = 0; waits && n < m->region_count; n++)
        if (further_waits(m->timing, m->regions[n].start) == waits) return (uint8_t)(n + 1);
    return 0;
}

static bool crosses_word(uint32_t address, uint32_t size) {
    return address & (size - 1) & (WORD - 1) && (address & (WORD - 1)) + size > WORD;
}

static uint8_t met_at(const Machine *m, uint32_t address, uint32_t size) {
    bool crosses = crosses_word(address, size) && times_misaligned(m);
    return (uint8_t)((m->has_slow || m->segments ? memory_met(m, address) : 0) | (crosses ? MET_WORDS : 0));
}

/* The further wait states of what was met. */
static uint32_t waits_of(const Machine *m, uint8_t met) {
    uint32_t memory = met & MET_MEMORY;
    return memory ? further_waits(m->timing, m->regions[memory - 1].start) : 0;
}

/* An instruction meets this, once more. */
static void set_met(const Machine *m, Instruction *i, uint8_t met) {
    i->cycles = (uint16_t)(i->cycles + waits_of(m, met));
    if (met & MET_WORDS) i->crosses = 1;
    i->stored = met / MET_STORED & 3;
}

/* -- what was learnt: a hash table by block and place ----------------------------------------------- */

static Learnt *learnt_slot(Learnt *table, uint64_t room, uint32_t block, uint32_t place) {
    uint64_t hash = ((uint64_t)block << 16 | place) * 0x9e3779b97f4a7c15u;
    for (uint64_t i = hash >> 24;; i++) {
        Learnt *slot = &table[i & (room - 1)];
        if (!slot->times || (slot->block == block && slot->place == place)) return slot;
    }
}

/* What an instruction of a block is expected to meet, and how often in a run. */
static Met expected_at(const Machine *m, uint32_t block, uint32_t place) {
    if (!m->learnt_count) return (Met){0, 1};
    const Learnt *slot = learnt_slot(m->learnt, m->learnt_room, block, place);
    return slot->times ? (Met){slot->met, slot->times} : (Met){0, 1};
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

/* Expect from now on that an instruction meets what it did; `again`: it has in this run, already. */
static void learn(Machine *m, uint32_t block, uint32_t place, uint8_t met, bool again) {
    if (2 * m->learnt_count >= m->learnt_room && !grow_learnt(m)) return;
    Learnt *slot = learnt_slot(m->learnt, m->learnt_room, block, place);
    m->learnt_count += !slot->times;
    uint32_t times = again && slot->met == met ? slot->times + 1u : 1;
    *slot = (Learnt){block, (uint16_t)place, met, (uint8_t)times};
}

#endif
