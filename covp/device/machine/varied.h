/* Runs that differ: instructions whose time depends on values (divisions, shifts), and accesses that meet
 * another memory than they were expected to.
 *
 * A block's time has what is expected. What a run takes more or less is found once for each instruction, way
 * to enter its block and values, as fetches go on meanwhile.
 */
#ifndef COVP_VARIED_H
#define COVP_VARIED_H

#include "blocks.h"
#include "causes.h"

/* Kinds beside those of operands: other memory than expected, and the way that the core goes on from there:
 * from block to block, until it jumps, or no more for some blocks.
 */
enum { MEMORY_KIND = MAX_OPERANDS, FELL_KIND, JUMPED_KIND };
enum { LONGEST_WAY = 32 };
/* From so many on each is taken as the only one: they would be too many. */
enum { MANY_VARIED = 1 << 16 };

static uint64_t varied_hash(const Varied *v) {
    uint64_t key = (uintptr_t)v->version ^ (uint64_t)v->place << 48 ^ v->before * 0x100000001b3u ^
                   (uint64_t)v->entry << 24 ^ (uint64_t)v->kind << 16 ^ (uint64_t)v->first << 8 ^ (uint16_t)v->second;
    return (key * 0x9e3779b97f4a7c15u) >> 24;
}

static bool same_varied(const Varied *a, const Varied *b) {
    return a->version == b->version && a->place == b->place && a->entry == b->entry && a->kind == b->kind &&
           a->before == b->before && a->first == b->first && a->second == b->second;
}

static uint32_t *varied_slot(const Machine *m, const Varied *v) {
    for (uint64_t i = varied_hash(v);; i++) {
        uint32_t *slot = &m->varied_slots[i & (m->varied_room - 1)];
        if (!*slot || same_varied(&m->varied[*slot - 1], v)) return slot;
    }
}

static bool grow_varied(Machine *m) {
    uint64_t room = m->varied_room ? 2 * m->varied_room : 256;
    Varied *items = grown(m, m->varied, room / 2 * sizeof *items);
    if (items) m->varied = items;
    uint32_t *slots = items ? zeroed(m, room, sizeof *slots) : NULL;
    if (!slots) return false;
    free(m->varied_slots);
    m->varied_slots = slots;
    m->varied_room = room;
    for (uint64_t n = 0; n < m->varied_count; n++) *varied_slot(m, &m->varied[n]) = (uint32_t)(n + 1);
    return true;
}

/* -- paths ------------------------------------------------------------------------------------------ */

/* A way of the core: blocks as they ran, and as they were expected to. */
typedef struct {
    Code met[LONGEST_WAY], expected[LONGEST_WAY];
    uint32_t count;
    uint64_t ends;
} Way;

/* False: there is no memory for it. */
static bool add_block(Machine *m, Way *way, const Version *v) {
    const Block *b = m->all[v->index];
    Instruction *code = zeroed(m, b->instructions + 1u, sizeof *code);
    int32_t *more = zeroed(m, b->instructions + 1u, sizeof *more);
    way->expected[way->count] = code_of(b);
    way->met[way->count++] = (Code){code, b->instructions, b->address, more};
    way->ends = v->ends;
    if (code) memcpy(code, v->code, b->instructions * sizeof *code);
    return code && more;
}

/* Whether an instruction of the last block met something already: `last` or one before it did. */
static bool has_met(const Machine *m, uint32_t last, uint32_t place) {
    for (; last; last = m->varied[last - 1].before) {
        const Varied *v = &m->varied[last - 1];
        if (v->kind == FELL_KIND) return false;
        if (v->kind == MEMORY_KIND && v->place == place) return true;
    }
    return false;
}

/* The way up to `last`, 1 + a place in `varied`. False: there is no memory for it. */
static bool follow_way(Machine *m, Way *way, uint32_t last) {
    const Varied *v = &m->varied[last - 1];
    if (v->before && !follow_way(m, way, v->before)) return false;
    if ((!v->before || v->kind == FELL_KIND) && !add_block(m, way, v->version)) return false;
    Code *block = &way->met[way->count - 1];
    Instruction *i = (Instruction *)&block->code[v->place];
    if (v->kind == MEMORY_KIND) {
        if (!has_met(m, v->before, v->place)) i->alignment = 0;
        i->cycles = (uint16_t)(i->cycles + v->second);
        set_kind(i, v->first);
    } else if (v->kind < MEMORY_KIND) {
        ((int32_t *)block->more)[v->place] += v->own;
    }
    return true;
}

