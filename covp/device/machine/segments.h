/* Segments: what ran between two cuts, so that it can be timed by other models and added up again.
 *
 * A cut is made where the path of a program meets time: at accesses to a unit that can be busy, where the
 * core falls asleep, and where a phase begins. It keeps what the counts have grown by since the one before.
 */
#ifndef COVP_SEGMENTS_H
#define COVP_SEGMENTS_H

#include "buckets.h"
#include "varied.h"

/* Made by the native side where a phase begins; the others' numbers are Python's. */
enum { CUT_PHASE = 0 };

/* Runs of a block that was entered in one way, to its end. */
typedef struct { uint64_t block, entry; int64_t runs, taken, ended; } SegmentRun;

/* Runs of an instruction with operands of some sizes, by the number of its record. */
typedef struct { uint64_t varied; int64_t count; } SegmentOperands;

/* The end of a segment; `phase` is the one that it ran in. */
typedef struct {
    uint64_t kind, phase;
    uint64_t instructions, cycles, waited, exceptions; /* totals */
    int64_t memory_cycles;                             /* total, see Machine */
    uint64_t runs, operands;                           /* how many there are up to here */
} Cut;

enum { SETS_AT = MAX_REGIONS, UNMET_AT, GHOST_COUNTS };

struct Segments {
    Cut *cuts;
    SegmentRun *runs;
    SegmentOperands *operands;
    uint64_t cut_count, cut_room, run_count, run_room, operand_count, operand_room;
    Cache *ghosts; /* see ghosts.h */
    uint64_t ghost_count, *misses;           /* of each ghost by memory, and sets that were gone through */
    uint64_t *cut_misses, cut_misses_room;   /* the same at each cut */
};

/* Room for one more; false: there is no memory for it. */
static bool has_room(Machine *m, void **items, uint64_t count, uint64_t *room, size_t size) {
    if (count < *room) return true;
    uint64_t more = *room ? 2 * *room : 1024;
    void *all = grown(m, *items, more * size);
    if (!all) return false;
    *items = all;
    *room = more;
    return true;
}

static void cut_operands(Machine *m, Varied *v) {
    struct Segments *s = m->segments;
    if (v->count == v->cut) return;
    if (!has_room(m, (void **)&s->operands, s->operand_count, &s->operand_room, sizeof *s->operands)) return;
    s->operands[s->operand_count++] = (SegmentOperands){(uint64_t)(v - m->varied), (int64_t)(v->count - v->cut)};
    v->cut = v->count;
}

static void cut_block(Machine *m, const Block *b, uint32_t entry, int64_t unfinished, int64_t unresolved) {
    struct Segments *s = m->segments;
    Version *v = b->version;
    RunCut now = {(int64_t)b->runs[entry].count - unfinished, (int64_t)b->runs[entry].jumped,
                  (int64_t)v->ended[entry] + unresolved};
    RunCut *was = &v->cut[entry];
    SegmentRun grown = {v->index, entry, now.runs - was->runs, now.taken - was->taken, now.ended - was->ended};
    if (!(grown.runs | grown.taken | grown.ended)) return;
    *was = now;
    if (!has_room(m, (void **)&s->runs, s->run_count, &s->run_room, sizeof *s->runs)) return;
    s->runs[s->run_count++] = grown;
}

static bool cut_ghosts(Machine *m) {
    struct Segments *s = m->segments;
    uint64_t width = s->ghost_count * GHOST_COUNTS;
    if (!width) return true;
    if (!has_room(m, (void **)&s->cut_misses, s->cut_count, &s->cut_misses_room, width * sizeof *s->misses)) return false;
    memcpy(s->cut_misses + s->cut_count * width, s->misses, width * sizeof *s->misses);
    return true;
}

/* A segment ends: `inside`: before the block that runs, which has begun with the access that cuts; else
 * after the block that ran last, of which it is not known where it led.
 */
static void cut_segment(Machine *m, uint64_t kind, bool inside) {
    struct Segments *s = m->segments;
    const Block *last = m->last;
    for (uint64_t n = 0; n < m->all_count; n++)
        for (uint32_t entry = 0; entry < ENTRIES; entry++) {
            bool is_last = m->all[n] == last && entry == last_entry(m);
            cut_block(m, m->all[n], entry, is_last && inside, is_last && !inside);
        }
    for (uint64_t n = 0; n < m->varied_count; n++) cut_operands(m, &m->varied[n]);
    bool counted = inside && last != &m->nowhere;
    Cut cut = {.kind = kind, .phase = m->bucket, .waited = m->idle[0], .exceptions = m->idle[1],
               .instructions = m->instructions - (counted ? last->instructions : 0),
               .cycles = m->cycles - (counted ? last->runs[last_entry(m)].cycles : 0),
               .memory_cycles = m->memory_cycles, .runs = s->run_count, .operands = s->operand_count};
    if (has_room(m, (void **)&s->cuts, s->cut_count, &s->cut_room, sizeof *s->cuts) && cut_ghosts(m))
        s->cuts[s->cut_count++] = cut;
}

static void free_segments(Machine *m) {
    if (!m->segments) return;
    free(m->segments->cuts);
    free(m->segments->runs);
    free(m->segments->operands);
    free(m->segments->misses);
    free(m->segments->cut_misses);
    free(m->segments);
    m->segments = NULL;
}

/* Keep segments from now on; what ran before is the first one. 0: no memory. */
EXPORT int machine_keep_segments(Machine *m) {
    free_segments(m);
    m->segments = calloc(1, sizeof *m->segments);
    if (m->segments) machine_decode_all(m);
    return m->segments != NULL;
}

EXPORT void machine_cut(Machine *m, uint64_t kind, int inside) { cut_segment(m, kind, inside); }

typedef struct { uint64_t cuts, runs, operands; } SegmentCounts;

EXPORT SegmentCounts machine_segment_counts(const Machine *m) {
    const struct Segments *s = m->segments;
    return (SegmentCounts){s->cut_count, s->run_count, s->operand_count};
}

EXPORT void machine_segments(const Machine *m, Cut *cuts, SegmentRun *runs, SegmentOperands *operands) {
    const struct Segments *s = m->segments;
    memcpy(cuts, s->cuts, s->cut_count * sizeof *cuts);
    memcpy(runs, s->runs, s->run_count * sizeof *runs);
    memcpy(operands, s->operands, s->operand_count * sizeof *operands);
}

/* What each instruction of a block, by its place among all, was expected to meet. */
EXPORT void machine_expected(const Machine *m, uint64_t index, Met *out) {
    const Block *b = m->all[index];
    for (uint32_t n = 0; n < b->instructions; n++)
        out[n] = b->version->expected ? b->version->expected[n] : (Met){0, 0};
}

#endif
