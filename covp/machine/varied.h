/* Instructions whose time depends on values: divisions, shifts, accesses that cross a word.
 *
 * A block's time has what they take by their rule. What a run takes more or less is found once for each
 * instruction, way to enter its block and values, as fetches go on meanwhile.
 */
#ifndef COVP_VARIED_H
#define COVP_VARIED_H

#include "blocks.h"
#include "causes.h"

enum { MISALIGNED_KIND = MAX_OPERANDS };

static uint64_t varied_hash(const Varied *v) {
    uint64_t key = (uintptr_t)v->version ^ (uint64_t)v->address << 32 ^ v->misaligned * 0x100000001b3u ^ (uint64_t)v->entry << 24 ^
                   (uint64_t)v->kind << 16 ^ (uint64_t)v->first << 8 ^ v->second;
    return (key * 0x9e3779b97f4a7c15u) >> 24;
}

static Varied *varied_slot(Varied *table, uint64_t room, const Varied *v) {
    for (uint64_t i = varied_hash(v);; i++) {
        Varied *slot = &table[i & (room - 1)];
        if (!slot->version) return slot;
        if (slot->version == v->version && slot->address == v->address && slot->entry == v->entry &&
            slot->kind == v->kind && slot->misaligned == v->misaligned && slot->first == v->first && slot->second == v->second)
            return slot;
    }
}

static void grow_varied(Machine *m) {
    uint64_t room = m->varied_room ? 2 * m->varied_room : 256;
    Varied *table = must(calloc(room, sizeof *table));
    for (uint64_t i = 0; i < m->varied_room; i++)
        if (m->varied[i].version) *varied_slot(table, room, &m->varied[i]) = m->varied[i];
    free(m->varied);
    m->varied = table;
    m->varied_room = room;
}

/* What the block that is running takes more if an instruction does. */
static int32_t more_of(const Machine *m, const Block *b, Variation v) {
    Code code = code_of(b);
    History before = {.count = 0};
    if (m->entry != JUMPED) before = history(m, b->version->before[m->entry - FALLEN]);
    return time_more(m->timing, &code, m->entry == JUMPED ? NULL : &before,
                     b->version->ends, v);
}

/* Which of a block's instructions is at an address. */
static uint32_t place_of(const Block *b, uint32_t address) {
    uint32_t n = 0;
    for (uint32_t at = b->address; n < b->instructions && at != address;) at += b->version->code[n++].bytes;
    return n;
}

/* What the access to two words at an address takes more. */
static int32_t misaligned_at(const Machine *m, uint32_t address) {
    uint32_t n = place_of(m->last, address);
    return misaligned_cycles(m->timing) +
           (n < m->last->instructions ? m->last->version->code[n].cycles : 0);
}

/* The instruction at an address takes `cycles` more than its rule says, because of its operands. */
static void vary(Machine *m, uint32_t address, uint32_t kind, int first, int second, uint32_t cause,
                 int32_t cycles) {
    const Block *b = m->last;
    Varied v = {.version = b->version, .address = address, .entry = (uint8_t)m->entry,
                .misaligned = m->misaligned_run == m->instructions ? m->misaligned_places : 0,
                .kind = (uint8_t)kind, .first = (uint8_t)first, .second = (uint8_t)second};
    if (!lies_in(b, address)) return;
    if (2 * m->varied_count >= m->varied_room) grow_varied(m);
    Varied *slot = varied_slot(m->varied, m->varied_room, &v);
    if (!slot->version) {
        *slot = v;
        slot->number = (uint32_t)m->varied_count;
        slot->cycles = more_of(m, b, (Variation){v.misaligned, address, cycles});
        m->varied_count++;
    }
    slot->count++;
    if (slot->cycles) spend(m, cause, slot->cycles);
    if (kind != MISALIGNED_KIND) return;
    uint32_t place = place_of(b, address);
    m->misaligned_run = m->instructions;
    m->misaligned_places = v.misaligned | (place < 64 ? 1ull << place : 0);
}

typedef struct { uint64_t block, count, misaligned; uint32_t address, entry, kind, first, second, number; } VariedCount;

/* How often instructions had which values; as machine_blocks. */
EXPORT uint64_t machine_varied(const Machine *m, VariedCount *out, uint64_t room) {
    uint64_t used = 0;
    for (uint64_t i = 0; i < m->varied_room; i++) {
        const Varied *v = &m->varied[i];
        if (!v->version) continue;
        if (used < room)
            out[used] = (VariedCount){v->version->index, v->count, v->misaligned, v->address, v->entry, v->kind,
                                      v->first, v->second, v->number};
        used++;
    }
    return used;
}

#endif