/* What a way takes more than expected, to the end of its last block and of the branch there. */
static int32_t delay_of(Machine *m, uint32_t last, bool jumps) {
    if (!last) return 0;
    const Varied *first = &m->varied[last - 1];
    while (first->before) first = &m->varied[first->before - 1];
    Way way = {.count = 0};
    bool known = follow_way(m, &way, last);
    History before = {.count = 0};
    if (first->entry != JUMPED) before = history(m, m->all[first->version->index], first->entry);
    const History *past = first->entry == JUMPED ? NULL : &before;
    int32_t delay = !known ? 0 : time_path(m->timing, &(Path){way.met, way.count, way.ends, jumps}, past) -
                    time_path(m->timing, &(Path){way.expected, way.count, way.ends, jumps}, past);
    for (uint32_t n = 0; n < way.count; n++) {
        free((void *)way.met[n].code);
        free((void *)way.met[n].more);
    }
    return delay;
}

/* What one of `varied` adds to the delay before it; `itself`: 1 + its place. */
static int32_t more_of(Machine *m, uint32_t itself) {
    const Varied *v = &m->varied[itself - 1];
    bool jumps = v->kind == JUMPED_KIND;
    return delay_of(m, jumps ? v->before : itself, jumps) - delay_of(m, v->before, false);
}

/* -- counting --------------------------------------------------------------------------------------- */

static uint32_t vary(Machine *m, Varied v, uint32_t cause) {
    if (2 * m->varied_count >= m->varied_room && !grow_varied(m)) return 0;
    uint32_t *slot = varied_slot(m, &v);
    if (!*slot) {
        *slot = (uint32_t)++m->varied_count;
        m->varied[*slot - 1] = v;
        m->varied[*slot - 1].cycles = more_of(m, *slot);
    }
    Varied *found = &m->varied[*slot - 1];
    found->count++;
    if (found->cycles) spend(m, cause, found->cycles);
    return *slot;
}

/* The running block, as what happens in it is counted. */
static Varied here(const Machine *m, uint32_t kind) {
    return (Varied){.version = m->last->version, .entry = (uint8_t)last_entry(m), .kind = (uint8_t)kind, .before = m->path};
}

/* The core goes on after `path`, unless there are too many. */
static void go_on(Machine *m, uint32_t path) {
    uint32_t blocks = 1;
    for (uint32_t n = path; n; n = m->varied[n - 1].before) blocks += m->varied[n - 1].kind == FELL_KIND;
    m->path = blocks < LONGEST_WAY && m->varied_count < MANY_VARIED ? path : 0;
    if (m->path) m->pending |= AFTER_MET;
}

/* The instruction at a place of the running block takes `cycles` more by its rule, because of its operands. */
static void vary_operands(Machine *m, uint32_t place, uint32_t kind, int first, int second, uint32_t cause,
                          int32_t cycles) {
    if (place >= m->last->instructions) return;
    Varied v = here(m, kind);
    v.place = (uint16_t)place, v.first = (uint8_t)first, v.second = (int16_t)second, v.own = cycles;
    go_on(m, vary(m, v, cause));
}

/* A word of an access meets something else than expected. */
static void vary_memory(Machine *m, uint32_t place, uint8_t met) {
    Varied v = here(m, MEMORY_KIND);
    uint8_t expected = m->last->version->expected[place].met;
    v.place = (uint16_t)place, v.first = met, v.second = (int16_t)(waits_of(m, met) - waits_of(m, expected));
    go_on(m, vary(m, v, v.second ? CAUSE_DATA : CAUSE_ACCESS));
}

/* The core, which is on a way, has jumped from the block that ran last. */
static void leave_way(Machine *m) {
    vary(m, here(m, JUMPED_KIND), CAUSE_FETCH);
    m->path = 0;
}

/* It has gone on to the block that runs now. */
static void stay_on_way(Machine *m) { go_on(m, vary(m, here(m, FELL_KIND), CAUSE_FETCH)); }

/* How often an instruction accesses memory in a run: more than once those of several registers (Armv7-M, A7.7). */
static uint32_t words_of(const Machine *m, Instruction i) {
    uint32_t bits = i.bits, forms = bits & 0x01200000; /* indexed or not, with write-back or without */
    if (!m->is_thumb) return 1;
    if (i.bytes == 2) {
        bool pushes = (bits & 0xf600) == 0xb400; /* or pops */
        return pushes ? (uint32_t)__builtin_popcount(bits & 0x1ff)
                      : (bits & 0xf000) == 0xc000 ? (uint32_t)__builtin_popcount(bits & 0xff) : 1;
    }
    if ((bits & 0xfe400000) == 0xe8000000) return (uint32_t)__builtin_popcount(bits & 0xffff); /* LDM, STM */
    if ((bits & 0xfe400000) == 0xe8400000) return forms ? 2 : 1;                               /* LDRD, STRD */
    bool is_list = (bits & 0xfe000e00) == 0xec000a00 && forms != 0x01000000;                   /* VLDM, VSTM */
    return is_list ? (bits & 0xff) / (bits & 0x100 ? 2 : 1) : 1;
}

/* All words of what learnt last are done: those that were not seen met the fastest memory. */
static void end_words(Machine *m) {
    if (m->met_run != m->instructions) return;
    uint32_t expected = m->last->version->expected[m->met_place].times;
    m->met_run = 0;
    for (; m->met_words < expected; m->met_words++) vary_memory(m, m->met_place, 0);
}

/* The block that runs, for the first time, has met something: time it with that, from this run on. Once for all
 * that it meets, where it ends or accesses a peripheral, which may ask for the time.
 */
static void time_first_run(Machine *m) {
    Block *b = m->last;
    end_words(m);
    m->is_learning = false;
    m->cycles -= m->latest->cycles;
    time_code(m, b);
    m->cycles += m->latest->cycles;
    for (uint64_t n = m->varied_count; n && m->varied[n - 1].version == b->version; n--) {
        Varied *v = &m->varied[n - 1];
        int32_t was = v->cycles;
        v->cycles = more_of(m, (uint32_t)n);
        spend(m, find_rule(m->timing, b->version->code[v->place])->cause, (v->cycles - was) * (int64_t)v->count);
    }
}

/* The first run of a block meets something: what the first word does is expected of all. */
static void teach(Machine *m, Block *b, uint32_t place, uint8_t met) {
    Instruction *i = &b->version->code[place];
    end_words(m);
    uint32_t words = words_of(m, *i);
    Met expected = b->version->expected[place] = (Met){met, (uint8_t)(words ? words : 1)};
    learn(m, b->address, place, i->bits, expected);
    set_met(m, i, expected);
    m->met_run = m->instructions;
    m->met_place = place;
    m->met_words = 1;
    m->is_learning = true;
    m->pending |= AFTER_MET;
    if (!m->engine || m->counts_accesses) return;
    b->flags |= BLOCK_LEARNT;
    for (uint32_t n = 0; n < ENTRIES; n++) b->runs[n].key = 0;
}

/* The instruction at a place of the running block accesses an address; `stored`: as in Instruction. */
static void meet(Machine *m, uint32_t place, uint32_t address, uint32_t size, uint32_t stored) {
    Block *b = m->last;
    if (place >= b->instructions || !b->version->expected) return;
    uint8_t met = (uint8_t)(met_at(m, address, size) | stored * MET_STORED);
    if (m->is_learning && !region_of(m, address)) time_first_run(m);
    bool again = m->met_run == m->instructions && m->met_place == place;
    uint8_t expected = b->version->expected[place].met;
    m->met_words += again;
    if (expected == met) return;
    if (b->version->run == m->instructions && !again && !expected) teach(m, b, place, met);
    else vary_memory(m, place, met);
}

typedef struct { uint64_t block, count; uint32_t place, entry, kind, first; int32_t second; uint32_t before; } VariedCount;

/* How often instructions had which values, in the order of their first runs; as machine_blocks. */
EXPORT uint64_t machine_varied(const Machine *m, VariedCount *out, uint64_t room) {
    for (uint64_t n = 0; n < m->varied_count && n < room; n++) {
        const Varied *v = &m->varied[n];
        out[n] = (VariedCount){v->version->index, v->count, v->place, v->entry, v->kind, v->first, v->second,
                               v->before};
    }
    return m->varied_count;
}

#endif
